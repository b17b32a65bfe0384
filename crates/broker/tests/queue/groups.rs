//! Messages of one group are with one consumer at a time.

use crate::bench::{BenchConsumer, QueueBench, message};
use mochila_broker::{Outcome, QueueError, QueueSettings, TakeLimit, Taking};
use mochila_wire::{Map, Message, Value};

fn grouped() -> QueueSettings {
    QueueSettings {
        shared_groups: true,
        group_header_key: Some("group".into()),
        ..QueueSettings::default()
    }
}

fn bench() -> QueueBench {
    QueueBench::new(grouped())
}

fn of_group(text: &str, group: impl Into<Value>) -> Message {
    let mut message = message(text);
    message.set_application_property("group", group);
    message
}

/// Sends messages whose texts begin with the name of their group.
fn send(bench: &mut QueueBench, texts: &[&str]) {
    bench.send_messages(texts.iter().map(|text| of_group(text, &text[..1])).collect());
}

/// The groups: name, messages, acquired.
fn groups(bench: &QueueBench) -> Vec<(String, u64, u64)> {
    let groups = bench.queue.groups(100).into_iter();
    groups.map(|group| (group.id, group.messages, group.acquired)).collect()
}

const HERE_NEVER: Outcome =
    Outcome::Modify { failed: false, undeliverable_here: true, annotations: None };

#[test]
fn a_group_is_its_owners_until_it_holds_nothing_of_it() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0", "x1", "y0", "x2"]);
    assert_eq!(bench.take(a, 1).texts, ["x0"]);
    assert_eq!(bench.take(b, 10).texts, ["y0"]);
    let got = bench.take(a, 1);
    assert_eq!(got.texts, ["x1"], "the owner gets more of its group");
    bench.accept(a, &[0]);
    assert!(bench.take(b, 10).texts.is_empty(), "it still holds one");
    bench.accept(a, &[1]);
    assert_eq!(bench.take(b, 10).texts, ["x2"]);
}

#[test]
fn free_groups_are_taken_in_the_order_of_their_oldest_messages() {
    let mut bench = bench();
    let a = bench.consumer();
    send(&mut bench, &["x0", "y0", "x1", "z0", "y1"]);
    assert_eq!(bench.take(a, 10).texts, ["x0", "y0", "x1", "z0", "y1"]);
    bench.release(a, &[0, 1, 2, 3, 4]);
    assert_eq!(bench.take(a, 10).texts, ["x0", "y0", "x1", "z0", "y1"]);
}

#[test]
fn what_others_own_is_passed_over_however_much_of_it_lies_between() {
    for between in [1, 3, 4, 5, 130, 300] {
        let mut bench = bench();
        let (a, b) = (bench.consumer(), bench.consumer());
        send(&mut bench, &["x0"]);
        assert_eq!(bench.take(a, 1).texts, ["x0"]);
        let own = vec!["x1"; between];
        let texts = [&["y0"], &own[..], &["z0", "y1"], &own[..], &["y2", "z1"]].concat();
        send(&mut bench, &texts);
        assert_eq!(bench.take(b, 1_000).texts, ["y0", "z0", "y1", "y2", "z1"]);
        assert_eq!(bench.take(a, 1_000).texts, vec!["x1"; 2 * between]);
    }
}

#[test]
fn c1_only_the_oldest_message_of_a_free_group_can_be_acquired() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0", "x1", "y0"]);
    assert_eq!(bench.take(a, 1).texts, ["x0"]);
    bench.settle(a, &[0], HERE_NEVER);
    assert_eq!(bench.take(a, 10).texts, ["y0"], "x1 is not the oldest");
    assert_eq!(bench.take(b, 1).texts, ["x0"]);
    assert_eq!(bench.take(a, 10).taking, Taking::Waiting);
    bench.woken();
    bench.accept(b, &[0]);
    assert_eq!(bench.woken(), [a.key]);
    assert_eq!(bench.take(a, 10).texts, ["x1"]);
}

#[test]
fn an_owner_does_not_get_around_a_message_that_it_refused_either() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0", "x1", "x2"]);
    assert_eq!(bench.take(a, 2).texts, ["x0", "x1"]);
    bench.settle(a, &[1], HERE_NEVER);
    assert!(bench.take(a, 10).texts.is_empty());
    assert!(bench.take(b, 10).texts.is_empty());
    bench.accept(a, &[0]);
    assert_eq!(bench.take(b, 10).texts, ["x1", "x2"]);
}

