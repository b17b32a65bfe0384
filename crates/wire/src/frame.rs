//! Frames and protocol headers (part 2, 2.2 and 2.3).

mod transfer;

use std::fmt;

pub use transfer::{MAX_TRANSFER_HEAD, TransferHead, write_transfer};

use crate::encode::Encode;
use crate::types::Symbol;
use crate::{AmqpError, condition};

/// The protocol header that begins AMQP (part 2, 2.2).
pub const PROTOCOL_AMQP: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
/// The protocol header that begins TLS (part 5, 5.2).
pub const PROTOCOL_TLS: [u8; 8] = *b"AMQP\x02\x01\x00\x00";
/// The protocol header that begins SASL (part 5, 5.3).
pub const PROTOCOL_SASL: [u8; 8] = *b"AMQP\x03\x01\x00\x00";

/// The largest frame that everybody has to accept (part 2, 2.8.19).
pub const MIN_MAX_FRAME_SIZE: u32 = 512;
/// The size of a frame header without extended header.
pub const HEADER_LEN: usize = 8;

/// What a peer wants to speak, from the first bytes on a connection (part 2, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// AMQP 1.0.
    Amqp,
    /// TLS, then AMQP 1.0.
    Tls,
    /// SASL, then AMQP 1.0.
    Sasl,
    /// Something else: to be answered with a header of ours.
    Unsupported,
}

impl Protocol {
    /// Reads a protocol header; `None` as long as fewer than eight bytes could still become one.
    pub fn parse(bytes: &[u8]) -> Option<Protocol> {
        let Some(header) = bytes.first_chunk::<8>() else {
            let begun = PROTOCOL_AMQP[..4].starts_with(&bytes[..bytes.len().min(4)]);
            return if begun { None } else { Some(Protocol::Unsupported) };
        };
        Some(match *header {
            PROTOCOL_AMQP => Protocol::Amqp,
            PROTOCOL_TLS => Protocol::Tls,
            PROTOCOL_SASL => Protocol::Sasl,
            _ => Protocol::Unsupported,
        })
    }
}

/// What a frame's body is (part 2, 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A performative.
    Amqp,
    /// A step of SASL.
    Sasl,
}

/// The header of a frame (part 2, 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The size of the whole frame.
    pub size: u32,
    /// Where the body begins, in words of four bytes.
    pub doff: u8,
    /// What the body is.
    pub kind: FrameKind,
    /// The channel; means nothing in a SASL frame.
    pub channel: u16,
}

impl Header {
    /// Reads a frame header; `None` if more bytes are needed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Option<Header>, FrameError> {
        let Some(&[a, b, c, d, doff, kind, e, f]) = bytes.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let size = u32::from_be_bytes([a, b, c, d]);
        if size < HEADER_LEN as u32 {
            return Err(FrameError::TooSmall { size });
        }
        if doff < 2 || u32::from(doff) * 4 > size {
            return Err(FrameError::InvalidDataOffset { doff, size });
        }
        let kind = match kind {
            0 => FrameKind::Amqp,
            1 => FrameKind::Sasl,
            kind => return Err(FrameError::UnknownKind { kind }),
        };
        Ok(Some(Header { size, doff, kind, channel: u16::from_be_bytes([e, f]) }))
    }

    /// Reads a frame header and refuses a frame of more than `max_size` bytes, before any of its
    /// body has to be there.
    #[inline]
    pub fn parse_within(bytes: &[u8], max_size: u32) -> Result<Option<Header>, FrameError> {
        let header = Header::parse(bytes)?;
        match header {
            Some(Header { size, .. }) if size > max_size => {
                Err(FrameError::TooLarge { size, max_size })
            }
            header => Ok(header),
        }
    }

    /// The body of the frame that begins with this header; `None` if it has not arrived in full.
    #[inline]
    pub fn body<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        frame.get(self.body_start()..self.size as usize)
    }

    /// Where the body begins.
    #[inline]
    pub fn body_start(&self) -> usize {
        usize::from(self.doff) * 4
    }
}

/// Why a frame cannot be read. Nothing after it can be either: the connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The size is less than that of the header.
    TooSmall {
        /// The size claimed.
        size: u32,
    },
    /// The size is more than what was agreed.
    TooLarge {
        /// The size claimed.
        size: u32,
        /// The size agreed.
        max_size: u32,
    },
    /// The body begins inside the header or after the end.
    InvalidDataOffset {
        /// The data offset claimed.
        doff: u8,
        /// The size claimed.
        size: u32,
    },
    /// The frame is neither AMQP nor SASL.
    UnknownKind {
        /// The type claimed.
        kind: u8,
    },
}

