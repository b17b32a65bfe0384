//! The reactor: sockets, timers and the inbox that carries work between workers.
//!
//! Everything that touches a socket, a clock or another thread lives here, so that the crates
//! above can stay pure.
//!
//! - [`Inbox`]: state that any thread may give work to and one thread at a time works on; nobody
//!   blocks and no work is forgotten.
//! - [`Mailbox`]: commands for one particular thread, which is woken only when it may be asleep.
//! - [`Reactor`]: one thread's event loop.
//! - [`Clock`]: the one place where clocks are read.

mod clock;
mod deadlines;
mod inbox;
mod mailbox;
mod reactor;
pub mod socket;
mod sync;

pub use clock::Clock;
pub use inbox::{Inbox, Turn, Visit, Work};
pub use mailbox::Mailbox;
pub use mio::Waker;
pub use mio::net::{TcpListener, TcpStream};
pub use reactor::{Key, Reactor, Ready};
