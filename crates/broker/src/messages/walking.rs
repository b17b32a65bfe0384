//! Handing messages of groups to consumers.

use super::bits::Bits;
use super::entries::BLOCK;
use super::entry::NOBODY;
use super::groups::{Among, Groups};
use super::leaving::EXPIRED;
use super::taking::{Acquired, Deliveries, Taker};
use super::{Dequeued, Flags, Messages, Order, Positions, Run};
use crate::message::Taken;

/// How a consumer goes through a queue with groups, and what it takes at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) taker: Taker,
    /// How many messages it still takes.
    pub(crate) most: u64,
    /// How many of them that anybody might take.
    pub(crate) free: u64,
    /// It stops after so many that have expired.
    pub(crate) most_expired: u64,
    /// It takes whatever there is, so nobody need be asked about each message.
    pub(crate) takes_any: bool,
}

/// Where a walk through a block came to its end.
#[derive(Clone, Copy, Debug)]
struct Stop {
    /// What was taken.
    taken: u128,
    /// Of that, what anybody might have taken.
    free: u128,
    /// The next message could be taken if it had not expired.
    expired: Option<usize>,
    /// The next message does not fit.
    is_full: bool,
    bytes: usize,
}

impl Messages {
    /// Gives a consumer messages of its groups and of free ones, in order, and names where they
    /// stood.
    ///
    /// `next` finds the first ones of a set, not before a position, that the consumer may have.
    pub(crate) fn acquire_grouped(
        &mut self,
        mut walk: Walk,
        mut next: impl FnMut(&Positions, u64) -> Option<Run>,
        gone: &mut Vec<Bits>,
        out: &mut Taken,
    ) -> Acquired {
        let mut acquired = Acquired { messages: 0, bytes: 0, expired: Dequeued::default(), end: 0 };
        let mut segment = None;
        while walk.most > 0 && acquired.expired.messages() < walk.most_expired {
            let Order::Groups(groups) = &self.order else { break };
            let Some(way) = self.way(groups, &walk, acquired.end, &mut next) else { break };
            let stop = self.walk(way, &walk, &mut segment, out);
            let taken = Bits::new(way.block, stop.taken);
            self.take_out(taken, Bits::new(way.block, stop.free));
            if stop.taken != 0 {
                gone.push(taken);
                walk.taker.is_empty_handed = false;
                acquired.end =
                    way.block * BLOCK + u64::from(u128::BITS - stop.taken.leading_zeros());
            }
            walk.most -= taken.len();
            walk.free -= u64::from(stop.free.count_ones());
            walk.taker.bytes = walk.taker.bytes.saturating_sub(stop.bytes);
            acquired.messages += taken.len();
            acquired.bytes += stop.bytes;
            if let Some(index) = stop.expired {
                self.available.remove_bits(Bits::new(way.block, 1 << index));
                acquired.expired.merge(self.dequeue(way.block, 1 << index, NOBODY, EXPIRED));
                // The next one of its group stands behind it.
                acquired.end = way.block * BLOCK + index as u64 + 1;
            } else if stop.is_full || stop.taken == 0 {
                break;
            }
        }
        acquired
    }

    /// The messages of a block that are looked at next: the first is within the consumer's reach.
    fn way(
        &self,
        groups: &Groups,
        walk: &Walk,
        from: u64,
        next: &mut impl FnMut(&Positions, u64) -> Option<Run>,
    ) -> Option<Bits> {
        let free = if walk.free > 0 { next(groups.free(), from) } else { None };
        let owned = groups.owned(walk.taker.slot).filter(|owned| owned.len() > 0);
        let owned = owned.and_then(|owned| next(owned, from));
        let (first, rest) = match (free, owned) {
            (Some(free), Some(owned)) if owned.first < free.first => (owned.first, 1),
            (Some(free), _) => (free.first, free.len),
            (None, owned) => (owned?.first, 1),
        };
        Some(match walk.takes_any {
            true => self.available.bits_from(first),
            false => Bits::of(Run::new(first, rest)),
        })
    }

    /// Hands over what is within reach of a consumer on its way, until too much is not.
    fn walk(
        &mut self,
        way: Bits,
        walk: &Walk,
        segment: &mut Option<(u32, u32)>,
        out: &mut Taken,
    ) -> Stop {
        let mut stop = Stop { taken: 0, free: 0, expired: None, is_full: false, bytes: 0 };
        let Order::Groups(groups) = &mut self.order else { return stop };
        let Taker { slot, now_ms, bytes: room, is_empty_handed } = walk.taker;
        let mut deliveries = Deliveries::new(&self.slots, &self.overlays, now_ms);
        deliveries.last = *segment;
        let block = self.entries.block_mut(way.block).expect("what is available has an entry");
        let (mut most, mut most_free, mut blocked) = (walk.most, walk.free, 0);
        for index in way.indexes() {
            let (position, link) = (way.block * BLOCK + index as u64, *block.link(index));
            let Some(among) = groups.reach((position, link), slot, most_free > 0) else {
                blocked += 1;
                if blocked == MOST_BLOCKED {
                    break;
                }
                continue;
            };
            let expiry_ms = block.expiry_ms(index);
            let entry = block.get_mut(index).expect("what is available has an entry");
            let len = entry.len as usize;
            if expiry_ms <= now_ms {
                stop.expired = Some(index);
                break;
            }
            if stop.bytes + len > room && !(is_empty_handed && stop.taken == 0) {
                stop.is_full = true;
                break;
            }
            deliveries.push(position, entry, expiry_ms, out);
            entry.holder = slot;
            entry.flags |= Flags::WAS_ACQUIRED;
            groups.acquire(position, link, slot, among);
            stop.taken |= 1 << index;
            stop.bytes += len;
            if among == Among::Free {
                stop.free |= 1 << index;
                most_free -= 1;
            }
            blocked = 0;
            most -= 1;
            if most == 0 {
                break;
            }
        }
        *segment = deliveries.last;
        stop
    }

    /// Messages have been taken on a walk, and some of them were free.
    fn take_out(&mut self, taken: Bits, free: Bits) {
        self.available.remove_bits(taken);
        if let Order::Groups(groups) = &mut self.order {
            groups.walked(free);
        }
    }
}

/// A walk ends after so many messages in a row that others have to take: the sets know where it goes
/// on.
const MOST_BLOCKED: u32 = 4;
