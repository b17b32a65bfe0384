use mochila_wire::frame::{self, MAX_TRANSFER_HEAD, TransferHead};
use mochila_wire::performative::{ReceiverSettleMode, Transfer, TransferState};
use mochila_wire::{DeliveryState, Encode};

use super::{OpenDelivery, Sender};
use crate::LinkId;
use crate::session::Session;

/// The sending end of one link, with everything looked up that a batch of deliveries needs.
///
/// Nothing here waits: [`capacity`](Outgoing::capacity) and [`fits`](Outgoing::fits) say what may
/// go now, and sending more than that is a bug of the caller's.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) sender: &'a mut Sender,
    pub(crate) output: &'a mut Vec<u8>,
    pub(crate) flow_due: &'a mut bool,
    pub(crate) due_links: &'a mut Vec<LinkId>,
    pub(crate) link: LinkId,
    pub(crate) channel: u16,
    pub(crate) handle: u32,
    pub(crate) frame_limit: usize,
}

/// What is said of a delivery besides its bytes (part 2, 2.7.5).
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery<'a> {
    /// Comes back when the delivery's outcome is known.
    pub token: u64,
    /// Whether it is settled with this: no outcome will come.
    pub settled: bool,
    /// The format of the message; 0 is the AMQP message of part 3.
    pub message_format: u32,
    /// The delivery tag, at most 32 bytes; the delivery id where it is left out.
    pub tag: Option<&'a [u8]>,
    /// The state at the sender, such as a transaction.
    pub state: Option<&'a DeliveryState>,
    /// How the receiver is to settle, where it differs from the link's mode.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// Whether it resumes a delivery from before the link was suspended.
    pub resume: bool,
    /// Whether its outcome need not be told at once.
    pub batchable: bool,
}

/// How far a piece of a large delivery has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The delivery.
    pub delivery_id: u32,
    /// How many bytes of the piece are in the output.
    pub taken: usize,
    /// Whether the delivery is complete.
    pub done: bool,
}

