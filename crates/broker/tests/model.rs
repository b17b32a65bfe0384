//! Every interleaving of a few threads, explored by loom.
//!
//! The crate is compiled into this test once more, with loom's primitives behind the name
//! `crate::sync`, so that the models are part of a plain `cargo test`. It has no harness: the unit
//! tests that come along with the files would run outside of a model.

#![allow(dead_code, unused_imports, missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::wrong_self_convention)]

#[path = "../src/budget/mod.rs"]
mod budget;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/events/mod.rs"]
mod events;
#[path = "../src/exchange/mod.rs"]
mod exchange;
#[path = "../src/line.rs"]
mod line;
#[path = "../src/message/mod.rs"]
mod message;
#[path = "../src/messages/mod.rs"]
mod messages;
#[path = "../src/node/mod.rs"]
mod node;
#[path = "../src/queue/mod.rs"]
mod queue;
#[path = "../src/ration.rs"]
mod ration;
#[path = "../src/selector/mod.rs"]
mod selector;
#[path = "../src/settings/mod.rs"]
mod settings;
#[path = "../src/slab.rs"]
mod slab;
#[path = "../src/transaction/mod.rs"]
mod transaction;
#[path = "../src/wake.rs"]
mod wake;
#[path = "../src/wheel.rs"]
mod wheel;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

    const UNPOISONED: &str = "no model panics with a lock held";

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect(UNPOISONED)
    }

    pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        lock.read().expect(UNPOISONED)
    }

    pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        lock.write().expect(UNPOISONED)
    }
}

// The names under which the crate's documentation knows them.
pub use budget::Budget;
pub use message::{Batch, BatchBuilder, Delivery, LargeBody, MessageMeta, Overlay, Segment, Taken};
pub use node::{Broker, BrokerSettings};
pub use queue::{ConsumerOptions, Outcome, SharedQueue, TakeLimit, Taking};
pub use selector::{Filters, Selector, SelectorInput};
pub use settings::QueueSettings;
pub use transaction::Transaction;
pub use wake::{Wake, Waker, Wakeups};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use mochila_wire::terminus::JMS_SELECTOR;
use mochila_wire::{Map, Now, Sections};
use std::sync::Arc;

const NOW: Now = Now::new(1_000, 1_000);

/// Counts how often a link has been woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(&self, _key: u32) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn main() {
    run("a limit is never passed by several who reserve at once", limit_is_never_passed);
    run("whoever waits for memory is called when it comes back", waiters_for_memory_are_called);
    run("whoever needs least memory is called first", least_is_called_first);
    run("a consumer takes a message or is woken for it", consumer_takes_or_is_woken);
    run("two consumers share what two producers send", nothing_is_lost_between_two_consumers);
    run("one that selects takes a message or is woken for it", selecting_takes_or_is_woken);
    run("what comes back while others send is shown to who selects", released_is_shown);
    run("a consumer that leaves hands on what it was called for", leaver_hands_on);
    // Many steps: a third preemption would take minutes, and shows nothing that two do not.
    run_within(2, "two commits over the same queues wait for each other", commits_do_not_interlock);
}

fn run(name: &str, model: fn()) {
    // Three preemptions are enough to meet every pair of steps.
    run_within(3, name, model);
}

fn run_within(preemptions: usize, name: &str, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
    println!("model: {name} ... ok");
}

fn limit_is_never_passed() {
    let budget = Budget::new(100);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.reserve(60).ok())
        })
        .collect();
    let own = budget.reserve(40);
    assert!(budget.used() <= 100);
    let held: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(held.iter().flatten().count() <= 1, "both got 60 of 100");
    assert!(budget.peak() <= 100);
    drop((own, held));
    assert_eq!(budget.used(), 0);
}

