//! What a network is like.

use mochila_engine::pair::Random;

/// How late bytes arrive, and how many of them a socket holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// The longest that a piece is under way.
    pub(crate) delay_ms: u64,
    /// How much one direction of a connection holds before its writer has to wait.
    pub(crate) socket_bytes: usize,
}

impl Weather {
    /// Anything from a wire across the room to a modem behind a small buffer.
    pub(crate) fn any(random: &mut Random) -> Weather {
        Weather {
            delay_ms: *random.pick(&[0, 1, 5, 50]),
            socket_bytes: *random.pick(&[300, 3_000, 64_000]),
        }
    }
}
