//! Senders that respect their credit are held back, and not rejected.

use crate::bench::raw::{framed, whole};
use crate::bench::{Bench, Client, Link, bytes_of, pattern};
use mochila_engine::AttachRequest;
use mochila_wire::{DeliveryState, Encode, Map, Message, Source, Target};

/// A node on which everything is a thousandth as large as usual.
fn small_node(max_bytes: u64) -> Bench {
    small_node_with(max_bytes, 8_192)
}

/// The same with another window for sessions.
fn small_node_with(max_bytes: u64, window: u32) -> Bench {
    let bench = Bench::with(|setup| {
        setup.engine.incoming_window = window;
        setup.broker.defaults.max_bytes = max_bytes;
        setup.settings.large_message_bytes = 20_000;
    });
    bench.create("q", |_| {});
    bench
}

/// Sends messages of a size as long as there is credit, at most so many, in one go.
fn send_all(bench: &mut Bench, sender: Link, bytes: &[u8], most: u32) -> u32 {
    let mut sent = 0;
    while sent < most && bench.credit(sender) > 0 {
        if !bench.may_begin(sender) {
            bench.run();
            continue;
        }
        bench.post(sender, &Default::default(), bytes);
        sent += 1;
    }
    sent
}

/// Writes messages as long as there is credit and the session's window is open, before the node
/// reads any of them.
fn write_all(bench: &mut Bench, sender: Link, bytes: &[u8], most: u32) -> u32 {
    let mut sent = 0;
    while sent < most && bench.credit(sender) > 0 && bench.may_begin(sender) {
        bench.post(sender, &Default::default(), bytes);
        sent += 1;
    }
    sent
}

/// Takes one message and accepts it.
fn consume_one(bench: &mut Bench, receiver: Link) {
    bench.grant(receiver, 1);
    let got = bench.got(receiver);
    bench.accept(&got);
}

fn expect_accepted(bench: &mut Bench, sender: Link) -> usize {
    let states = bench.states(sender);
    for state in &states {
        assert_eq!(*state, DeliveryState::Accepted);
    }
    states.len()
}

#[test]
fn the_third_message_of_half_the_queues_size_waits_and_is_not_rejected() {
    let mut bench = small_node(1_000_000);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let body = bytes_of(500_000);
    for _ in 0..2 {
        assert!(bench.credit(sender) > 0);
        bench.deliver(sender, &Default::default(), &body);
    }
    assert_eq!(bench.credit(sender), 0, "the queue is above 80 %");
    assert_eq!(expect_accepted(&mut bench, sender), 2);
    let receiver = bench.receiver(client, "q", 0);
    consume_one(&mut bench, receiver);
    assert!(bench.credit(sender) > 0);
}

#[test]
fn credit_goes_down_while_a_large_message_is_still_coming_in() {
    let mut bench = small_node(10_000_000);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let before = bench.credit(sender);
    let body = bytes_of(5_000_000);
    let delivery = mochila_engine::Delivery::default();
    let link = bench.link_id(sender);
    let engine = bench.engine(client);
    let mut wire = engine.outgoing(link).unwrap();
    let mut sent = wire.start_large(&delivery, &body[..3_000_000]).taken;
    let mut wire = engine.outgoing(link).unwrap();
    sent += wire.continue_large(&body[sent..3_000_000], false).taken;
    bench.run();
    assert!(sent > 2_000_000, "{sent}");
    assert!(before > 100 && bench.credit(sender) < 4, "{before} {}", bench.credit(sender));
}

#[test]
fn what_was_sent_before_the_credit_went_down_is_taken_beyond_the_limit() {
    let mut bench = small_node(1_000_000);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let sent = send_all(&mut bench, sender, &bytes_of(300_000), 10);
    bench.run();
    assert_eq!(expect_accepted(&mut bench, sender), sent as usize);
    assert_eq!(bench.credit(sender), 0);
}