impl Outgoing<'_> {
    /// How many deliveries of one frame each may be sent now: the lesser of link credit and
    /// session window; none while a large delivery of this link is under way.
    #[inline]
    pub fn capacity(&mut self) -> u32 {
        let room = self.room();
        if room == 0 {
            self.session.outgoing.note_exhausted();
        }
        if self.sender.open.is_some() { 0 } else { self.sender.credit.credit.min(room) }
    }

    /// How many transfer frames the session may send now.
    #[inline]
    pub fn room(&self) -> u32 {
        self.session.outgoing.room()
    }

    /// How many bytes of a message one frame has room for, whatever else it carries.
    #[inline]
    pub fn frame_room(&self) -> usize {
        self.frame_limit - HEAD_BYTES
    }

    /// How many frames a message of that many bytes takes at most.
    #[inline]
    pub fn frames_for(&self, message_bytes: usize) -> u32 {
        let per_frame = self.frame_room();
        if message_bytes <= per_frame {
            return 1;
        }
        u32::try_from(message_bytes.div_ceil(per_frame)).unwrap_or(u32::MAX)
    }

    /// Whether a message of that many bytes can be sent as a whole now, if nothing is said of it but
    /// what [`send`](Outgoing::send) says.
    #[inline]
    pub fn fits(&mut self, message_bytes: usize) -> bool {
        if self.capacity() == 0 {
            return false;
        }
        let fits = self.frames_for(message_bytes) <= self.room();
        if !fits {
            self.session.outgoing.note_exhausted();
        }
        fits
    }

    /// Whether a message of that many bytes can be sent as this delivery, as a whole, now: its state
    /// takes room in the first frame.
    pub fn fits_as(&mut self, delivery: &Delivery<'_>, message_bytes: usize) -> bool {
        let state_bytes = self.state_bytes(Some(delivery));
        self.fits(message_bytes.saturating_add(state_bytes))
    }

    /// Sends a message as a whole, in as many frames as it takes, under a tag of the engine's
    /// own, and returns its delivery id.
    ///
    /// # Panics
    /// If it does not [fit](Outgoing::fits).
    #[inline]
    pub fn send(&mut self, token: u64, settled: bool, message_format: u32, parts: &[&[u8]]) -> u32 {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes + HEAD_BYTES > self.frame_limit {
            let delivery = Delivery { token, settled, message_format, ..Delivery::default() };
            return self.deliver(&delivery, parts);
        }
        assert!(self.room() > 0, "a message was sent into a closed session window");
        let delivery_id = self.begin(token, settled);
        let tag = delivery_id.to_be_bytes();
        let head = TransferHead {
            handle: self.handle,
            delivery_id: Some(delivery_id),
            delivery_tag: &tag,
            message_format,
            settled,
            ..TransferHead::default()
        };
        frame::write_transfer(self.output, self.channel, &head, parts);
        self.session.outgoing.take();
        self.finish();
        delivery_id
    }

    /// Sends a message as a whole, in as many frames as it takes, and returns its delivery id.
    ///
    /// # Panics
    /// If it does not [fit](Outgoing::fits_as).
    pub fn deliver(&mut self, delivery: &Delivery<'_>, parts: &[&[u8]]) -> u32 {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let fits = self.fits_as(delivery, bytes);
        assert!(fits, "a message was sent that does not fit the session window");
        let delivery_id = self.begin(delivery.token, delivery.settled);
        let mut pieces = Pieces { parts, left: bytes };
        let mut first = Some(delivery);
        loop {
            let (start, room) = self.start_frame(delivery_id, first.take(), pieces.left);
            pieces.copy(self.output, room);
            frame::finish(self.output, start);
            self.session.outgoing.take();
            if pieces.left == 0 {
                break;
            }
        }
        self.finish();
        delivery_id
    }

    /// Begins a delivery that is sent piece by piece, with its first piece.
    ///
    /// What was not taken has to wait for [`Event::Window`](crate::Event::Window).
    ///
    /// # Panics
    /// If [`capacity`](Outgoing::capacity) is 0.
    pub fn start_large(&mut self, delivery: &Delivery<'_>, piece: &[u8]) -> Progress {
        assert!(self.capacity() > 0, "a large message was sent without credit or window");
        let delivery_id = self.begin(delivery.token, delivery.settled);
        self.sender.open =
            Some(OpenDelivery { token: delivery.token, delivery_id, settled: delivery.settled });
        self.write_piece(delivery_id, Some(delivery), piece, false)
    }

    /// Sends the next piece of the large delivery, or as much of it as the session window allows;
    /// `last` ends the delivery with this piece.
    ///
    /// # Panics
    /// If no large delivery is under way.
    pub fn continue_large(&mut self, piece: &[u8], last: bool) -> Progress {
        let open = self.sender.open.expect("a large delivery was begun");
        let progress = self.write_piece(open.delivery_id, None, piece, last);
        if progress.done {
            self.sender.open = None;
            self.finish();
        }
        progress
    }

    /// Gives the large delivery up: the receiver forgets it, and its token does not come back.
    /// False if the session window is closed; then try again after
    /// [`Event::Window`](crate::Event::Window).
    ///
    /// # Panics
    /// If no large delivery is under way.
    pub fn abort_large(&mut self) -> bool {
        let open = self.sender.open.expect("a large delivery was begun");
        if self.room() == 0 {
            self.session.outgoing.note_exhausted();
            return false;
        }
        let transfer = Transfer { handle: self.handle, aborted: true, ..Transfer::default() };
        frame::write(self.output, self.channel, &transfer);
        self.session.outgoing.take();
        let mut settled = 0;
        self.session.unsettled.visit(open.delivery_id, open.delivery_id, true, &mut |_, _| {
            settled += 1;
        });
        self.sender.unsettled -= settled;
        self.sender.open = None;
        self.finish();
        true
    }

    fn begin(&mut self, token: u64, settled: bool) -> u32 {
        assert!(self.sender.credit.credit > 0, "a message was sent without link credit");
        debug_assert!(self.sender.open.is_none(), "deliveries of one link do not interleave");
        self.sender.credit.take();
        if settled {
            self.session.unsettled.skip()
        } else {
            self.sender.unsettled += 1;
            self.session.unsettled.push(token, self.link)
        }
    }

    /// A delivery is complete: a receiver that drains waits for our flow as soon as the last
    /// credit is used.
    #[inline]
    fn finish(&mut self) {
        if self.sender.credit.drain_unanswered && self.sender.credit.credit == 0 {
            self.sender.credit.drained();
            if !std::mem::replace(self.flow_due, true) {
                self.due_links.push(self.link);
            }
        }
    }

    fn write_piece(
        &mut self,
        delivery_id: u32,
        mut first: Option<&Delivery<'_>>,
        piece: &[u8],
        last: bool,
    ) -> Progress {
        let mut taken = 0;
        let mut done = false;
        while self.room() > 0 && !done && (taken < piece.len() || last || first.is_some()) {
            let left = piece.len() - taken;
            // Where the message goes on, the frame says so even if the piece ends here.
            let claim = if last { left } else { left.max(1).saturating_add(self.frame_limit) };
            let (start, room) = self.start_frame(delivery_id, first.take(), claim);
            let end = taken + room.min(left);
            self.output.extend_from_slice(&piece[taken..end]);
            frame::finish(self.output, start);
            self.session.outgoing.take();
            taken = end;
            done = last && taken == piece.len();
        }
        if !done && self.room() == 0 {
            self.session.outgoing.note_exhausted();
        }
        Progress { delivery_id, taken, done }
    }

    /// What the state of a delivery takes in its first frame: found by writing it where the next
    /// frame will be.
    fn state_bytes(&mut self, first: Option<&Delivery<'_>>) -> usize {
        let Some(state) = first.and_then(|delivery| delivery.state) else { return 0 };
        let start = self.output.len();
        state.encode(self.output);
        let bytes = self.output.len() - start;
        self.output.truncate(start);
        bytes
    }

    /// Writes the head of a frame for a delivery of which `left` bytes are to come, and returns
    /// where the frame starts and how many of them it has room for.
    fn start_frame(
        &mut self,
        delivery_id: u32,
        first: Option<&Delivery<'_>>,
        left: usize,
    ) -> (usize, usize) {
        let head_bytes = HEAD_BYTES + self.state_bytes(first);
        // A head too large for the frame leaves the bytes to the frames that follow.
        let room = self.frame_limit.saturating_sub(head_bytes);
        let more = left > room;
        let id = delivery_id.to_be_bytes();
        let transfer = match first {
            Some(delivery) => Transfer {
                delivery_id: Some(delivery_id),
                delivery_tag: Some(delivery.tag.unwrap_or(&id)),
                message_format: Some(delivery.message_format),
                settled: Some(delivery.settled),
                rcv_settle_mode: delivery.rcv_settle_mode,
                state: delivery.state.map(TransferState::from),
                resume: delivery.resume,
                batchable: delivery.batchable,
                handle: self.handle,
                more,
                aborted: false,
            },
            // What continues a delivery repeats neither its id nor its tag.
            None => Transfer { handle: self.handle, more, ..Transfer::default() },
        };
        let start = frame::start(self.output, frame::FrameKind::Amqp, self.channel);
        transfer.encode(self.output);
        (start, room.min(left))
    }
}

/// The parts of a message, copied out frame by frame.
struct Pieces<'a> {
    parts: &'a [&'a [u8]],
    left: usize,
}

impl Pieces<'_> {
    fn copy(&mut self, out: &mut Vec<u8>, room: usize) {
        let total: usize = self.parts.iter().map(|part| part.len()).sum();
        let mut skip = total - self.left;
        let mut room = room.min(self.left);
        self.left -= room;
        for part in self.parts {
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let take = room.min(part.len() - skip);
            out.extend_from_slice(&part[skip..skip + take]);
            room -= take;
            skip = 0;
            if room == 0 {
                break;
            }
        }
    }
}

/// The most that a frame header and a transfer without state take.
const HEAD_BYTES: usize = MAX_TRANSFER_HEAD;
