/// The life of a session endpoint (part 2, 2.5).
///
/// ```text
///  begin received (answered at once) ─────────┐
///                                             ▼
///  begin sent ──► Beginning ─begin received─► Mapped ──end received (answered)──► Ended
///                     │                         │                                   ▲
///                     └──────end sent───────────┴──► Ending ──end received──────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Our begin is on its way.
    Beginning,
    /// Both sides have begun.
    Mapped,
    /// Our end is on its way; whatever else arrives for the session is ignored.
    Ending {
        /// Whether the application waits for the peer's answer.
        notify: bool,
    },
    /// Over.
    Ended,
}

/// What moves a session on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The peer answered our begin.
    Begun,
    /// We send end.
    End {
        /// Whether the application waits for the peer's answer.
        notify: bool,
    },
    /// The peer's end arrived.
    Ended,
}

impl State {
    /// The state after an input; none if the input does not apply in this state.
    pub(crate) fn after(self, input: Input) -> Option<State> {
        Some(match (self, input) {
            (State::Beginning, Input::Begun) => State::Mapped,
            // Our end overtook the peer's answer, which changes nothing any more.
            (State::Ending { notify }, Input::Begun) => State::Ending { notify },
            (State::Beginning | State::Mapped, Input::End { notify }) => State::Ending { notify },
            (State::Mapped | State::Ending { .. }, Input::Ended) => State::Ended,
            _ => return None,
        })
    }

    /// Whether links of the session can be used.
    #[inline]
    pub(crate) fn is_usable(self) -> bool {
        matches!(self, State::Beginning | State::Mapped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_a_session_that_the_peer_has_not_answered_waits_for_begin_and_end() {
        let ending = State::Beginning.after(Input::End { notify: true }).unwrap();
        assert_eq!(ending.after(Input::Begun), Some(ending));
        assert_eq!(ending.after(Input::Ended), Some(State::Ended));
    }

    #[test]
    fn an_ended_session_stays_ended() {
        for input in [Input::Begun, Input::End { notify: false }, Input::Ended] {
            assert_eq!(State::Ended.after(input), None);
        }
    }
}