fn waiters_for_memory_are_called() {
    let budget = Budget::with_soft_limit(100, 50);
    let held = budget.reserve(80).unwrap();
    let bell = Arc::new(Bell::default());
    let other = {
        let (budget, bell) = (Arc::clone(&budget), Arc::clone(&bell));
        thread::spawn(move || budget.wait(&Waker::new(bell, 0), None, 0).is_some())
    };
    drop(held);
    budget.resume().perform();
    let waits = other.join().unwrap();
    // As every worker does before it sleeps.
    budget.resume().perform();
    assert_eq!(bell.rung(), usize::from(waits));
    assert_eq!((budget.used(), budget.waiting()), (0, 0));
}

fn least_is_called_first() {
    let budget = Budget::with_soft_limit(100, 50);
    let (rest, held) = (budget.reserve(45).unwrap(), budget.reserve(35).unwrap());
    let (patient, bell) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    // It would have to be 40 for this one.
    assert!(budget.wait(&Waker::new(patient.clone(), 0), None, 60).is_some());
    let other = {
        let (budget, bell) = (Arc::clone(&budget), Arc::clone(&bell));
        thread::spawn(move || budget.wait(&Waker::new(bell, 0), None, 0).is_some())
    };
    drop(held);
    let waits = other.join().unwrap();
    budget.resume().perform();
    assert_eq!(bell.rung(), usize::from(waits));
    assert_eq!((patient.rung(), budget.waiting()), (0, 1));
    drop(rest);
    budget.resume().perform();
    assert_eq!((patient.rung(), budget.waiting()), (1, 0));
}

/// A queue on a node of its own.
fn queue() -> (Arc<Broker>, Arc<SharedQueue>) {
    let broker = Broker::new(BrokerSettings::default());
    let queue = broker.create("q", QueueSettings::default()).unwrap();
    (broker, queue)
}

fn consumer(queue: &SharedQueue) -> (Arc<Bell>, queue::ConsumerId) {
    let bell = Arc::new(Bell::default());
    let options = ConsumerOptions::new(Waker::new(bell.clone(), 0));
    let id = queue.subscribe(NOW, options).unwrap();
    (bell, id)
}

fn send(broker: &Broker, queue: &SharedQueue) {
    let mut builder = BatchBuilder::new();
    builder.push_owned(vec![0; 10], &Sections::default(), MessageMeta::default());
    let batch = builder.finish(&[], broker.budget()).unwrap();
    queue.enqueue(NOW, batch).1.perform();
}

fn take(queue: &SharedQueue, id: queue::ConsumerId) -> (usize, Taking) {
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 10, bytes: usize::MAX };
    let (taking, wakeups) = queue.take(NOW, id, limit, &mut taken);
    wakeups.perform();
    (taken.len(), taking)
}

fn consumer_takes_or_is_woken() {
    let (broker, queue) = queue();
    let (bell, id) = consumer(&queue);
    let other = {
        let (broker, queue) = (Arc::clone(&broker), Arc::clone(&queue));
        thread::spawn(move || send(&broker, &queue))
    };
    let (taken, _) = take(&queue, id);
    other.join().unwrap();
    assert_eq!(taken + bell.rung(), 1);
    if taken == 0 {
        assert_eq!(take(&queue, id).0, 1);
    }
}

fn nothing_is_lost_between_two_consumers() {
    let (broker, queue) = queue();
    let (bells, ids): (Vec<_>, Vec<_>) = (0..2).map(|_| consumer(&queue)).unzip();
    for id in &ids {
        assert_eq!(take(&queue, *id), (0, Taking::Waiting));
    }
    let other = {
        let (broker, queue) = (Arc::clone(&broker), Arc::clone(&queue));
        thread::spawn(move || send(&broker, &queue))
    };
    send(&broker, &queue);
    other.join().unwrap();
    assert_eq!(bells.iter().map(|bell| bell.rung()).sum::<usize>(), 2, "one message, one call");
    let taken: Vec<_> = ids.iter().map(|id| take(&queue, *id).0).collect();
    assert_eq!(taken, [1, 1]);
}

