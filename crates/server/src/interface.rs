//! Where to listen.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// The addresses that an operator means by the name or address of a network interface.
///
/// A name (`lo`, `eth0`) stands for all addresses of that interface. A link-local IPv6 address is
/// left out unless it is the only one: nobody can connect to it without naming an interface.
pub(crate) fn addresses(interface: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let literal = interface.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = literal.unwrap_or(interface).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let of_interface = if_addrs::get_if_addrs()?;
    let mut found: Vec<IpAddr> = of_interface
        .iter()
        .filter(|found| found.name == interface)
        .map(|found| found.ip())
        .collect();
    if found.iter().any(|address| !is_link_local(*address)) {
        found.retain(|address| !is_link_local(*address));
    }
    if found.is_empty() {
        let message = format!("there is no network interface and no address `{interface}`");
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_itself_with_or_without_brackets() {
        assert_eq!(addresses("10.1.2.3", 5).unwrap(), ["10.1.2.3:5".parse().unwrap()]);
        assert_eq!(addresses("[::1]", 5).unwrap(), ["[::1]:5".parse().unwrap()]);
        assert_eq!(addresses("::1", 5).unwrap(), ["[::1]:5".parse().unwrap()]);
    }

    #[test]
    fn a_name_stands_for_the_addresses_of_the_interface() {
        assert!(addresses("lo", 5).unwrap().contains(&"127.0.0.1:5".parse().unwrap()));
    }

    #[test]
    fn a_name_that_is_not_there_is_named() {
        let error = addresses("eth99", 5).unwrap_err();
        assert!(error.to_string().contains("eth99"));
    }
}
