use mochila_wire::Now;

/// The deadlines of a connection, all on the monotonic clock.
#[derive(Debug)]
pub(crate) struct Timers {
    now_ms: u64,
    received_ms: u64,
    sent_ms: u64,
    /// The peer is gone after so much silence.
    silence_ms: Option<u64>,
    /// The peer wants to hear from us this often.
    heartbeat_ms: Option<u64>,
    /// When patience with the handshake, or with the peer's close, ends.
    patience_ms: Option<u64>,
}

/// What a deadline asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Patience,
    Silence,
    Heartbeat,
}

impl Timers {
    pub(crate) fn new(now: Now, handshake_ms: u64) -> Timers {
        Timers {
            now_ms: now.mono_ms,
            received_ms: now.mono_ms,
            sent_ms: now.mono_ms,
            silence_ms: None,
            heartbeat_ms: None,
            patience_ms: Some(now.mono_ms.saturating_add(handshake_ms)),
        }
    }

    #[inline]
    pub(crate) fn received(&mut self, now: Now) {
        self.now_ms = now.mono_ms;
        self.received_ms = now.mono_ms;
    }

    pub(crate) fn tick(&mut self, now: Now) {
        self.now_ms = now.mono_ms;
    }

    /// Something goes out, at the time of the last reading of the clock.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.sent_ms = self.now_ms;
    }

    /// The handshake is over: from now on the peers owe one another signs of life.
    pub(crate) fn open(&mut self, silence_ms: u32, peer_idle_timeout_ms: Option<u32>) {
        self.patience_ms = None;
        self.silence_ms = (silence_ms > 0).then_some(u64::from(silence_ms));
        self.heartbeat_ms = peer_idle_timeout_ms
            .filter(|timeout| *timeout > 0)
            .map(|timeout| u64::from(timeout / 2).max(1));
    }

    /// Nothing but the end is waited for, and that not for long.
    pub(crate) fn closing(&mut self, patience_ms: u64) {
        self.silence_ms = None;
        self.heartbeat_ms = None;
        self.patience_ms = Some(self.now_ms.saturating_add(patience_ms));
    }

    pub(crate) fn stop(&mut self) {
        self.silence_ms = None;
        self.heartbeat_ms = None;
        self.patience_ms = None;
    }

    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.deadlines().into_iter().flatten().map(|(deadline, _)| deadline).min()
    }

    /// The most important of the deadlines that have passed.
    pub(crate) fn due(&self) -> Option<Due> {
        let passed = |(deadline, due)| (deadline <= self.now_ms).then_some(due);
        self.deadlines().into_iter().flatten().find_map(passed)
    }

    fn deadlines(&self) -> [Option<(u64, Due)>; 3] {
        [
            self.patience_ms.map(|deadline| (deadline, Due::Patience)),
            self.silence_ms.map(|ms| (self.received_ms.saturating_add(ms), Due::Silence)),
            self.heartbeat_ms.map(|ms| (self.sent_ms.saturating_add(ms), Due::Heartbeat)),
        ]
    }
}