#[test]
fn what_was_sent_to_an_exchange_before_its_only_queue_took_the_credit_back_is_taken() {
    let mut bench = small_node(100_000);
    let queue = bench.queue("q");
    let exchange = bench.node.broker.exchange("amq.direct").unwrap();
    exchange.bind(bench.now, &queue, "k", Map::new()).unwrap().1.perform();
    let clients = [bench.client(), bench.client(), bench.client()];
    let body = bytes_of(1_000);
    let senders = clients.map(|client| {
        let sender = bench.sender(client, "amq.direct/k");
        bench.deliver(sender, &Default::default(), &body);
        assert_eq!(expect_accepted(&mut bench, sender), 1);
        sender
    });
    // Each has credit for its share of the room, as if those that came later were not there.
    let sent = senders.map(|sender| write_all(&mut bench, sender, &body, 1_000));
    bench.run();
    for (sender, sent) in senders.into_iter().zip(sent) {
        assert!(sent > 20);
        assert_eq!(expect_accepted(&mut bench, sender), sent as usize);
        assert_eq!(bench.credit(sender), 0);
    }
    let bytes = queue.statistics().byte_depth;
    assert!(bytes > 100_000 && bytes < 400_000, "what was under way is beyond the limit: {bytes}");
    let receiver = bench.receiver(clients[0], "q", 1_000);
    let got = bench.got(receiver);
    bench.accept(&got);
    assert!(senders.into_iter().all(|sender| bench.credit(sender) > 0), "there is room again");
}

#[test]
fn a_new_sender_to_an_exchange_is_not_rejected_by_a_small_queue() {
    let mut message = Message::of_value("m");
    message.properties_mut().subject = Some("k".into());
    let body = message.to_bytes();
    for address in ["amq.direct/k", "amq.direct"] {
        let mut bench = Bench::new();
        bench.create("small", |settings| settings.max_count = Some(8));
        let direct = bench.node.broker.exchange("amq.direct").unwrap();
        direct.bind(bench.now, &bench.queue("small"), "k", Map::new()).unwrap().1.perform();
        let client = bench.client();
        for _ in 0..3 {
            let sender = bench.sender(client, address);
            let mut sent = 0;
            while bench.credit(sender) > 0 {
                sent += write_all(&mut bench, sender, &body, 500) as usize;
                bench.run();
            }
            assert_eq!(expect_accepted(&mut bench, sender), sent, "{address}");
            assert_eq!((sent, bench.depth("small")), (7, 7), "more than six stop producers");
            bench.close_link(sender);
            bench.queue("small").purge(bench.now, u64::MAX).1.perform();
        }
    }
}

#[test]
fn a_sender_to_an_exchange_is_not_rejected_by_a_small_queue_that_is_bound_while_it_is_there() {
    let mut message = Message::of_value("m");
    message.properties_mut().subject = Some("k".into());
    let body = message.to_bytes();
    for address in ["amq.direct/k", "amq.direct"] {
        for burst in [1, 20, 200] {
            let mut bench = Bench::new();
            let client = bench.client();
            let sender = bench.sender(client, address);
            bench.deliver(sender, &Default::default(), &body);
            assert_eq!(expect_accepted(&mut bench, sender), 1);
            bench.create("small", |settings| settings.max_count = Some(8));
            let direct = bench.node.broker.exchange("amq.direct").unwrap();
            direct.bind(bench.now, &bench.queue("small"), "k", Map::new()).unwrap().1.perform();
            let mut sent = 0;
            while bench.credit(sender) > 0 && sent < 500 {
                sent += write_all(&mut bench, sender, &body, burst) as usize;
                bench.run();
            }
            assert_eq!(expect_accepted(&mut bench, sender), sent, "{address}, {burst} at once");
            assert!(sent <= 7 + burst as usize, "it stops soon: {sent}");
        }
    }
}

