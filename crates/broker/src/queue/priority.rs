//! Taking urgent messages first.

use super::selection::Eligible;
use super::take::Pass;
use super::{ConsumerId, Queue, TakeLimit};
use crate::message::Taken;
use crate::messages::{Bits, Choice};
use mochila_wire::Now;

impl Queue {
    /// Hands over messages of the highest level that has any, then of the next; true if the
    /// consumer got as many as it asked for.
    pub(super) fn acquire_by_priority(
        &mut self,
        now: Now,
        id: ConsumerId,
        limit: TakeLimit,
        out: &mut Taken,
    ) -> bool {
        let called_for = self.distributor.answer_call(id);
        let mut pass = Pass::new(limit, self.distributor.share(id, self.available()));
        while pass.goes_on() {
            let next = self.distributor.choose(id, &self.messages);
            let Some(choice) = next else { break };
            let before = pass.taken();
            let is_over = !self.acquire_level(now, id, choice, &mut pass, out);
            if let Some(levels) = self.messages.levels_mut() {
                levels.took(choice, pass.taken() - before);
            }
            if is_over {
                break;
            }
        }
        self.end_acquiring(id, &pass, called_for)
    }

    /// Hands over messages of one level; false if the next one does not fit.
    fn acquire_level(
        &mut self,
        now: Now,
        id: ConsumerId,
        choice: Choice,
        pass: &mut Pass,
        out: &mut Taken,
    ) -> bool {
        let most = pass.taken().saturating_add(choice.most);
        let takes_any = self.distributor.takes_any(id);
        let mut next = Some(choice.run);
        while let Some(run) = next {
            let Some(levels) = self.messages.levels() else { break };
            let bits = match takes_any {
                true => levels.level(choice.level).bits_from(run.first),
                false => Bits::of(run),
            };
            let bits = bits.first(pass.left().min(most - pass.taken()));
            let Some(end) = self.take_bits(now, id, (choice.level, bits), pass, out) else {
                return false;
            };
            if pass.taken() == most || !pass.goes_on() {
                break;
            }
            let Some(levels) = self.messages.levels() else { break };
            next = self.distributor.next(id, Eligible::some(levels.level(choice.level)), end);
        }
        true
    }

    /// Hands over messages of one level and one block; where to go on, unless there is no room for
    /// the next message.
    fn take_bits(
        &mut self,
        now: Now,
        id: ConsumerId,
        (level, bits): (usize, Bits),
        pass: &mut Pass,
        out: &mut Taken,
    ) -> Option<u64> {
        let acquired = self.messages.acquire_of(level, bits, pass.taker(now, id), out);
        pass.note(&acquired);
        let looked_at = bits.before(acquired.end);
        self.distributor.took_bits(id, looked_at);
        let consumer = self.distributor.get_mut(id)?;
        consumer.taken += acquired.messages;
        if consumer.options.settled {
            let dequeued = self.messages.accept_bits(looked_at, id.slot);
            self.leave(dequeued);
        } else {
            consumer.holding.took_bits(looked_at, acquired.messages);
        }
        self.expired(acquired.expired);
        (looked_at == bits).then_some(acquired.end)
    }
}
