use mochila_wire::frame::{self, FrameKind};
use mochila_wire::performative::{Transfer, TransferState};
use mochila_wire::{Now, Performative, condition};

use super::Connection;
use super::state::State;
use crate::event::Places;
use crate::fault::{Fault, Verdict};

impl Connection {
    /// Handles whole frames and returns how many bytes they were; keep the rest and present it
    /// again.
    ///
    /// It never fails: what a peer does wrong becomes a close, end or detach in the output, and an
    /// event. It may stop early, where the application has to see an event before the next frame
    /// can be answered ([`Event::Credentials`](crate::Event::Credentials),
    /// [`Event::Opened`](crate::Event::Opened)); so take the events and call it again, until it
    /// handles nothing more.
    pub fn handle_bytes(&mut self, now: Now, bytes: &[u8]) -> usize {
        if !bytes.is_empty() {
            self.bury();
            self.timers.received(now);
        }
        self.is_paused = false;
        let mut used = 0;
        while !self.is_paused && used < bytes.len() {
            let rest = &bytes[used..];
            let step = match self.state {
                State::Open | State::Opening | State::Closing => self.read_frame(rest, used),
                State::Sasl if self.sasl.waits_for_verdict() => None,
                State::Sasl => self.read_sasl_frame(rest),
                State::Hello | State::Header => self.read_header(rest),
                State::Discarding | State::Closed => Some(rest.len()),
            };
            match step {
                Some(handled) => used += handled,
                None => break,
            }
        }
        used
    }

    /// How many more bytes the frame needs that `pending` begins with, to size a buffer; never
    /// more than the largest frame that we accept.
    pub fn wanted(&self, pending: &[u8]) -> usize {
        match self.state {
            State::Discarding | State::Closed => 1,
            State::Hello | State::Header => frame::HEADER_LEN.saturating_sub(pending.len()).max(1),
            _ => match frame::Header::parse(pending) {
                Ok(Some(header)) => {
                    let size = header.size.min(self.incoming_limit) as usize;
                    size.saturating_sub(pending.len()).max(1)
                }
                _ => frame::HEADER_LEN.saturating_sub(pending.len()).max(1),
            },
        }
    }

    /// Finds the bounds of a frame; none if it has not arrived as a whole.
    pub(super) fn bound(&self, rest: &[u8]) -> Result<Option<frame::Header>, Box<Fault>> {
        let Some(header) = frame::Header::parse_within(rest, self.incoming_limit)? else {
            return Ok(None);
        };
        Ok(if rest.len() < header.size as usize { None } else { Some(header) })
    }

    #[inline]
    fn read_frame(&mut self, rest: &[u8], at: usize) -> Option<usize> {
        let header = match self.bound(rest) {
            Ok(header) => header?,
            Err(fault) => {
                self.fail(*fault);
                return Some(rest.len());
            }
        };
        let size = header.size as usize;
        let body_at = header.body_start();
        if let Err(fault) = self.handle_frame(&header, &rest[body_at..size], at + body_at) {
            self.fail(*fault);
        }
        Some(size)
    }

    #[inline]
    fn handle_frame(&mut self, header: &frame::Header, body: &[u8], at: usize) -> Verdict {
        if header.kind != FrameKind::Amqp {
            return Err(Fault::framing("a SASL frame arrived after authentication"));
        }
        if body.is_empty() {
            // A sign of life and nothing else (part 2, 2.4.5).
            return Ok(());
        }
        if self.state != State::Open {
            return self.handle_outside_open(body);
        }
        let channel = header.channel;
        if body.starts_with(&TRANSFER) {
            return self.read_transfer(channel, body, at);
        }
        match Performative::decode(body)?.0 {
            // With another encoding of the descriptor.
            Performative::Transfer(_) => self.read_transfer(channel, body, at),
            Performative::Disposition(disposition) => self.handle_disposition(channel, disposition),
            Performative::Flow(flow) => self.handle_flow(channel, &flow),
            Performative::Attach(attach) => self.handle_attach(channel, attach),
            Performative::Detach(detach) => self.handle_detach(channel, *detach),
            Performative::Begin(begin) => self.handle_begin(channel, &begin),
            Performative::End(end) => self.handle_end(channel, end),
            Performative::Close(close) => self.handle_close(close),
            Performative::Open(_) => {
                Err(Fault::connection(condition::ILLEGAL_STATE, "the connection is open already"))
            }
        }
    }

    #[inline]
    fn read_transfer(&mut self, channel: u16, body: &[u8], at: usize) -> Verdict {
        let (transfer, used) = Transfer::decode(body)?;
        // Both stand well within the first 256 bytes; a tag that does not is too long, and refused.
        let place = |part: &[u8]| {
            let start = (part.as_ptr().addr() - body.as_ptr().addr()) as u8;
            start..start.saturating_add(part.len() as u8)
        };
        let tag = transfer.delivery_tag.map_or(0..0, place);
        let txn_id = match transfer.state {
            Some(TransferState::InTransaction(txn_id)) => place(txn_id),
            _ => 0..0,
        };
        let places = Places::new(at, tag, txn_id);
        self.handle_transfer(channel, transfer, at + used..at + body.len(), places)
    }

    /// Handles a frame while the connection opens or closes.
    fn handle_outside_open(&mut self, body: &[u8]) -> Verdict {
        let performative = Performative::decode(body);
        if self.state == State::Closing {
            // Whatever the peer sent before it saw our close does not matter any more.
            return match performative {
                Ok((Performative::Close(close), _)) => self.handle_close(close),
                _ => Ok(()),
            };
        }
        match performative?.0 {
            Performative::Open(open) => self.handle_open(open),
            Performative::Close(close) => self.handle_close(close),
            _ => Err(Fault::connection(
                condition::ILLEGAL_STATE,
                "the first frame of a connection has to be open",
            )),
        }
    }
}

/// How almost every transfer begins: its descriptor as a small ulong.
const TRANSFER: [u8; 3] = [0x00, 0x53, 0x14];