#[test]
fn a_message_that_the_queue_can_never_hold_is_rejected_before_all_of_it_has_come() {
    let mut bench = small_node(1_000_000);
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.deliver(sender, &Default::default(), &bytes_of(5_000_000));
    assert!(matches!(bench.states(sender)[..], [DeliveryState::Rejected { .. }]));
    assert!(bench.files.written() < 3_000_000, "{}", bench.files.written());
    bench.deliver(sender, &Default::default(), &bytes_of(100));
    assert_eq!(expect_accepted(&mut bench, sender), 1);
}

#[test]
fn a_queue_that_nobody_reads_takes_its_share_of_memory_and_others_go_on() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 2_000_000);
    let client = bench.client();
    let unread = bench.sender(client, "unread");
    while bench.credit(unread) > 0 {
        bench.deliver(unread, &Default::default(), &bytes_of(1_000));
    }
    let numbers = bench.numbers("unread");
    assert_eq!((numbers.flow_stopped, numbers.memory_stopped), (1, 1));
    for number in 0..5 {
        let name = format!("busy-{number}");
        let (sender, receiver) = (bench.sender(client, &name), bench.receiver(client, &name, 0));
        for _ in 0..500 {
            assert!(bench.credit(sender) > 0, "{name} is held back");
            bench.deliver(sender, &Default::default(), &bytes_of(1_000));
            consume_one(&mut bench, receiver);
        }
        assert_eq!(expect_accepted(&mut bench, sender), 500);
        assert_eq!(bench.numbers(&name).memory_stopped, 0);
    }
    assert_eq!(bench.credit(unread), 0);
    assert_eq!(bench.node.broker.budget().refused(), 0);
    let receiver = bench.receiver(client, "unread", 0);
    for _ in 0..400 {
        consume_one(&mut bench, receiver);
    }
    assert!(bench.credit(unread) > 0, "its own messages have gone");
}

#[test]
fn one_queue_that_is_read_goes_on_for_ever_beside_twenty_full_ones() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 4_000_000);
    let client = bench.client();
    let unread: Vec<_> =
        (0..20).map(|number| bench.sender(client, &format!("unread-{number}"))).collect();
    // All send at once whatever they have credit for, until nobody has any.
    while unread.iter().any(|sender| bench.credit(*sender) > 0) {
        for sender in &unread {
            send_all(&mut bench, *sender, &bytes_of(2_000), 50);
        }
        bench.run();
    }
    let (sender, receiver) = (bench.sender(client, "busy"), bench.receiver(client, "busy", 0));
    for round in 0..1_000 {
        assert!(bench.credit(sender) > 0, "held back in round {round}");
        bench.deliver(sender, &Default::default(), &bytes_of(2_000));
        consume_one(&mut bench, receiver);
    }
    assert_eq!(expect_accepted(&mut bench, sender), 1_000);
    assert!(unread.iter().all(|sender| bench.credit(*sender) == 0));
}

#[test]
fn many_who_use_all_their_credit_at_once_are_all_let_in() {
    for (limit_mib, senders, message_bytes) in
        [(8, 40, 2_000), (8, 40, 200), (8, 10, 20_000), (32, 6, 2_000), (64, 20, 10_000)]
    {
        println!("{limit_mib} MiB, {senders} senders of {message_bytes} bytes");
        let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = limit_mib << 20);
        let client = bench.client();
        let (busy, receiver) = (bench.sender(client, "busy"), bench.receiver(client, "busy", 0));
        let unread: Vec<_> =
            (0..senders).map(|number| bench.sender(client, &format!("unread-{number}"))).collect();
        let body = bytes_of(message_bytes);
        let mut rounds = 0;
        while unread.iter().any(|sender| bench.credit(*sender) > 0) {
            // Nothing is read from the wire before all of them have written what they may.
            let sent: u32 =
                unread.iter().map(|sender| write_all(&mut bench, *sender, &body, 100_000)).sum();
            bench.run();
            assert!(sent > 0 && rounds < 100_000, "it comes to an end");
            rounds += 1;
            assert!(bench.credit(busy) > 0, "held back in round {rounds}");
            bench.deliver(busy, &Default::default(), &body);
            consume_one(&mut bench, receiver);
        }
        let budget = bench.node.broker.budget();
        assert_eq!(budget.refused(), 0, "{budget:?}");
        let most = budget.limit().unwrap();
        assert!(budget.used() > most / 2, "and they have filled it: {budget:?}");
        assert_eq!(expect_accepted(&mut bench, busy), rounds);
        for sender in unread {
            expect_accepted(&mut bench, sender);
        }
    }
}

