//! What flows through a queue in a measurement.

/// What flows, and through what.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) senders: u64,
    /// If there are none, messages only come in.
    pub(super) receivers: u64,
    /// Where to send to, unless it is the queue itself.
    pub(super) target: Option<String>,
    /// Arguments of the queue beyond those that take away its limits, as in an address.
    pub(super) arguments: String,
    /// What every sender is told besides.
    pub(super) send: Vec<String>,
    /// What the senders are told one by one, in turn.
    pub(super) each_sender: Vec<String>,
    pub(super) receive: Vec<String>,
    /// The selectors of the receivers, in turn.
    pub(super) selectors: Vec<String>,
    /// How often the queue is bound to the exchange that is sent to: with the key of the target, and
    /// with others.
    pub(super) bindings: u32,
    /// What is there before, and stays.
    pub(super) before: Option<Before>,
}

/// Messages that are in the queue before anything flows.
#[derive(Clone, Debug)]
pub(super) struct Before {
    pub(super) messages: u64,
    /// What their sender is told.
    pub(super) send: Vec<String>,
    /// As many are acquired by somebody who does not settle them.
    pub(super) held: u32,
}

impl Flow {
    pub(super) fn new(senders: u64, receivers: u64) -> Self {
        Self {
            senders,
            receivers,
            target: None,
            arguments: String::new(),
            send: Vec::new(),
            each_sender: Vec::new(),
            receive: Vec::new(),
            selectors: Vec::new(),
            bindings: 0,
            before: None,
        }
    }

    /// The queue, made on demand, without limits unless its arguments say otherwise.
    pub(super) fn address(&self, queue: &str) -> String {
        let separator = if self.arguments.is_empty() { "" } else { "," };
        format!(
            "{queue};{{create:always,node:{{type:queue,x-declare:{{arguments:{{\
             'qpid.max_size':0,'qpid.flow_stop_size':0,'qpid.flow_stop_count':0\
             {separator}{}}}}}}}}}",
            self.arguments
        )
    }

    /// The same through a queue with these arguments.
    pub(super) fn through(&self, arguments: &str) -> Self {
        Self { arguments: arguments.to_owned(), ..self.clone() }
    }

    /// The same through an exchange, to which the queue is bound so often.
    pub(super) fn bound(self, bindings: u32) -> Self {
        Self { target: Some(format!("{EXCHANGE}/{KEY}")), bindings, ..self }
    }

    pub(super) fn send(mut self, argument: impl Into<String>) -> Self {
        self.send.push(argument.into());
        self
    }

    pub(super) fn receive(mut self, argument: impl Into<String>) -> Self {
        self.receive.push(argument.into());
        self
    }

    pub(super) fn after(mut self, before: Before) -> Self {
        self.before = Some(before);
        self
    }
}

/// The exchange that is sent to, if any.
pub(super) const EXCHANGE: &str = "amq.direct";
/// The key that messages have there.
pub(super) const KEY: &str = "key";