#[test]
fn c7_released_messages_go_back_to_their_places_in_whatever_order_they_come() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0", "x1", "x2", "x3", "x4", "x5"]);
    assert_eq!(bench.take(a, 5).texts.len(), 5);
    for position in [3, 1, 4, 2, 0] {
        bench.release(a, &[position]);
    }
    assert_eq!(bench.take(b, 10).texts, ["x0", "x1", "x2", "x3", "x4", "x5"]);
}

#[test]
fn what_an_owner_releases_comes_before_the_rest_of_the_group() {
    let mut bench = bench();
    let a = bench.consumer();
    send(&mut bench, &["x0", "x1", "x2", "x3"]);
    bench.take(a, 3);
    bench.release(a, &[1]);
    assert_eq!(bench.take(a, 10).texts, ["x1", "x3"]);
}

#[test]
fn whatever_frees_a_group_wakes_a_consumer_that_waits() {
    let free: [fn(&mut QueueBench, crate::bench::BenchConsumer); 5] = [
        |bench, a| bench.accept(a, &[0]),
        |bench, a| bench.settle(a, &[0], Outcome::Reject),
        |bench, a| bench.release(a, &[0]),
        |bench, a| bench.settle(a, &[0], HERE_NEVER),
        |bench, a| bench.unsubscribe(a),
    ];
    for free in free {
        let mut bench = bench();
        let (a, b) = (bench.consumer(), bench.consumer());
        send(&mut bench, &["x0", "x1"]);
        assert_eq!(bench.take(a, 1).texts, ["x0"]);
        assert_eq!(bench.take(b, 1).taking, Taking::Waiting);
        assert!(bench.woken().is_empty());
        free(&mut bench, a);
        assert_eq!(bench.woken(), [b.key]);
        assert_eq!(bench.take(b, 1).texts.len(), 1);
    }
}

#[test]
fn a_message_that_expires_or_is_purged_makes_way_for_the_next_of_its_group() {
    for purge in [false, true] {
        let mut bench = bench();
        let a = bench.consumer();
        let mut first = of_group("x0", "x");
        first.header_mut().ttl = Some(50);
        bench.send_messages(vec![first, of_group("x1", "x")]);
        bench.take(a, 1);
        bench.settle(a, &[0], HERE_NEVER);
        assert_eq!(bench.take(a, 1).taking, Taking::Waiting);
        bench.woken();
        if purge {
            bench.queue.purge(bench.now, 1).1.perform();
        } else {
            bench.pass(100);
        }
        assert_eq!(bench.woken(), [a.key]);
        assert_eq!(bench.take(a, 1).texts, ["x1"]);
    }
}

#[test]
fn messages_that_have_expired_are_passed_over_when_they_are_met() {
    let mut bench = bench();
    let a = bench.consumer();
    let mut messages: Vec<_> = ["x0", "x1", "y0", "x2"].map(|t| of_group(t, &t[..1])).into();
    messages[0].header_mut().ttl = Some(50);
    messages[1].header_mut().ttl = Some(50);
    bench.send_messages(messages);
    bench.now = bench.now.after(100);
    assert_eq!(bench.take(a, 10).texts, ["y0", "x2"]);
    assert_eq!(bench.statistics().discards_ttl, 2);
}

#[test]
fn a_consumer_that_detaches_hands_its_groups_over() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0", "y0", "x1", "y1"]);
    bench.take(a, 3);
    bench.take(b, 10);
    bench.unsubscribe(a);
    assert!(bench.woken().contains(&b.key));
    assert_eq!(bench.take(b, 10).texts, ["x0", "y0", "x1", "y1"]);
}

#[test]
fn an_owner_that_waits_is_woken_by_a_message_of_its_group_and_nobody_else_is() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0"]);
    assert_eq!(bench.take(b, 5).texts, ["x0"]);
    assert_eq!(bench.take(a, 5).taking, Taking::Waiting);
    assert_eq!(bench.take(b, 5).taking, Taking::Waiting);
    send(&mut bench, &["x1"]);
    assert_eq!(bench.woken(), [b.key]);
    assert_eq!(bench.take(b, 5).texts, ["x1"]);
    bench.take(b, 5);
    send(&mut bench, &["y0"]);
    assert_eq!(bench.woken(), [a.key], "it has waited longest");
}

