//! The place of one message in a queue.

use crate::message::{Head, Incoming, NO_OVERLAY};
use std::ops::{BitOr, BitOrAssign};

/// One message of a queue: where its bytes are, and who has it.
///
/// Everything rare lies beside it, in tables that have a line only for those messages that need
/// one: what has been added to it ([`Overlay`]) and when it expires.
///
/// ```text
///  enqueue ──▶ available ──acquire──▶ acquired ──accept, reject──▶ dequeued
///                 │▲▲                    │                          ▲  ▲
///                 │││──release, modify───┘          expire, purge ──┘  │ (from available)
///                 ▼└─────put back                                      │
///              withdrawn ───────────────────let go─────────────────────┘
/// ```
///
/// [`Overlay`]: crate::Overlay
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    /// The slot of the consumer that has acquired it, or `NOBODY`.
    pub(crate) holder: u32,
    pub(crate) delivery_count: u32,
    pub(crate) flags: Flags,
    /// The parts of its [`Head`]; apart, they need no padding.
    pub(crate) head_ends: [u16; 4],
    pub(crate) head_header: u8,
    pub(crate) priority: u8,
}

impl Entry {
    pub(crate) fn new(message: &Incoming, segment: u32) -> Entry {
        let meta = &message.meta;
        let mut flags = message.past;
        let mut set = |condition: bool, flag: Flags| {
            if condition {
                flags |= flag;
            }
        };
        set(message.size != u64::from(message.len), Flags::LARGE);
        set(meta.durable, Flags::DURABLE);
        set(meta.ttl_ms.is_some(), Flags::TTL);
        set(meta.first_acquirer, Flags::CLAIMS_FIRST);
        set(meta.has_delivery_annotations, Flags::DELIVERY_ANNOTATIONS);
        set(message.overlay != NO_OVERLAY, Flags::OVERLAY);
        Entry {
            segment,
            offset: message.offset,
            len: message.len,
            holder: NOBODY,
            delivery_count: meta.delivery_count,
            flags,
            head_ends: message.head.ends,
            head_header: message.head.header,
            priority: meta.priority,
        }
    }

    pub(crate) fn head(&self) -> Head {
        Head { header: self.head_header, ends: self.head_ends }
    }
}

/// What is true of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NONE: Flags = Flags(0);
    /// Only its head is in memory.
    pub(crate) const LARGE: Flags = Flags(1);
    pub(crate) const DURABLE: Flags = Flags(1 << 1);
    /// Its header has a ttl.
    pub(crate) const TTL: Flags = Flags(1 << 2);
    /// It expires: there is a line for it in the table of its block.
    pub(crate) const EXPIRES: Flags = Flags(1 << 3);
    /// Its header claims that nobody has acquired it before.
    pub(crate) const CLAIMS_FIRST: Flags = Flags(1 << 4);
    /// Somebody has acquired it before.
    pub(crate) const WAS_ACQUIRED: Flags = Flags(1 << 5);
    /// It has been delivered in vain since it came here.
    pub(crate) const FAILED: Flags = Flags(1 << 6);
    /// There is a line for it in the table of overlays.
    pub(crate) const OVERLAY: Flags = Flags(1 << 7);
    pub(crate) const DELIVERY_ANNOTATIONS: Flags = Flags(1 << 8);
    /// Whatever ttl its header has means nothing any more.
    pub(crate) const TIMELESS: Flags = Flags(1 << 9);
    /// Any of these alone changes the head of the message that goes out.
    pub(crate) const PATCHED: Flags = Flags(
        Flags::TTL.0
            | Flags::FAILED.0
            | Flags::OVERLAY.0
            | Flags::DELIVERY_ANNOTATIONS.0
            | Flags::TIMELESS.0,
    );

    /// What has happened to a message since it came to the broker, and goes with it when it moves.
    const PAST: Flags = Flags(Flags::WAS_ACQUIRED.0 | Flags::FAILED.0 | Flags::TIMELESS.0);

    /// What has happened to it.
    pub(crate) fn past(self) -> Flags {
        Flags(self.0 & Flags::PAST.0)
    }

    /// True if any of `flags` is set.
    pub(crate) fn any(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// True if all of `flags` are set.
    pub(crate) fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// The holder of an available message.
pub(crate) const NOBODY: u32 = u32::MAX;
/// The holder of a message that is being moved to another queue.
pub(crate) const MOVER: u32 = u32::MAX - 1;

const _: () = assert!(size_of::<Entry>() <= 32);
