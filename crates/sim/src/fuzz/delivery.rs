//! How the bytes of a fuzzer reach a connection.

use mochila_engine::pair::Random;
use mochila_wire::Now;
use mochila_wire::frame::{FrameKind, Header, PROTOCOL_AMQP};
use mochila_wire::{Performative, sasl::SaslFrame};

/// An input: the first byte says how it is torn and when time passes, the rest is what a peer says.
pub(super) struct Delivery<'a> {
    pub(super) now: Now,
    rest: &'a [u8],
    random: Random,
    manner: Manner,
}

/// In what pieces bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Frame by frame, as from a client that waits for answers.
    Frames,
    /// All at once.
    AtOnce,
    /// In pieces of at most so many bytes, with pauses.
    Torn(u64),
}

/// What comes next.
pub(super) enum Next<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// Time has passed.
    Time,
    /// There is nothing more.
    End,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(input: &'a [u8]) -> Delivery<'a> {
        let (seed, rest) = input.split_first().map_or((0, input), |(seed, rest)| (*seed, rest));
        let mut random = Random::new(u64::from(seed));
        let manner = match seed {
            0 => Manner::Frames,
            1 => Manner::AtOnce,
            _ => Manner::Torn(*random.pick(&[20, 100, 1_000])),
        };
        let now = Now::new(1_000_000, 1_700_000_000_000);
        Delivery { now, rest: &rest[..rest.len().min(MOST_BYTES)], random, manner }
    }

    pub(super) fn next(&mut self) -> Next<'a> {
        if self.rest.is_empty() {
            return Next::End;
        }
        let is_torn = matches!(self.manner, Manner::Torn(_));
        if is_torn && self.random.below(40) == 0 {
            let ms = *self.random.pick(&[1, 1, 10, 10, 1_000, 4_000, 70_000]);
            self.now = self.now.after(ms);
            return Next::Time;
        }
        let left = self.rest.len();
        let len = match self.manner {
            Manner::Frames => frame_len(self.rest).clamp(1, left),
            Manner::AtOnce => left,
            Manner::Torn(most) => self.random.between(1, most.min(left as u64)) as usize,
        };
        let (piece, rest) = self.rest.split_at(len);
        self.rest = rest;
        Next::Bytes(piece)
    }
}

/// The size of the first frame, or protocol header; of everything, if it is neither.
pub(super) fn frame_len(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"AMQP") {
        return PROTOCOL_AMQP.len();
    }
    match Header::parse(bytes) {
        Ok(Some(header)) => header.size as usize,
        _ => bytes.len(),
    }
}

/// Reads what a connection of ours has said.
///
/// # Panics
/// If a peer could not.
pub(super) fn check_output(mut output: &[u8]) {
    while !output.is_empty() {
        if output.starts_with(b"AMQP") {
            assert!(output.len() >= 8, "half a protocol header was written");
            output = &output[8..];
            continue;
        }
        let header = Header::parse(output).ok().flatten().expect("a frame was written");
        let body = header.body(output).expect("a whole frame was written");
        match header.kind {
            FrameKind::Amqp if body.is_empty() => {}
            FrameKind::Amqp => {
                Performative::decode(body).expect("a performative was written");
            }
            FrameKind::Sasl => {
                SaslFrame::from_body(body).expect("a SASL frame was written");
            }
        }
        output = &output[header.size as usize..];
    }
}

/// Inputs are looked at so far.
const MOST_BYTES: usize = 64 * 1024;
