//! Scenarios that compare a kind of queue, or a way of using one, with the plain queue.

use super::Options;
use super::comparison::Comparison;
use super::flow::Flow;

/// Message groups: eleven messages each, three at a time.
pub(super) fn groups() -> Comparison {
    let plain = Flow::new(2, 2).send("--group-key=GROUP-ID").send("--group-size=11");
    let plain = Flow { each_sender: prefixes(), ..plain.send("--group-interleave=3") };
    let groups = plain.through("'qpid.group_header_key':'GROUP-ID','qpid.shared_msg_group':1");
    Comparison::with(plain).row("groups", groups)
}

/// Numbers and times that the queue adds.
pub(super) fn sequence() -> Comparison {
    let plain = Flow::new(2, 1);
    let sequence = plain.through("'qpid.queue_msg_sequence':'seqno'");
    let ingress = plain.through("'qpid.ingress_timestamp':true");
    Comparison::with(plain).row("sequence", sequence).row("ingress time", ingress)
}

/// Ten consumers, each of which wants one message in ten.
pub(super) fn selectors() -> Comparison {
    let plain = Flow::new(2, 10).send("--group-key=kind").send("--group-prefix=k");
    let plain = plain.send("--group-interleave=10").send(format!("--group-size={}", u32::MAX));
    let selectors = (0..10).map(|kind| format!("kind = 'k{kind}'")).collect();
    let selecting = Flow { selectors, ..plain.clone() };
    Comparison::with(plain).row("ten selectors", selecting)
}

/// Messages of one priority, and of two.
pub(super) fn priority() -> Comparison {
    let plain = Flow::new(2, 1).send("--priority=4");
    let one = plain.through("'qpid.priorities':10");
    let two = vec!["--priority=2".to_owned(), "--priority=7".to_owned()];
    let two = Flow { each_sender: two, ..one.clone() };
    let fair = two.through("'qpid.priorities':10,'qpid.fairshare':5");
    let comparison = Comparison::with(plain).row("one priority", one);
    comparison.row("two priorities", two).row("fair shares", fair)
}

/// Last values: every message with a key of its own, and a thousand keys that nobody receives.
pub(super) fn last_value() -> Comparison {
    let plain = Flow::new(2, 1).send("--group-key=key").send("--group-size=1");
    let plain = Flow { each_sender: prefixes(), ..plain };
    let keys = plain.through("'qpid.last_value_queue_key':'key'");
    let few = Flow::new(2, 0).send("--group-key=key").send("--group-interleave=1000");
    let few = few.send(format!("--group-size={}", u32::MAX));
    let few = few.through("'qpid.last_value_queue_key':'key'");
    Comparison::with(plain).row("keys of their own", keys).row("1,000 keys, replaced", few)
}

/// A ring that has room, and one that drops.
pub(super) fn ring(options: &Options) -> Comparison {
    let plain = Flow::new(2, 1);
    let messages = plain.senders * options.messages();
    let room = plain.through(&format!("'qpid.policy_type':'ring','qpid.max_count':{messages}"));
    let full = Flow::new(2, 0).through("'qpid.policy_type':'ring','qpid.max_count':1000");
    Comparison::with(plain).row("a ring with room", room).row("a full ring of 1,000", full)
}

/// Transactions of a hundred messages, on either side and on both.
pub(super) fn transactions() -> Comparison {
    let plain = Flow::new(2, 1).receive("--ack-frequency=100");
    let sending = plain.clone().send("--tx=100");
    let receiving = plain.clone().receive("--tx=100");
    let both = receiving.clone().send("--tx=100");
    let comparison = Comparison::with(plain).row("sent in transactions", sending);
    comparison.row("received in transactions", receiving).row("both", both)
}

/// Senders whose groups have different names.
fn prefixes() -> Vec<String> {
    ["a", "b"].map(|prefix| format!("--group-prefix={prefix}")).to_vec()
}