#[test]
fn two_consumers_share_the_groups() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    bench.take(a, 10);
    bench.take(b, 10);
    send(&mut bench, &["u0", "v0", "u1", "w0", "x0", "v1"]);
    assert_eq!(bench.woken(), [a.key, b.key]);
    assert_eq!(bench.take(a, 4).texts, ["u0", "v0", "u1", "v1"]);
    assert_eq!(bench.take(b, 10).texts, ["w0", "x0"]);
}

#[test]
fn a_limit_of_bytes_is_kept_and_the_rest_follows() {
    let mut bench = bench();
    let a = bench.consumer();
    send(&mut bench, &["x0", "x1", "y0"]);
    let got = bench.take_limited(a, TakeLimit { messages: 10, bytes: 0 });
    assert_eq!((got.texts, got.taking), (vec!["x0".to_owned()], Taking::More));
    assert_eq!(bench.take(a, 10).texts, ["x1", "y0"]);
}

#[test]
fn a_consumer_that_settles_at_once_leaves_the_group_free() {
    let mut bench = bench();
    let a = bench.subscribe(|options| options.settled = true);
    let b = bench.consumer();
    send(&mut bench, &["x0", "x1", "x2"]);
    assert_eq!(bench.take(a, 2).texts, ["x0", "x1"]);
    assert_eq!(bench.take(b, 1).texts, ["x2"]);
    assert_eq!(bench.statistics().msg_depth, 1);
}

#[test]
fn browsers_see_everything() {
    let mut bench = bench();
    let (a, browser) = (bench.consumer(), bench.browser());
    send(&mut bench, &["x0", "x1", "y0"]);
    bench.take(a, 1);
    assert_eq!(bench.take(browser, 10).texts, ["x1", "y0"]);
    bench.release(a, &[0]);
    let late = bench.browser();
    assert_eq!(bench.take(late, 10).texts, ["x0", "x1", "y0"]);
}

#[test]
fn c3_messages_that_name_no_group_are_one_group() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    bench.send_messages(vec![message("0"), of_group("1", ""), of_group("2", "qpid.no-group")]);
    assert_eq!(bench.take(a, 1).texts, ["0"]);
    assert!(bench.take(b, 10).texts.is_empty());
    assert_eq!(groups(&bench), [("qpid.no-group".to_owned(), 3, 1)]);
}

#[test]
fn c3_messages_that_name_no_group_may_be_free() {
    let settings = QueueSettings { default_group: Some("".into()), ..grouped() };
    let mut bench = QueueBench::new(settings);
    let (a, b) = (bench.consumer(), bench.consumer());
    bench.send_messages(vec![message("0"), of_group("x0", "x"), message("1"), of_group("x1", "x")]);
    assert_eq!(bench.take(a, 2).texts, ["0", "x0"]);
    assert_eq!(bench.take(b, 10).texts, ["1"]);
    bench.release(a, &[0]);
    assert_eq!(bench.take(b, 10).texts, ["0"]);
    bench.accept(b, &[0, 2]);
    assert_eq!(groups(&bench), [("x".to_owned(), 2, 1)]);
}

#[test]
fn seven_is_one_group_as_a_number_and_as_text() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    bench.send_messages(vec![of_group("0", 7u32), of_group("1", "7"), of_group("2", true)]);
    assert_eq!(bench.take(a, 1).texts, ["0"]);
    assert_eq!(bench.take(b, 10).texts, ["2"]);
}

#[test]
fn without_a_key_the_group_is_the_property_group_id() {
    let mut bench = QueueBench::new(QueueSettings { shared_groups: true, ..Default::default() });
    let (a, b) = (bench.consumer(), bench.consumer());
    let of_group = |text: &str, group: &str| {
        let mut message = message(text);
        message.properties_mut().group_id = Some(group.into());
        message
    };
    bench.send_messages(vec![of_group("x0", "x"), of_group("x1", "x"), of_group("y0", "y")]);
    assert_eq!(bench.take(a, 1).texts, ["x0"]);
    assert_eq!(bench.take(b, 10).texts, ["y0"]);
}