impl FrameError {
    /// The error condition that tells the peer.
    pub fn condition(&self) -> Symbol {
        condition::FRAMING_ERROR
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooSmall { size } => {
                write!(f, "a frame claims {size} bytes, less than its header")
            }
            FrameError::TooLarge { size, max_size } => {
                write!(f, "a frame claims {size} bytes, and at most {max_size} were agreed")
            }
            FrameError::InvalidDataOffset { doff, size } => {
                write!(f, "a frame of {size} bytes has its body at word {doff}")
            }
            FrameError::UnknownKind { kind } => write!(f, "a frame has the unknown type {kind}"),
        }
    }
}

impl std::error::Error for FrameError {}

impl From<FrameError> for AmqpError {
    fn from(error: FrameError) -> AmqpError {
        AmqpError::new(error.condition(), error.to_string())
    }
}

/// Begins a frame whose size is not known yet; returns where it starts, for [`finish`].
#[inline]
pub fn start(out: &mut Vec<u8>, kind: FrameKind, channel: u16) -> usize {
    let start = out.len();
    let kind = match kind {
        FrameKind::Amqp => 0,
        FrameKind::Sasl => 1,
    };
    let [e, f] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind, e, f]);
    start
}

/// Ends a frame: fills in its size.
#[inline]
pub fn finish(out: &mut [u8], start: usize) {
    let size = u32::try_from(out.len() - start).expect("a frame of 4 GiB was written");
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// Writes an AMQP frame without payload.
pub fn write(out: &mut Vec<u8>, channel: u16, performative: &impl Encode) {
    let start = start(out, FrameKind::Amqp, channel);
    performative.encode(out);
    finish(out, start);
}

/// Writes a SASL frame.
pub fn write_sasl(out: &mut Vec<u8>, frame: &impl Encode) {
    let start = start(out, FrameKind::Sasl, 0);
    frame.encode(out);
    finish(out, start);
}

/// Writes a frame without body, which only says that we are alive (part 2, 2.4.5).
pub fn write_empty(out: &mut Vec<u8>) {
    let start = start(out, FrameKind::Amqp, 0);
    finish(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_written_and_read_back() {
        let mut out = b"before".to_vec();
        let at = start(&mut out, FrameKind::Sasl, 0x0102);
        out.extend_from_slice(b"body");
        finish(&mut out, at);
        let frame = &out[6..];
        let header = Header::parse(frame).unwrap().unwrap();
        let expected = Header { size: 12, doff: 2, kind: FrameKind::Sasl, channel: 0x0102 };
        assert_eq!(header, expected);
        assert_eq!(header.body(frame), Some(&b"body"[..]));
        assert_eq!(header.body(&frame[..11]), None);
        assert_eq!(Header::parse(&frame[..7]), Ok(None));
    }

    #[test]
    fn an_extended_header_is_passed_over() {
        let frame = [0, 0, 0, 13, 3, 0, 0, 0, 1, 2, 3, 4, 5];
        assert_eq!(Header::parse(&frame).unwrap().unwrap().body(&frame), Some(&[5][..]));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_by_the_header_alone() {
        let parse = |bytes: [u8; 8]| Header::parse_within(&bytes, 512);
        assert_eq!(parse([0, 0, 0, 7, 2, 0, 0, 0]), Err(FrameError::TooSmall { size: 7 }));
        assert_eq!(
            parse([0, 0, 2, 1, 2, 0, 0, 0]),
            Err(FrameError::TooLarge { size: 513, max_size: 512 })
        );
        for doff in [0, 1, 3] {
            let error = FrameError::InvalidDataOffset { doff, size: 8 };
            assert_eq!(parse([0, 0, 0, 8, doff, 0, 0, 0]), Err(error));
        }
        assert_eq!(parse([0, 0, 0, 8, 2, 2, 0, 0]), Err(FrameError::UnknownKind { kind: 2 }));
    }

    #[test]
    fn a_protocol_header_is_known_as_soon_as_it_can_be() {
        assert_eq!(Protocol::parse(&PROTOCOL_AMQP), Some(Protocol::Amqp));
        assert_eq!(Protocol::parse(&PROTOCOL_SASL), Some(Protocol::Sasl));
        assert_eq!(Protocol::parse(&PROTOCOL_TLS), Some(Protocol::Tls));
        assert_eq!(Protocol::parse(b"AMQP\x00\x00\x09\x01"), Some(Protocol::Unsupported));
        assert_eq!(Protocol::parse(b"AMQP\x00\x01"), None);
        assert_eq!(Protocol::parse(b""), None);
        assert_eq!(Protocol::parse(b"GET"), Some(Protocol::Unsupported));
    }

    #[test]
    fn a_heartbeat_is_eight_bytes() {
        let mut out = Vec::new();
        write_empty(&mut out);
        assert_eq!(out, [0, 0, 0, 8, 2, 0, 0, 0]);
    }
}
