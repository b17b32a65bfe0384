//! The reactor: sockets, timers and the inbox that carries work between workers.