#[test]
fn the_last_message_of_a_group_ends_it_and_its_name_begins_another() {
    let mut bench = bench();
    let (a, b) = (bench.consumer(), bench.consumer());
    let mut last = of_group("x1", "x");
    last.properties_mut().group_sequence = Some(u32::MAX);
    bench.send_messages(vec![of_group("x0", "x"), last, of_group("x2", "x")]);
    assert_eq!(bench.take(a, 1).texts, ["x0"]);
    assert_eq!(bench.take(b, 10).texts, ["x2"], "it is another group");
    assert_eq!(bench.take(a, 10).texts, ["x1"]);
    let x = || "x".to_owned();
    assert_eq!(groups(&bench), [(x(), 2, 2), (x(), 1, 1)]);
}

#[test]
fn a_new_consumer_gets_nothing_of_owned_groups_unless_they_are_shared_out_again() {
    for rebalances_groups in [false, true] {
        let mut bench = QueueBench::new(QueueSettings { rebalances_groups, ..grouped() });
        let a = bench.consumer();
        send(&mut bench, &["x0", "y0", "x1", "y1", "x2", "y2"]);
        assert_eq!(bench.take(a, 3).texts, ["x0", "y0", "x1"]);
        let b = bench.consumer();
        assert!(bench.take(b, 10).texts.is_empty(), "both groups are owned");
        if !rebalances_groups {
            assert_eq!(bench.take(a, 10).texts, ["y1", "x2", "y2"]);
            continue;
        }
        assert!(bench.take(a, 10).texts.is_empty(), "it finishes what it holds");
        bench.idle(a);
        bench.accept(a, &[0]);
        assert!(bench.take(b, 10).texts.is_empty(), "x1 is still held");
        bench.woken();
        bench.accept(a, &[1]);
        assert_eq!(bench.woken(), [b.key], "y is free");
        assert_eq!(bench.take(b, 2).texts, ["y1", "y2"]);
        bench.accept(a, &[2]);
        assert_eq!(bench.take(a, 10).texts, ["x2"]);
    }
}

#[test]
fn groups_are_told_with_their_owners_and_forgotten_when_they_are_empty() {
    let mut bench = bench();
    let a = bench.consumer();
    send(&mut bench, &["x0", "y0", "x1"]);
    bench.take(a, 1);
    let groups = bench.queue.groups(1);
    assert_eq!((groups.len(), bench.queue.group_count()), (1, 2));
    assert_eq!((groups[0].id.as_str(), groups[0].owner), ("x", Some(a.id)));
    assert_eq!((groups[0].messages, groups[0].acquired), (2, 1));
    bench.take(a, 10);
    bench.accept(a, &[0, 1, 2]);
    assert_eq!(bench.queue.group_count(), 0);
    bench.unsubscribe(a);
    assert_eq!(bench.statistics().memory_bytes, 0);
}

#[test]
fn an_empty_queue_can_be_given_groups_and_one_with_messages_cannot() {
    let mut bench = QueueBench::default();
    bench.send(&["0"]);
    let refused = bench.queue.set_settings(bench.now, grouped());
    assert!(matches!(refused, Err(QueueError::NotEmpty { messages: 1, .. })));
    bench.queue.purge(bench.now, 1).1.perform();
    bench.queue.set_settings(bench.now, grouped()).unwrap().perform();
    let (a, b) = (bench.consumer(), bench.consumer());
    send(&mut bench, &["x0", "x1"]);
    assert_eq!(bench.take(a, 1).texts, ["x0"]);
    assert!(bench.take(b, 1).texts.is_empty());
    let same = QueueSettings { rebalances_groups: true, max_count: Some(9), ..grouped() };
    bench.queue.set_settings(bench.now, same).unwrap().perform();
    send(&mut bench, &["x2"]);
    assert_eq!(groups(&bench), [("x".to_owned(), 3, 1)]);
}

#[test]
fn groups_are_asked_for_by_arguments() {
    let arguments = Map::new()
        .with("qpid.group_header_key", Value::from("GROUP-ID"))
        .with("qpid.shared_msg_group", Value::Int(1));
    let settings = QueueSettings::from_arguments(&arguments).unwrap();
    assert!(settings.shared_groups);
    assert_eq!(settings.group_header_key.as_deref(), Some("GROUP-ID"));
    let alone = QueueSettings { shared_groups: false, ..settings };
    let bench = QueueBench::default();
    assert!(matches!(bench.broker.create("p", alone), Err(QueueError::Settings(_))));
}

