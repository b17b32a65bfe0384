/// The life of a connection (part 2, 2.4 and part 5, 5.3).
///
/// ```text
///  server                                            client with SASL
///    Hello ──SASL header──► Sasl ◄──SASL header── Hello
///      │                     │ authenticated
///      │ AMQP header         ▼
///      │                   Header (also where a client without SASL starts)
///      │                     │ AMQP header
///      │                     ▼
///      └────────────────► Opening ──open received──► Open
///                            │                         │ close received (answered) ──► Closed
///                            └────── close sent ───────┤
///                                                      ▼
///                                                   Closing ──close received──► Closed
///
///  From any state: what cannot be followed ──► Discarding ──end of input, or time──► Closed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for the first protocol header.
    Hello,
    /// SASL frames are exchanged.
    Sasl,
    /// Waits for the AMQP header.
    Header,
    /// Waits for the peer's open.
    Opening,
    /// Both sides have opened.
    Open,
    /// Our close is on its way; only the peer's close is of interest.
    Closing,
    /// The last word is said; input is thrown away until the peer hangs up, so that it can read
    /// why before the socket is reset.
    Discarding,
    /// Over.
    Closed,
}

/// What moves a connection on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The SASL protocol header arrived.
    SaslHeader,
    /// SASL ended well.
    Authenticated,
    /// The AMQP protocol header arrived.
    AmqpHeader,
    /// The peer's open arrived.
    Open,
    /// We send close, and wait for the peer's.
    Close,
    /// The peer's close arrived.
    Closed,
    /// There is nothing more to understand.
    GiveUp,
    /// The peer hung up, or its time is over.
    HangUp,
}

impl State {
    /// The state after an input; none if the input does not apply in this state.
    pub(crate) fn after(self, input: Input) -> Option<State> {
        Some(match (self, input) {
            (State::Hello, Input::SaslHeader) => State::Sasl,
            (State::Sasl, Input::Authenticated) => State::Header,
            (State::Hello | State::Header, Input::AmqpHeader) => State::Opening,
            (State::Opening, Input::Open) => State::Open,
            (State::Opening | State::Open, Input::Close) => State::Closing,
            (State::Opening | State::Open | State::Closing, Input::Closed) => State::Closed,
            (State::Closed, _) => return None,
            (_, Input::GiveUp) => State::Discarding,
            (_, Input::HangUp) => State::Closed,
            _ => return None,
        })
    }

    /// Whether the connection has yet to become usable.
    pub(crate) fn is_handshake(self) -> bool {
        matches!(self, State::Hello | State::Sasl | State::Header | State::Opening)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 8] = [
        State::Hello,
        State::Sasl,
        State::Header,
        State::Opening,
        State::Open,
        State::Closing,
        State::Discarding,
        State::Closed,
    ];

    #[test]
    fn every_state_but_the_last_can_be_left_by_hanging_up() {
        for state in STATES {
            let expected = (state != State::Closed).then_some(State::Closed);
            assert_eq!(state.after(Input::HangUp), expected, "{state:?}");
        }
    }

    #[test]
    fn nothing_is_opened_before_the_headers_were_exchanged() {
        for state in [State::Hello, State::Sasl, State::Header] {
            assert_eq!(state.after(Input::Open), None, "{state:?}");
            assert_eq!(state.after(Input::Close), None, "{state:?}");
        }
    }
}