/// As many senders as there are queues for, which use all their credit again and again until nobody
/// has any; one queue is read.
fn flood(limit_mib: u64, senders: usize, message_bytes: usize, to: impl Fn(usize) -> String) {
    println!("{limit_mib} MiB, {senders} senders of {message_bytes} bytes to {}", to(0));
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = limit_mib << 20);
    for number in 0..4 {
        let name = format!("unread-{number}");
        bench.create(&name, |_| {});
        for (exchange, key) in [("amq.fanout", ""), ("amq.topic", "k.#")] {
            let exchange = bench.node.broker.exchange(exchange).unwrap();
            let bound = exchange.bind(bench.now, &bench.queue(&name), key, Default::default());
            bound.unwrap().1.perform();
        }
    }
    let client = bench.client();
    let (busy, receiver) = (bench.sender(client, "busy"), bench.receiver(client, "busy", 0));
    let unread: Vec<_> = (0..senders).map(|number| bench.sender(client, &to(number))).collect();
    let body = bytes_of(message_bytes);
    let mut brought = 0;
    for _ in 0..20_000 {
        let sent: u32 = unread.iter().map(|sender| write_all(&mut bench, *sender, &body, 9)).sum();
        bench.run();
        if bench.credit(busy) > 0 {
            bench.deliver(busy, &Default::default(), &body);
            consume_one(&mut bench, receiver);
            brought += 1;
        }
        if sent == 0 {
            bench.advance(250);
        }
        if sent == 0 && brought > 1_000 {
            break;
        }
    }
    let budget = bench.node.broker.budget();
    assert_eq!(budget.refused(), 0, "{budget:?}");
    assert!(budget.used() > budget.limit().unwrap() / 2, "and they have filled it: {budget:?}");
    assert!(brought > 1_000, "the queue that is read stands still after {brought}");
    for sender in unread.into_iter().chain([busy]) {
        expect_accepted(&mut bench, sender);
    }
}

#[test]
fn however_many_senders_fill_the_memory_none_is_rejected_and_a_queue_that_is_read_goes_on() {
    for (limit_mib, senders, message_bytes) in
        [(8, 100, 2_000), (8, 200, 2_000), (32, 200, 2_000), (32, 300, 200), (32, 100, 20_000)]
    {
        flood(limit_mib, senders, message_bytes, |number| format!("q-{number}"));
    }
}

#[test]
fn a_queue_that_is_read_goes_on_although_new_senders_take_whatever_becomes_free() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let client = bench.client();
    let (busy, receiver) = (bench.sender(client, "busy"), bench.receiver(client, "busy", 0));
    let mut brought = 0;
    let mut others = Vec::new();
    for number in 0..400 {
        others.push(bench.sender(client, &format!("other-{number}")));
        for sender in &others {
            write_all(&mut bench, *sender, &bytes_of(2_000), 1_000);
        }
        bench.run();
        if bench.credit(busy) > 0 {
            bench.deliver(busy, &Default::default(), &bytes_of(2_000));
            brought += 1;
        }
        // Others come before the message that is there has been taken.
        others.push(bench.sender(client, &format!("late-{number}")));
        consume_one(&mut bench, receiver);
    }
    assert!(bench.node.broker.budget().waiting() > 100, "memory has been short for long");
    assert!(brought > 350, "{brought}");
    assert_eq!(bench.node.broker.budget().refused(), 0);
}

