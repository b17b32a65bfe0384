//! TCP sockets as the reactor wants them.

use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Listens on one address.
///
/// # Errors
/// If the address cannot be used.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted server need not wait until the connections of the one before have timed out.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `::` serves both families; of any other address this makes no difference.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Listens on all addresses of the machine, of both families where it has both.
///
/// # Errors
/// If the port cannot be used.
pub fn listen_everywhere(port: u16, backlog: u32) -> io::Result<TcpListener> {
    listen((Ipv6Addr::UNSPECIFIED, port).into(), backlog).or_else(|error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            return Err(error);
        }
        listen((Ipv4Addr::UNSPECIFIED, port).into(), backlog)
    })
}

/// Accepts one connection, if one waits.
///
/// Small writes go out at once (no Nagle): the writer has collected all it has to say. An IPv4 peer
/// of a socket for both families is reported with its IPv4 address.
///
/// # Errors
/// If the system has no descriptor left, or the peer is gone again.
pub fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    match listener.accept() {
        Ok((stream, peer)) => {
            stream.set_nodelay(true)?;
            Ok(Some((stream, SocketAddr::new(peer.ip().to_canonical(), peer.port()))))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream as Blocking;
    use std::time::Duration;

    #[test]
    fn an_ipv4_peer_of_a_socket_for_both_families_has_an_ipv4_address() {
        let listener = listen_everywhere(0, 1).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = Blocking::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let (stream, peer) = loop {
            if let Some(accepted) = accept(&listener).unwrap() {
                break accepted;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(stream.nodelay().unwrap());
    }
}