/// A consumer that selects every message there is in these models.
fn selecting(queue: &SharedQueue) -> (Arc<Bell>, queue::ConsumerId) {
    let bell = Arc::new(Bell::default());
    let set = Map::new().with("s", JMS_SELECTOR.with("JMSPriority = 4"));
    let mut options = ConsumerOptions::new(Waker::new(bell.clone(), 0));
    options.filters = Some(Arc::new(Filters::new(&set).unwrap()));
    let id = queue.subscribe(NOW, options).unwrap();
    (bell, id)
}

fn selecting_takes_or_is_woken() {
    let (broker, queue) = queue();
    let (bell, id) = selecting(&queue);
    let other = {
        let (broker, queue) = (Arc::clone(&broker), Arc::clone(&queue));
        thread::spawn(move || send(&broker, &queue))
    };
    let (taken, taking) = take(&queue, id);
    other.join().unwrap();
    if taken == 0 {
        assert!(bell.rung() == 1 || taking == Taking::More, "it waits in vain");
        assert_eq!(take(&queue, id).0, 1);
    }
}

fn released_is_shown() {
    let (broker, queue) = queue();
    let (_, holder) = consumer(&queue);
    send(&broker, &queue);
    take_one(&queue, holder);
    let (bells, ids): (Vec<_>, Vec<_>) = (0..2).map(|_| selecting(&queue)).unzip();
    for id in &ids {
        assert_eq!(take(&queue, *id), (0, Taking::Waiting));
    }
    let other = {
        let queue = Arc::clone(&queue);
        thread::spawn(move || queue.settle_all(NOW, holder, &Outcome::Release).perform())
    };
    send(&broker, &queue);
    other.join().unwrap();
    assert_eq!(bells.iter().map(|bell| bell.rung()).sum::<usize>(), 2, "one message, one call");
    let taken: Vec<_> = ids.iter().map(|id| take(&queue, *id).0).collect();
    assert_eq!(taken, [1, 1]);
}

fn take_one(queue: &SharedQueue, id: queue::ConsumerId) {
    let mut taken = Taken::new();
    let limit = TakeLimit { messages: 1, bytes: usize::MAX };
    queue.take(NOW, id, limit, &mut taken).1.perform();
}

fn leaver_hands_on() {
    let (broker, queue) = queue();
    let (_, leaver) = consumer(&queue);
    let (bell, stayer) = consumer(&queue);
    take(&queue, leaver);
    take(&queue, stayer);
    let other = {
        let queue = Arc::clone(&queue);
        thread::spawn(move || queue.unsubscribe(NOW, leaver).perform())
    };
    send(&broker, &queue);
    other.join().unwrap();
    assert_eq!(bell.rung(), 1);
    assert_eq!(take(&queue, stayer).0, 1);
}

fn commits_do_not_interlock() {
    let (broker, first) = queue();
    let second = broker.create("second", QueueSettings::default()).unwrap();
    let (bell, id) = consumer(&second);
    take(&second, id);
    let commit = |broker: &Broker, queues: [&Arc<SharedQueue>; 2]| {
        let mut transaction = broker.begin();
        for queue in queues {
            let mut builder = BatchBuilder::new();
            builder.push_owned(vec![0; 10], &Sections::default(), MessageMeta::default());
            let batch = builder.finish(&[], broker.budget()).unwrap();
            transaction.enqueue(NOW, queue, batch, true).1.perform();
        }
        transaction.commit(NOW).unwrap()
    };
    let other = {
        let (broker, first, second) =
            (Arc::clone(&broker), Arc::clone(&first), Arc::clone(&second));
        thread::spawn(move || commit(&broker, [&second, &first]).perform())
    };
    commit(&broker, [&first, &second]).perform();
    other.join().unwrap();
    assert_eq!((first.available(), second.available()), (2, 2));
    assert_eq!(bell.rung(), 1);
}