#[test]
fn senders_to_exchanges_are_not_rejected_for_want_of_memory_either() {
    for (limit_mib, senders, message_bytes) in [(8, 60, 2_000), (32, 50, 20_000), (8, 12, 10_000)] {
        flood(limit_mib, senders, message_bytes, |number| format!("amq.topic/k.{number}"));
        flood(limit_mib, senders, message_bytes, |_| "amq.fanout".to_owned());
    }
}

#[test]
fn senders_that_have_waited_with_credit_are_not_rejected_when_memory_has_gone() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let client = bench.client();
    let early: Vec<_> =
        (0..200).map(|number| bench.sender(client, &format!("early-{number}"))).collect();
    assert!(early.iter().all(|sender| bench.credit(*sender) > 0));
    let late = bench.sender(client, "late");
    send_all(&mut bench, late, &bytes_of(2_000), 1_000_000);
    for _ in 0..100 {
        for sender in &early {
            write_all(&mut bench, *sender, &bytes_of(10_000), 1_000);
        }
        bench.run();
        bench.advance(500);
    }
    assert_eq!(bench.node.broker.budget().refused(), 0);
    let sent: usize = early.iter().map(|sender| expect_accepted(&mut bench, *sender)).sum();
    assert!(sent > 20, "{sent}");
    for name in bench.queue_names() {
        bench.queue(&name).purge(bench.now, u64::MAX).1.perform();
    }
    for sender in &early {
        for _ in 0..5 {
            bench.advance(500);
        }
        let (budget, credit) = (bench.node.broker.budget().clone(), bench.credit(*sender));
        assert!(credit > 0, "all of them go on: {budget:?}, {} wait", budget.waiting());
    }
}

#[test]
fn what_does_not_stay_needs_no_memory_and_no_credit_again_with_every_message() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let client = bench.client();
    let controller = bench.controller(client);
    let before = bench.credit(controller);
    bench.declare(controller);
    assert_eq!(bench.credit(controller), before - 1);
}

#[test]
fn a_sender_whose_messages_become_larger_has_less_credit() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 64 << 20);
    let client = bench.client();
    let (sender, receiver) = (bench.sender(client, "q"), bench.receiver(client, "q", 0));
    let mut credit = Vec::new();
    for bytes in [100, 100, 100, 10_000, 10_000, 100_000, 100_000] {
        bench.deliver(sender, &Default::default(), &bytes_of(bytes));
        consume_one(&mut bench, receiver);
        credit.push(bench.credit(sender));
    }
    assert!(credit[1] > 500 && credit[4] < 50 && credit[6] < 4 && credit[6] > 0, "{credit:?}");
}

#[test]
fn senders_that_never_send_hold_up_nobody() {
    let mut bench = Bench::with(|setup| setup.broker.memory_limit_bytes = 8 << 20);
    let client = bench.client();
    // All of them have shown how large their messages are.
    let idle: Vec<_> =
        (0..500).map(|number| bench.sender(client, &format!("idle-{number}"))).collect();
    for (number, sender) in idle.iter().enumerate() {
        bench.deliver(*sender, &Default::default(), &bytes_of(10_000));
        let receiver = bench.receiver(client, &format!("idle-{number}"), 0);
        consume_one(&mut bench, receiver);
        assert!(bench.credit(*sender) > 0, "{number}");
    }
    let budget = bench.node.broker.budget();
    assert!(budget.used() < 1 << 20 && budget.claimed() < 7 << 20, "{budget:?}");
    let (sender, receiver) = (bench.sender(client, "q"), bench.receiver(client, "q", 0));
    for number in 0..3_000 {
        assert!(bench.credit(sender) > 0, "there is memory for message {number}");
        bench.deliver(sender, &Default::default(), &bytes_of(1_000));
        if number % 2 == 0 || number > 2_000 {
            consume_one(&mut bench, receiver);
        }
    }
    assert_eq!(expect_accepted(&mut bench, sender), 3_000);
    bench.close(client);
    assert_eq!(bench.node.broker.budget().claimed(), 0);
}

