//! Batches that exchanges have sent to queues in a transaction.
//!
//! A message that goes to several queues is not missed at one of them that is gone by the commit, as
//! its subscriber may be. It must not be lost with all of them.

use super::Fault;
use super::part::{Part, Post};
use std::collections::HashSet;

/// A batch that an exchange has sent to its queues.
#[derive(Debug)]
pub(super) struct Offer {
    /// Messages for which one of the queues had no room: queues that are there have refused them.
    pub(super) refused: Vec<u32>,
    /// The exchange drops what no queue is bound for, and tells nobody.
    pub(super) may_vanish: bool,
}

/// Which messages of an offer a queue gets.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    /// The number of the offer in its transaction.
    pub(super) offer: usize,
    /// Their places in the batch of the offer; empty if it is the whole batch.
    pub(super) indexes: Box<[u32]>,
}

/// Why what exchanges have brought cannot be committed, if so, when some of the queues are gone.
pub(super) fn obstacle(
    offers: &[Offer],
    parts: &[Part],
    is_gone: impl Fn(usize) -> bool,
) -> Option<Fault> {
    let gone: Vec<&Part> = posted(parts, &is_gone).collect();
    if gone.is_empty() {
        return None;
    }
    let kept: HashSet<(usize, u32)> =
        posted(parts, |index| !is_gone(index)).flat_map(all).collect();
    let is_lost = |(offer, index): &(usize, u32)| {
        let Offer { refused, may_vanish } = &offers[*offer];
        let may_vanish = *may_vanish && refused.binary_search(index).is_err();
        !may_vanish && !kept.contains(&(*offer, *index))
    };
    let loses = |part: &&Part| all(part).any(|message| is_lost(&message));
    let part = gone.into_iter().find(loses)?;
    Some(Fault::QueueDeleted { name: part.queue.name().to_owned() })
}

/// Those parts of the transaction to which exchanges have brought something.
fn posted(parts: &[Part], wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = &Part> {
    let parts = parts.iter().enumerate().filter(move |(index, _)| wanted(*index));
    parts.map(|(_, part)| part).filter(|part| all(part).next().is_some())
}

/// The messages that exchanges have brought: of which offer, and which of its batch.
fn all(part: &Part) -> impl Iterator<Item = (usize, u32)> {
    part.posts.iter().flat_map(|post| {
        let offered = post.offered.iter();
        offered.flat_map(move |offered| places(post, offered).map(|index| (offered.offer, index)))
    })
}

fn places(post: &Post, offered: &Offered) -> impl Iterator<Item = u32> {
    (0..post.batch.len()).map(|index| {
        // What the queue keeps out is not in the batch any more.
        let index = post.batch.number_of(index);
        offered.indexes.get(index as usize).copied().unwrap_or(index)
    })
}
