/// The life of a link endpoint (part 2, 2.6).
///
/// ```text
///  attach received ──► Asked ──answered─────────────────┐
///                        │ detach received              ▼
///                        ▼                          Attached ──detach received (answered)──┐
///                      Leaving ──answered──┐          ▲  │                                 │
///                                          │          │  │ detach sent                     │
///  attach sent ─────► Asking ─attach received─────────┘  ▼                                 │
///                        └────detach sent──┼──────► Detaching ──detach received──┐         │
///                                          ▼                                     ▼         ▼
///                                       Detached ◄───────────────────────────────┴─────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The peer wants the link; the application has not answered.
    Asked,
    /// The peer wanted the link and detached it before the application answered.
    Leaving {
        /// What the peer's detach said.
        closed: bool,
    },
    /// We want the link; the peer has not answered.
    Asking,
    /// Both sides are attached.
    Attached,
    /// Our detach is on its way; whatever else arrives for the link is ignored.
    Detaching {
        /// Whether the application waits for the peer's answer.
        notify: bool,
    },
    /// Over.
    Detached,
}

/// What moves a link on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The application answered the peer's attach.
    Answer,
    /// The peer answered our attach.
    Confirmed,
    /// We send detach.
    Detach {
        /// Whether the application waits for the peer's answer.
        notify: bool,
    },
    /// The peer's detach arrived.
    Detached {
        /// What it said.
        closed: bool,
    },
}

impl State {
    /// The state after an input; none if the input does not apply in this state.
    pub(crate) fn after(self, input: Input) -> Option<State> {
        Some(match (self, input) {
            (State::Asked, Input::Answer) => State::Attached,
            (State::Leaving { .. }, Input::Answer) => State::Detached,
            (State::Asking, Input::Confirmed) => State::Attached,
            // Our detach overtook the peer's answer, which changes nothing any more.
            (State::Detaching { notify }, Input::Confirmed) => State::Detaching { notify },
            (State::Asking | State::Attached, Input::Detach { notify }) => {
                State::Detaching { notify }
            }
            (State::Asked, Input::Detached { closed }) => State::Leaving { closed },
            (State::Attached | State::Detaching { .. }, Input::Detached { .. }) => State::Detached,
            _ => return None,
        })
    }

    /// Whether transfers and flows of the peer's mean something; it may send them before it has
    /// seen our answer.
    #[inline]
    pub(crate) fn may_flow(self) -> bool {
        matches!(self, State::Asked | State::Asking | State::Attached)
    }

    /// Whether the peer knows our handle.
    pub(crate) fn is_announced(self) -> bool {
        matches!(self, State::Asking | State::Attached)
    }

    /// Whether both sides are attached.
    #[inline]
    pub(crate) fn is_attached(self) -> bool {
        self == State::Attached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_link_stays_detached() {
        for input in [
            Input::Answer,
            Input::Confirmed,
            Input::Detach { notify: true },
            Input::Detached { closed: true },
        ] {
            assert_eq!(State::Detached.after(input), None);
        }
    }

    #[test]
    fn a_peer_may_leave_before_it_was_answered() {
        let leaving = State::Asked.after(Input::Detached { closed: true }).unwrap();
        assert_eq!(leaving, State::Leaving { closed: true });
        assert_eq!(leaving.after(Input::Answer), Some(State::Detached));
    }
}