/// A consumer that wants to hear of groups that others get.
fn listening(bench: &mut QueueBench) -> BenchConsumer {
    bench.subscribe(|options| options.wants_lost_groups = true)
}

/// The names of the groups that a consumer hears to have lost as it takes nothing.
fn heard(bench: &mut QueueBench, consumer: BenchConsumer) -> Vec<String> {
    let lost = bench.queue.take_lost_groups(consumer.id);
    lost.and_then(|lost| lost.names().map(<[String]>::to_vec)).unwrap_or_default()
}

#[test]
fn c4_a_group_is_handed_over_only_when_its_old_owner_holds_none_of_it() {
    let mut bench = QueueBench::new(QueueSettings { rebalances_groups: true, ..grouped() });
    let old = listening(&mut bench);
    send(&mut bench, &["x0", "x1", "x2", "x3"]);
    assert_eq!(bench.take(old, 2).texts, ["x0", "x1"]);
    let new = bench.consumer();
    bench.idle(old);
    for (settled, position) in [(false, None), (false, Some(1)), (true, Some(0))] {
        bench.accept(old, &position.into_iter().collect::<Vec<_>>());
        let got = bench.take(new, 1).texts;
        assert_eq!(got, if settled { vec!["x2"] } else { vec![] });
    }
    assert!(bench.take(old, 10).texts.is_empty(), "the new one has it now");
}

#[test]
fn c4_the_old_owner_hears_which_groups_others_have_got_and_is_called_for_that() {
    let mut bench = QueueBench::new(QueueSettings { rebalances_groups: true, ..grouped() });
    let (old, deaf) = (listening(&mut bench), bench.consumer());
    send(&mut bench, &["x0", "y0", "z0", "x1", "y1", "z1"]);
    assert_eq!(bench.take(old, 2).texts, ["x0", "y0"]);
    assert_eq!(bench.take(deaf, 1).texts, ["z0"]);
    let new = listening(&mut bench);
    bench.accept(old, &[0, 1]);
    bench.accept(deaf, &[2]);
    assert!(heard(&mut bench, old).is_empty(), "nobody else has them yet");
    bench.woken();
    assert_eq!(bench.take(new, 10).texts, ["x1", "y1", "z1"]);
    assert_eq!(bench.woken(), [old.key], "once, and only who wants to hear of it");
    assert_eq!(heard(&mut bench, old), ["x", "y"]);
    assert!(heard(&mut bench, old).is_empty(), "it has heard");
    assert!(heard(&mut bench, new).is_empty(), "it has lost nothing");
}

#[test]
fn c4_who_gets_a_group_back_hears_first_that_it_was_gone() {
    let mut bench = bench();
    let (a, b) = (listening(&mut bench), listening(&mut bench));
    send(&mut bench, &["x0", "x1", "x2", "x3"]);
    bench.take(a, 1);
    bench.accept(a, &[0]);
    bench.take(b, 1);
    bench.accept(b, &[1]);
    let got = bench.take(a, 1);
    assert_eq!(
        (got.texts, got.lost.unwrap().names().unwrap()),
        (vec!["x2".into()], &["x".into()][..])
    );
    bench.accept(a, &[2]);
    let got = bench.take(a, 1);
    assert_eq!((got.texts, got.lost), (vec!["x3".into()], None), "nobody had it in between");
}

#[test]
fn c4_a_consumer_hears_nothing_of_what_the_one_before_in_its_place_has_lost() {
    let mut bench = bench();
    let (a, b) = (listening(&mut bench), listening(&mut bench));
    send(&mut bench, &["x0", "x1"]);
    bench.take(a, 1);
    bench.accept(a, &[0]);
    bench.unsubscribe(a);
    let next = listening(&mut bench);
    assert_eq!(bench.take(b, 1).texts, ["x1"]);
    assert!(heard(&mut bench, next).is_empty());
}

#[test]
fn c4_too_many_lost_groups_are_not_named() {
    let mut bench = bench();
    let (a, b) = (listening(&mut bench), bench.consumer());
    for _ in 0..2 {
        bench.send_messages((0..100u32).map(|n| of_group("", n)).collect());
    }
    let got = bench.take(a, 100);
    bench.accept(a, &got.positions());
    assert_eq!(bench.take(b, 100).texts.len(), 100);
    assert_eq!(bench.queue.take_lost_groups(a.id).unwrap().names(), None);
}
