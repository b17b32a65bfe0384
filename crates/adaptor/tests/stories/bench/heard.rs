use mochila_engine::pair::Said;
use mochila_wire::performative::{Attach, Close, Detach, Disposition, End, Flow, Open};
use mochila_wire::{Message, Performative};

/// What the node has said to a raw peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heard(pub(crate) Vec<Said>);

/// A transfer frame that was heard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moved {
    pub(crate) handle: u32,
    pub(crate) id: Option<u32>,
    pub(crate) tag: Option<Vec<u8>>,
    pub(crate) format: Option<u32>,
    pub(crate) settled: bool,
    pub(crate) more: bool,
    pub(crate) aborted: bool,
    pub(crate) payload: Vec<u8>,
}

macro_rules! picked {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident($found:ident) -> $type:ty = $value:expr;)+) => {
        impl Heard {$(
            $(#[doc = $doc])+
            pub(crate) fn $name(&self) -> Vec<$type> {
                let pick = |said: &Said| match said.performative()? {
                    Performative::$kind($found) => Some($value),
                    _ => None,
                };
                self.0.iter().filter_map(pick).collect()
            }
        )+}
    };
}

picked! {
    /// All opens.
    opens: Open(open) -> Open = *open;
    /// All attaches.
    attaches: Attach(attach) -> Attach = *attach;
    /// All flows.
    flows: Flow(flow) -> Flow = flow;
    /// All dispositions.
    dispositions: Disposition(disposition) -> Disposition = disposition;
    /// All detaches.
    detaches: Detach(detach) -> Detach = *detach;
    /// All ends.
    ends: End(end) -> End = end;
    /// All closes.
    closes: Close(close) -> Close = close;
}

impl Heard {
    /// The names of all frames, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(Said::name).collect()
    }

    /// True if nothing was said.
    pub(crate) fn is_silent(&self) -> bool {
        self.0.is_empty()
    }

    /// All transfers.
    pub(crate) fn transfers(&self) -> Vec<Moved> {
        let pick = |said: &Said| {
            let Said::Frame { body, .. } = said else { return None };
            let (performative, used) = Performative::decode(body).ok()?;
            let Performative::Transfer(transfer) = performative else { return None };
            Some(Moved {
                handle: transfer.handle,
                id: transfer.delivery_id,
                tag: transfer.delivery_tag.map(<[u8]>::to_vec),
                format: transfer.message_format,
                settled: transfer.settled == Some(true),
                more: transfer.more,
                aborted: transfer.aborted,
                payload: body[used..].to_vec(),
            })
        };
        self.0.iter().filter_map(pick).collect()
    }

    /// The one attach.
    pub(crate) fn attach(&self) -> Attach {
        self.only(self.attaches())
    }

    /// The one detach.
    pub(crate) fn detach(&self) -> Detach {
        self.only(self.detaches())
    }

    /// The one flow.
    pub(crate) fn flow(&self) -> Flow {
        self.only(self.flows())
    }

    /// The one open.
    pub(crate) fn open(&self) -> Open {
        self.only(self.opens())
    }

    /// The one close.
    pub(crate) fn close(&self) -> Close {
        self.only(self.closes())
    }

    /// The one end.
    pub(crate) fn end(&self) -> End {
        self.only(self.ends())
    }

    /// The one disposition.
    pub(crate) fn disposition(&self) -> Disposition {
        self.only(self.dispositions())
    }

    /// The one transfer.
    pub(crate) fn transfer(&self) -> Moved {
        self.only(self.transfers())
    }

    fn only<T: Clone>(&self, found: Vec<T>) -> T {
        assert_eq!(found.len(), 1, "one was expected in {:?}", self.names());
        found[0].clone()
    }
}

impl Moved {
    /// The message, if it is all in this frame.
    pub(crate) fn message(&self) -> Message {
        Message::decode(&self.payload).expect("a whole message")
    }
}
