//! Inbox stories with real threads.

use mochila_net::{Inbox, Mailbox, Turn, Visit};
use std::sync::mpsc;
use std::thread;

type Sum = Inbox<u64, Vec<u64>>;

fn add_up(sum: &mut u64, work: &mut Vec<u64>) -> Visit {
    *sum += work.drain(..).sum::<u64>();
    Visit::Done
}

fn finish(turn: Option<Turn<u64, Vec<u64>>>) {
    let mut turn = turn;
    let mut spare = Vec::new();
    while let Some(running) = turn {
        turn = running.run(&mut spare, 4, add_up);
    }
}

#[test]
fn posting_to_an_idle_inbox_gives_the_turn_and_posting_again_does_not() {
    let inbox = Sum::new(0);
    let turn = inbox.post(1);
    assert!(turn.is_some());
    assert!(inbox.post(2).is_none());
    finish(turn);
    assert_eq!(inbox.with_state(|sum| *sum), 3);
    assert!(inbox.post(4).is_some(), "the turn was given back");
}

#[test]
fn what_is_posted_during_a_visit_is_done_in_the_next_round() {
    let inbox = Sum::new(0);
    let turn = inbox.post(1).unwrap();
    let mut rounds = 0;
    let left = turn.run(&mut Vec::new(), 10, |sum, work| {
        rounds += 1;
        if rounds < 4 {
            assert!(inbox.post(1).is_none(), "the runner has the turn");
        }
        add_up(sum, work)
    });
    assert!(left.is_none());
    assert_eq!((rounds, inbox.with_state(|sum| *sum)), (4, 4));
}

#[test]
fn a_turn_that_used_up_its_rounds_is_returned_only_if_there_is_more_to_do() {
    let inbox = Sum::new(0);
    let turn = inbox.post(1).unwrap();
    assert!(turn.run(&mut Vec::new(), 1, add_up).is_none());

    let turn = inbox.post(1).unwrap();
    let left = turn.run(&mut Vec::new(), 1, |sum, work| {
        assert!(inbox.post(5).is_none());
        add_up(sum, work)
    });
    finish(left);
    assert_eq!(inbox.with_state(|sum| *sum), 7);
}

#[test]
fn a_wish_for_another_visit_survives_the_hand_over() {
    let inbox = Sum::new(0);
    let turn = inbox.post(1).unwrap();
    let left = turn.run(&mut Vec::new(), 1, |sum, work| {
        add_up(sum, work);
        Visit::Again
    });
    let turn = left.expect("the visit asked for another");
    let visited = thread::spawn(move || {
        let mut visited = false;
        let left = turn.run(&mut Vec::new(), 1, |_, work| {
            assert!(work.is_empty());
            visited = true;
            Visit::Done
        });
        assert!(left.is_none());
        visited
    });
    assert!(visited.join().unwrap());
}

#[test]
fn after_a_panic_in_a_visit_the_next_post_gets_the_turn() {
    let inbox = Sum::new(0);
    let turn = inbox.post(1).unwrap();
    let crash = thread::spawn(move || {
        let _ = turn.run(&mut Vec::new(), 1, |_, _| panic!("on purpose"));
    });
    assert!(crash.join().is_err());
    finish(inbox.post(2));
    assert_eq!(inbox.with_state(|sum| *sum), 2);
}

#[test]
fn eight_threads_post_a_million_items_and_none_is_lost() {
    let inbox = Sum::new(0);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let inbox = inbox.clone();
            thread::spawn(move || {
                for _ in 0..125_000 {
                    finish(inbox.post(1));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(inbox.with_state(|sum| *sum), 1_000_000);
}

#[test]
fn a_mailbox_wakes_its_owner_once_until_it_is_emptied() {
    let (wake, woken) = mpsc::channel();
    let mailbox = Mailbox::new(move || wake.send(()).unwrap());
    mailbox.send(1);
    mailbox.send(2);
    assert_eq!(woken.try_iter().count(), 1);

    let mut commands = Vec::new();
    mailbox.take(&mut commands);
    assert_eq!(commands, [1, 2]);

    mailbox.send(3);
    assert_eq!(woken.try_iter().count(), 1);
}
