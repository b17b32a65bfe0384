//! Clients that declare, send, accept, commit, roll back, detach and die, in any order.

use crate::bench::control::{Id, accepted};
use crate::bench::{Bench, Client, Got, Link, text};
use mochila_engine::pair::Random;
use mochila_wire::Encode;
use std::collections::BTreeSet;

const QUEUES: [&str; 2] = ["a", "b"];

/// What the queues hold for certain, in their order.
#[derive(Default)]
struct Book {
    queues: [Vec<u64>; 2],
    next: u64,
    committed: u64,
    rolled_back: u64,
    died: u64,
}

/// A client with a transaction, perhaps.
struct Actor {
    client: Client,
    controller: Link,
    senders: [Link; 2],
    receivers: [Link; 2],
    held: Vec<(usize, u64, Got)>,
    open: Option<Open>,
}

/// What a transaction would do.
struct Open {
    id: Id,
    posts: Vec<(usize, u64)>,
    /// Deliveries accepted in it, and whether they were settled with that.
    accepts: Vec<(usize, u64, Got, bool)>,
}

impl Open {
    fn has_done_something(&self) -> bool {
        !self.posts.is_empty() || !self.accepts.is_empty()
    }
}

impl Actor {
    fn new(bench: &mut Bench) -> Actor {
        let client = bench.client();
        let controller = bench.controller(client);
        let senders = QUEUES.map(|queue| bench.sender(client, queue));
        let receivers = QUEUES.map(|queue| bench.receiver(client, queue, 3));
        Actor { client, controller, senders, receivers, held: Vec::new(), open: None }
    }

    /// Takes note of what has come: nothing that is not in a queue, and nothing twice.
    fn look(&mut self, bench: &mut Bench, book: &Book) {
        for (queue, receiver) in self.receivers.into_iter().enumerate() {
            for got in bench.got(receiver) {
                let number: u64 = got.text().parse().unwrap();
                assert!(book.queues[queue].contains(&number), "{number} was never committed");
                self.held.push((queue, number, got));
            }
            bench.grant(receiver, 3);
        }
    }

    fn act(&mut self, bench: &mut Bench, book: &mut Book, random: &mut Random) {
        match random.below(10) {
            0 | 1 if self.open.is_none() => {
                let id = bench.declare(self.controller);
                self.open = Some(Open { id, posts: Vec::new(), accepts: Vec::new() });
            }
            0..=3 => self.send(bench, book, random),
            4..=6 => self.accept(bench, book, random),
            7 | 8 => {
                let commits = random.chance(60);
                self.end(bench, book, commits);
            }
            _ => {}
        }
    }

    fn send(&mut self, bench: &mut Bench, book: &mut Book, random: &mut Random) {
        for _ in 0..random.between(1, 4) {
            let queue = random.below(2);
            let number = book.next;
            book.next += 1;
            let bytes = text(&number.to_string()).to_bytes();
            match &mut self.open {
                Some(open) if random.chance(80) => {
                    let settled = random.chance(30);
                    bench.post_within(self.senders[queue], &open.id, &bytes, settled);
                    open.posts.push((queue, number));
                }
                _ => {
                    // All that was sent before has come before it.
                    bench.send_bytes(self.senders[queue], &bytes, random.chance(30));
                    book.queues[queue].push(number);
                }
            }
        }
        bench.run();
    }

    fn accept(&mut self, bench: &mut Bench, book: &mut Book, random: &mut Random) {
        for _ in 0..random.between(1, 3) {
            if self.held.is_empty() {
                return;
            }
            let (queue, number, got) = self.held.swap_remove(random.below(self.held.len()));
            match &mut self.open {
                Some(open) if random.chance(80) => {
                    let settled = random.chance(60);
                    bench.conclude(&got, accepted(&open.id), settled);
                    open.accepts.push((queue, number, got, settled));
                }
                _ => {
                    bench.accept(&[got]);
                    book.remove(queue, number);
                }
            }
        }
    }

    fn end(&mut self, bench: &mut Bench, book: &mut Book, commits: bool) {
        let Some(open) = self.open.take() else { return };
        if commits {
            bench.commit(self.controller, &open.id);
            book.committed += 1;
            open.accepts.iter().for_each(|(queue, number, ..)| book.remove(*queue, *number));
            open.posts.into_iter().for_each(|(queue, number)| book.queues[queue].push(number));
        } else {
            bench.roll_back(self.controller, &open.id);
            book.rolled_back += u64::from(open.has_done_something());
            // What was not settled is still with the client.
            let kept = open.accepts.into_iter().filter(|(.., settled)| !settled);
            self.held.extend(kept.map(|(queue, number, got, _)| (queue, number, got)));
        }
    }
}

impl Book {
    fn remove(&mut self, queue: usize, number: u64) {
        let at = self.queues[queue].iter().position(|it| *it == number);
        self.queues[queue].remove(at.expect("it was delivered, so it is there"));
    }
}

fn play(seed: u64) -> (u64, u64, u64) {
    let mut random = Random::new(seed);
    let mut bench = Bench::new();
    let mut book = Book::default();
    let mut actors: Vec<Actor> = (0..3).map(|_| Actor::new(&mut bench)).collect();
    for _ in 0..random.between(20, 80) {
        let index = random.below(actors.len());
        let actor = &mut actors[index];
        if random.chance(4) {
            // It dies, or closes; its transaction dies with it, and what it held comes back.
            if random.chance(50) {
                bench.kill(actor.client);
            } else {
                bench.close(actor.client);
            }
            book.died += u64::from(actor.open.as_ref().is_some_and(Open::has_done_something));
            actors[index] = Actor::new(&mut bench);
        } else {
            actor.act(&mut bench, &mut book, &mut random);
        }
        actors.iter_mut().for_each(|actor| actor.look(&mut bench, &book));
        let held: Vec<_> = actors.iter().flat_map(|it| &it.held).map(|it| (it.0, it.1)).collect();
        let once: BTreeSet<_> = held.iter().collect();
        assert_eq!(once.len(), held.len(), "somebody has what another has: {held:?}");
    }
    let (open, committed, rolled_back) = bench.totals();
    assert_eq!(open, actors.iter().filter(|actor| actor.open.is_some()).count() as u64);
    assert_eq!((committed, rolled_back), (book.committed, book.rolled_back + book.died));
    actors.iter().for_each(|actor| bench.kill(actor.client));
    // What is left is what was committed and not taken out, each in its place.
    let client = bench.client();
    for (queue, numbers) in QUEUES.into_iter().zip(&book.queues) {
        let receiver = bench.receiver(client, queue, 10_000);
        let left: Vec<u64> = bench.texts(receiver).iter().map(|it| it.parse().unwrap()).collect();
        assert_eq!(left, *numbers, "queue '{queue}'");
    }
    bench.expect_nothing_left();
    (book.committed, book.rolled_back, book.died)
}

#[test]
fn transactions_do_all_or_nothing_whatever_their_clients_do() {
    let (mut committed, mut rolled_back, mut died) = (0, 0, 0);
    for seed in 0..400 {
        let result = std::panic::catch_unwind(|| play(seed));
        let Ok(played) = result else { panic!("seed {seed} fails") };
        committed += played.0;
        rolled_back += played.1;
        died += played.2;
    }
    assert!(committed > 400 && rolled_back > 200 && died > 50, "{committed} {rolled_back} {died}");
}
