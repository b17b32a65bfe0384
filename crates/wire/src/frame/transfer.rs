use super::HEADER_LEN;
use crate::descriptor;
use crate::types::codes;

/// The fields of a transfer that a sender chooses, for the writer that never allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferHead<'a> {
    /// The link.
    pub handle: u32,
    /// The delivery; `None` in frames that continue one.
    pub delivery_id: Option<u32>,
    /// The delivery's tag, at most 32 bytes (part 2, 2.8.7); written only with the delivery id.
    pub delivery_tag: &'a [u8],
    /// The message format; written only with the delivery id.
    pub message_format: u32,
    /// Whether the sender has settled the delivery.
    pub settled: bool,
    /// Whether more frames of this delivery follow.
    pub more: bool,
    /// Whether the delivery is given up.
    pub aborted: bool,
    /// Whether the receiver may take its time to answer.
    pub batchable: bool,
}

/// The most bytes that a transfer frame written by [`write_transfer`] has before its payload.
pub const MAX_TRANSFER_HEAD: usize = HEADER_LEN + 6 + 5 + 5 + 2 + MAX_TAG + 5 + 7;

/// The longest delivery tag (part 2, 2.8.7).
const MAX_TAG: usize = 32;

/// Writes a transfer frame whose payload comes in parts; returns the frame's size.
///
/// This is the hot path of everything that sends, so the head is put together on the stack and
/// appended at once.
///
/// # Panics
/// If the tag is longer than 32 bytes or the frame larger than 4 GiB.
#[inline]
pub fn write_transfer(
    out: &mut Vec<u8>,
    channel: u16,
    head: &TransferHead<'_>,
    payload: &[&[u8]],
) -> usize {
    let payload_len: usize = payload.iter().map(|part| part.len()).sum();
    let mut buffer = [0; MAX_TRANSFER_HEAD];
    let head_len = head.put(&mut buffer);
    let size = head_len + payload_len;
    let [a, b, c, d] = u32::try_from(size).expect("a frame of 4 GiB was written").to_be_bytes();
    let [e, f] = channel.to_be_bytes();
    buffer[..HEADER_LEN].copy_from_slice(&[a, b, c, d, 2, 0, e, f]);
    out.reserve(size);
    out.extend_from_slice(&buffer[..head_len]);
    for part in payload {
        out.extend_from_slice(part);
    }
    size
}

impl TransferHead<'_> {
    /// The size of the frame without its payload.
    pub fn frame_len(&self) -> usize {
        self.put(&mut [0; MAX_TRANSFER_HEAD])
    }

    /// Puts everything after the frame header in its place and returns where it ends.
    #[inline]
    fn put(&self, buffer: &mut [u8; MAX_TRANSFER_HEAD]) -> usize {
        const DESCRIPTOR: u8 = descriptor::TRANSFER as u8;
        const LIST: usize = HEADER_LEN + 3;
        let mut put = Put { buffer, at: HEADER_LEN };
        put.bytes(&[codes::DESCRIBED, codes::SMALL_ULONG, DESCRIPTOR, codes::LIST8, 0, 0]);
        put.uint(self.handle);
        match self.delivery_id {
            Some(id) => {
                put.uint(id);
                put.bytes(&[codes::BINARY8, self.delivery_tag.len() as u8]);
                put.bytes(self.delivery_tag);
                put.uint(self.message_format);
            }
            None => put.bytes(&[codes::NULL; 3]),
        }
        // Fields up to the last one that is not at its default: settled, more, rcv-settle-mode,
        // state, resume, aborted, batchable.
        let flag = |flag| if flag { codes::TRUE } else { codes::FALSE };
        let (settled, more) = (flag(self.settled), flag(self.more));
        let mut count = 5;
        put.bytes(&[settled]);
        if self.aborted || self.batchable {
            put.bytes(&[more, codes::NULL, codes::NULL, codes::NULL, flag(self.aborted)]);
            count = 10;
            if self.batchable {
                put.bytes(&[codes::TRUE]);
                count = 11;
            }
        } else if self.more {
            put.bytes(&[more]);
            count = 6;
        }
        let end = put.at;
        // The size counts the count field, and fits: a head is shorter than 128 bytes.
        buffer[LIST + 1] = (end - LIST - 2) as u8;
        buffer[LIST + 2] = count;
        end
    }
}

struct Put<'a> {
    buffer: &'a mut [u8; MAX_TRANSFER_HEAD],
    at: usize,
}

impl Put<'_> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    fn uint(&mut self, value: u32) {
        match value {
            0 => self.bytes(&[codes::UINT0]),
            small @ 1..=0xff => self.bytes(&[codes::SMALL_UINT, small as u8]),
            large => {
                let [a, b, c, d] = large.to_be_bytes();
                self.bytes(&[codes::UINT, a, b, c, d]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Header;
    use super::*;
    use crate::Performative;

    fn read_back(frame: &[u8]) -> (crate::performative::Transfer<'_>, &[u8]) {
        let header = Header::parse(frame).unwrap().unwrap();
        assert_eq!(header.size as usize, frame.len());
        let body = header.body(frame).unwrap();
        match Performative::decode(body).unwrap() {
            (Performative::Transfer(transfer), used) => (transfer, &body[used..]),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_transfer_carries_its_payload_in_one_piece() {
        let head = TransferHead {
            handle: 3,
            delivery_id: Some(70_000),
            delivery_tag: &[0, 1, 17, 112],
            ..TransferHead::default()
        };
        let mut out = Vec::new();
        let size = write_transfer(&mut out, 9, &head, &[b"he", b"llo"]);
        assert_eq!(size, out.len());
        assert_eq!(size, head.frame_len() + 5);
        assert_eq!(Header::parse(&out).unwrap().unwrap().channel, 9);
        let (transfer, payload) = read_back(&out);
        assert_eq!(payload, b"hello");
        assert_eq!(transfer.handle, 3);
        assert_eq!(transfer.delivery_id, Some(70_000));
        assert_eq!(transfer.delivery_tag, Some(&[0, 1, 17, 112][..]));
        assert_eq!(transfer.message_format, Some(0));
        assert_eq!(transfer.settled, Some(false));
        assert!(!transfer.more && !transfer.aborted && !transfer.batchable);
    }

    #[test]
    fn a_frame_that_continues_a_delivery_says_nothing_twice() {
        let mut out = Vec::new();
        let head = TransferHead { handle: 0, more: true, ..TransferHead::default() };
        write_transfer(&mut out, 0, &head, &[b"x"]);
        assert_eq!(
            out[HEADER_LEN..],
            [0x00, 0x53, 0x14, 0xc0, 7, 6, 0x43, 0x40, 0x40, 0x40, 0x42, 0x41, b'x']
        );
    }

    #[test]
    fn every_flag_and_the_longest_tag_fit() {
        let head = TransferHead {
            handle: u32::MAX,
            delivery_id: Some(u32::MAX),
            delivery_tag: &[7; 32],
            message_format: u32::MAX,
            settled: true,
            more: true,
            aborted: true,
            batchable: true,
        };
        assert_eq!(head.frame_len(), MAX_TRANSFER_HEAD);
        let mut out = Vec::new();
        write_transfer(&mut out, 0, &head, &[]);
        let (transfer, payload) = read_back(&out);
        assert!(payload.is_empty());
        assert_eq!(transfer.settled, Some(true));
        assert!(transfer.more && transfer.aborted && transfer.batchable);
    }
}
