use crate::{Mechanism, PeerCredentials, Secret};

/// Reads a PLAIN message: `[authzid] NUL authcid NUL passwd` (RFC 4616).
///
/// Anything malformed is none: the caller answers it like a wrong password.
pub(crate) fn decode(response: &[u8]) -> Option<PeerCredentials> {
    let text = std::str::from_utf8(response).ok()?;
    let mut parts = text.split('\0');
    let (authzid, authcid, password) = (parts.next()?, parts.next()?, parts.next()?);
    if authcid.is_empty() || parts.next().is_some() {
        return None;
    }
    Some(PeerCredentials {
        mechanism: Mechanism::Plain,
        authzid: authzid.to_owned(),
        authcid: authcid.to_owned(),
        password: Secret::new(password),
    })
}

/// Writes a PLAIN message without an authorisation identity.
pub(crate) fn encode(user: &str, password: &str) -> Vec<u8> {
    let mut response = Vec::with_capacity(user.len() + password.len() + 2);
    response.push(0);
    response.extend_from_slice(user.as_bytes());
    response.push(0);
    response.extend_from_slice(password.as_bytes());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_response_survives_the_round_trip() {
        let peer = decode(&encode("ann", "s3cret")).unwrap();
        assert_eq!((peer.authzid.as_str(), peer.authcid.as_str()), ("", "ann"));
        assert_eq!(peer.password.reveal(), "s3cret");
    }

    #[test]
    fn an_identity_to_act_as_is_kept() {
        assert_eq!(decode(b"boss\0ann\0pw").unwrap().authzid, "boss");
    }

    #[test]
    fn malformed_responses_are_nobody() {
        let cases: [&[u8]; 7] =
            [b"", b"\0", b"ann", b"\0ann", b"\0\0pw", b"\0a\0b\0c", b"\0\xff\xfe\0pw"];
        for response in cases {
            assert_eq!(decode(response), None, "{response:?}");
        }
    }
}
