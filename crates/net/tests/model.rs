//! Every interleaving of a few threads, explored by loom.
//!
//! The files under test are compiled into this test once more, with loom's primitives behind the
//! name `crate::sync`, so that the models are part of a plain `cargo test`.

#![allow(dead_code, missing_docs, unreachable_pub)]

#[path = "../src/inbox.rs"]
mod inbox;
#[path = "../src/mailbox.rs"]
mod mailbox;

mod sync {
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("no model panics with a lock held")
    }
}

use inbox::{Inbox, Turn, Visit};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use mailbox::Mailbox;

/// What the model's visits work on: counts what was done, and notices a second runner.
#[derive(Default)]
struct Bench {
    done: Vec<u32>,
    visits: usize,
}

type BenchTurn = Turn<Bench, Vec<u32>>;

/// Runs a turn to its end; `busy` is set as long as somebody is in a visit.
fn finish(turn: Option<BenchTurn>, busy: &AtomicBool) {
    let mut turn = turn;
    while let Some(running) = turn.take() {
        turn = running.run(&mut Vec::new(), 1, |bench, work| visit(bench, work, busy));
    }
}

fn visit(bench: &mut Bench, work: &mut Vec<u32>, busy: &AtomicBool) -> Visit {
    // Relaxed: the flag must not take part in the synchronisation that is being checked.
    assert!(!busy.swap(true, Ordering::Relaxed), "two threads run one inbox");
    bench.done.append(work);
    bench.visits += 1;
    busy.store(false, Ordering::Relaxed);
    Visit::Done
}

fn done(inbox: &Inbox<Bench, Vec<u32>>) -> Vec<u32> {
    let mut done = inbox.with_state(|bench| std::mem::take(&mut bench.done));
    done.sort_unstable();
    done
}

#[test]
fn no_work_is_lost_and_one_thread_runs_at_a_time() {
    // Three threads have too many interleavings for all of them; three preemptions are enough to
    // meet every pair of steps. The models with two threads are complete.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let inbox = Inbox::<Bench, Vec<u32>>::new(Bench::default());
        let busy = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|item| {
                let (inbox, busy) = (inbox.clone(), Arc::clone(&busy));
                thread::spawn(move || finish(inbox.post(item), &busy))
            })
            .collect();
        finish(inbox.post(3), &busy);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(done(&inbox), [1, 2, 3]);
    });
}

#[test]
fn a_thread_that_posts_twice_sees_both_done_in_order() {
    loom::model(|| {
        let inbox = Inbox::<Bench, Vec<u32>>::new(Bench::default());
        let busy = Arc::new(AtomicBool::new(false));
        let other = {
            let (inbox, busy) = (inbox.clone(), Arc::clone(&busy));
            thread::spawn(move || {
                finish(inbox.post(10), &busy);
                finish(inbox.post(11), &busy);
            })
        };
        finish(inbox.post(1), &busy);
        other.join().unwrap();
        let order = inbox.with_state(|bench| std::mem::take(&mut bench.done));
        let of_other: Vec<u32> = order.iter().copied().filter(|item| *item >= 10).collect();
        assert_eq!(of_other, [10, 11]);
        assert_eq!(order.len(), 3);
    });
}

#[test]
fn a_turn_can_be_handed_to_another_thread_while_more_is_posted() {
    loom::model(|| {
        let inbox = Inbox::<Bench, Vec<u32>>::new(Bench::default());
        let busy = Arc::new(AtomicBool::new(false));
        let turn = inbox.post(1).expect("the inbox was idle");
        let runner = {
            let busy = Arc::clone(&busy);
            thread::spawn(move || finish(Some(turn), &busy))
        };
        finish(inbox.post(2), &busy);
        runner.join().unwrap();
        assert_eq!(done(&inbox), [1, 2]);
    });
}

#[test]
fn a_visit_that_wants_another_one_gets_it_without_a_post() {
    loom::model(|| {
        let inbox = Inbox::<Bench, Vec<u32>>::new(Bench::default());
        let other = {
            let inbox = inbox.clone();
            thread::spawn(move || {
                if let Some(turn) = inbox.post(1) {
                    run_until_three_visits(turn);
                }
            })
        };
        if let Some(turn) = inbox.post(2) {
            run_until_three_visits(turn);
        }
        other.join().unwrap();
        assert!(inbox.with_state(|bench| bench.visits) >= 3);
        assert_eq!(done(&inbox), [1, 2]);
    });
}

fn run_until_three_visits(turn: BenchTurn) {
    let left = turn.run(&mut Vec::new(), 8, |bench, work| {
        bench.done.append(work);
        bench.visits += 1;
        if bench.visits < 3 { Visit::Again } else { Visit::Done }
    });
    assert!(left.is_none(), "eight rounds are enough");
}

#[test]
fn a_command_is_never_left_in_the_mailbox_of_a_thread_that_was_not_woken() {
    loom::model(|| {
        let woken = Arc::new(AtomicUsize::new(0));
        let mailbox = {
            let woken = Arc::clone(&woken);
            Mailbox::new(move || {
                woken.fetch_add(1, Ordering::SeqCst);
            })
        };
        let senders: Vec<_> = [1, 2]
            .into_iter()
            .map(|command| {
                let mailbox = mailbox.clone();
                thread::spawn(move || mailbox.send(command))
            })
            .collect();
        // The owner sleeps unless it was woken, and each wake-up makes it look once.
        let mut received = Vec::new();
        let mut looked = 0;
        let mut look = |received: &mut Vec<u32>| {
            while looked < woken.load(Ordering::SeqCst) {
                looked += 1;
                let mut commands = Vec::new();
                mailbox.take(&mut commands);
                received.append(&mut commands);
            }
        };
        look(&mut received);
        for sender in senders {
            sender.join().unwrap();
        }
        look(&mut received);
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}