#[test]
fn a_sender_that_ignores_lower_credit_gets_no_more_in_than_the_window_that_was_open() {
    let mut bench = Bench::with(|setup| {
        setup.broker.defaults.max_bytes = 1_000_000;
        setup.engine.incoming_window = 10;
        setup.engine.max_frame_size = 1_000_000;
    });
    let raw = bench.raw_sender("q");
    let message = bytes_of(300_000);
    let mut accepted = Vec::new();
    // It had credit for twelve, as large as the queue guessed that they would be. From the first
    // one on it is told that it has less; the window was open for nine frames more then.
    for id in 0..12 {
        bench.say_bytes(raw, &framed(0, &whole(0, id), &message));
        let heard = bench.hear(raw);
        let states = heard.dispositions().into_iter().map(|told| told.state);
        accepted.extend(states.map(|state| state == Some(DeliveryState::Accepted)));
    }
    assert_eq!(accepted, [[true; 10].as_slice(), &[false; 2]].concat());
    bench.say_bytes(raw, &framed(0, &whole(0, 12), &message));
    assert_eq!(bench.hear(raw).names(), ["detach"], "that was more than it ever had");
}

#[test]
fn whatever_the_sizes_a_sender_that_respects_its_credit_is_never_rejected() {
    for seed in 1..=40 {
        println!("seed {seed}");
        send_anything(&mut Dice(seed));
    }
}

/// A few senders, some of which could send elsewhere too, a limit, and messages of any size that the
/// queue can hold.
fn send_anything(dice: &mut Dice) {
    let max_bytes = 10_000 + dice.below(1_000_000);
    let mut bench = small_node_with(max_bytes, 2 + dice.below(100) as u32);
    if dice.below(3) == 0 {
        let max_count = 1 + dice.below(50);
        bench.create("counted", |settings| settings.max_count = Some(max_count));
    }
    let name = bench.queue_names().remove(0);
    let clients: Vec<_> = (0..1 + dice.below(4)).map(|_| bench.client()).collect();
    let mut attach = |client: &Client| match dice.below(3) {
        0 => {
            let (source, target) = (Source::default(), Target::default());
            bench.attach(*client, AttachRequest::sender("relay", source, target.into()))
        }
        _ => bench.sender(*client, &name),
    };
    let senders: Vec<_> = clients.iter().map(&mut attach).collect();
    let receiver = bench.receiver(clients[0], &name, 0);
    let mut sent = 0;
    for _ in 0..60 {
        let sender = senders[dice.below(senders.len() as u64) as usize];
        let magnitude = 1 << (1 + dice.below(20));
        let mut message =
            Message::of_data(pattern(1 + dice.below(magnitude.min(max_bytes - 200)) as usize));
        message.properties_mut().to = Some(name.as_str().into());
        let most = 1 + dice.below(20) as u32;
        sent += send_all(&mut bench, sender, &message.to_bytes(), most) as usize;
        if dice.below(2) == 0 {
            bench.run();
        }
        if dice.below(4) == 0 {
            consume_one(&mut bench, receiver);
        }
    }
    bench.run();
    let accepted: usize = senders.iter().map(|sender| expect_accepted(&mut bench, *sender)).sum();
    assert_eq!(accepted, sent);
    while bench.depth(&name) > 0 {
        consume_one(&mut bench, receiver);
    }
    assert!(senders.iter().all(|sender| bench.credit(*sender) > 0), "one waits for ever");
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
        (self.0 >> 33) % bound
    }
}
