//! Breaking what is valid.

use mochila_engine::pair::Random;
use mochila_wire::frame::{HEADER_LEN, Header};

/// Changes an input in one of the ways that break parsers and protocols; `other` is one to borrow
/// from.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match random.below(10) {
        0..3 => mutate_frames(input, other, random),
        3 if !input.is_empty() => input[0] = random.next_u64() as u8,
        4..7 => mutate_in_frame(input, random),
        _ => mutate_bytes(input, random),
    }
}

/// Where frames begin and end, as far as they can be told.
fn frames(bytes: &[u8]) -> Vec<(usize, usize)> {
    // The first byte of a conversation is not the peer's.
    let frames = frames_from(bytes, 1);
    if frames.is_empty() { frames_from(bytes, 0) } else { frames }
}

fn frames_from(bytes: &[u8], mut at: usize) -> Vec<(usize, usize)> {
    let mut frames = Vec::new();
    while at < bytes.len() {
        let rest = &bytes[at..];
        let len = match Header::parse(rest) {
            _ if rest.starts_with(b"AMQP") => HEADER_LEN,
            Ok(Some(header)) => header.size as usize,
            _ => break,
        };
        if len > rest.len() || len == 0 {
            break;
        }
        frames.push((at, at + len));
        at += len;
    }
    frames
}

/// Drops, repeats, moves or borrows whole frames, or puts one on another channel.
fn mutate_frames(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let own = frames(input);
    if own.is_empty() {
        return mutate_bytes(input, random);
    }
    let (start, end) = *random.pick(&own);
    match random.below(5) {
        0 => drop(input.drain(start..end)),
        1 => {
            let frame = input[start..end].to_vec();
            input.splice(end..end, frame);
        }
        2 => {
            let frame: Vec<u8> = input.drain(start..end).collect();
            let to = random.pick(&own).0.min(input.len());
            input.splice(to..to, frame);
        }
        3 => {
            let theirs = frames(other);
            if !theirs.is_empty() {
                let (from, to) = *random.pick(&theirs);
                input.splice(start..start, other[from..to].iter().copied());
            }
        }
        _ if end - start >= HEADER_LEN => {
            let channel = random.below(4) as u16;
            input[start + 6..start + 8].copy_from_slice(&channel.to_be_bytes());
        }
        _ => {}
    }
}

/// Changes bytes inside a frame, and keeps its size right so that it is looked at.
fn mutate_in_frame(input: &mut Vec<u8>, random: &mut Random) {
    let own = frames(input);
    if own.is_empty() {
        return mutate_bytes(input, random);
    }
    let (start, end) = *random.pick(&own);
    if end - start <= HEADER_LEN {
        return;
    }
    let rest = input.split_off(end);
    let mut body = input.split_off(start + HEADER_LEN);
    mutate_bytes(&mut body, random);
    let size = (HEADER_LEN + body.len()) as u32;
    input[start..start + 4].copy_from_slice(&size.to_be_bytes());
    input.append(&mut body);
    input.extend(rest);
}

/// Changes bytes anywhere.
fn mutate_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(random.next_u64() as u8);
        return;
    }
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next_u64() as u8,
        2 => bytes[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        3 => bytes.truncate(at),
        4 => bytes.insert(at, random.next_u64() as u8),
        5 => drop(bytes.remove(at)),
        6 => {
            let end = at + random.below(bytes.len() - at + 1).min(500);
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => {
            let codes: Vec<u8> = (0..=random.below(8)).map(|_| *random.pick(&CODES)).collect();
            bytes.splice(at..at, codes);
        }
    }
}

/// Format codes, and small numbers: they mean something more often than others.
const CODES: [u8; 32] = [
    0x00, 0x00, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x52, 0x53, 0x56, 0x60, 0x70, 0x80, 0x83, 0x98,
    0xa0, 0xa1, 0xa3, 0xb0, 0xb1, 0xb3, 0xc0, 0xc1, 0xd0, 0xd1, 0xe0, 0xf0, 1, 2, 8, 16,
];
