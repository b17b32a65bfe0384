//! Queues that are purged or deleted, by somebody or by themselves, while links are attached.

use crate::bench::raw::{credit_of, receiving, sending, whole};
use crate::bench::{Bench, bytes_of, text};
use mochila_broker::DeleteIf;
use mochila_engine::AttachRequest;
use mochila_wire::{DeliveryState, Encode, Map, Source, Target, condition};

fn on_demand(arguments: Map) -> Source {
    Source {
        capabilities: vec!["create-on-demand".into()],
        dynamic_node_properties: Some(arguments),
        ..Source::at("made")
    }
}

#[test]
fn links_of_a_queue_that_is_deleted_are_detached_with_the_reason() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let with_credit = bench.receiver(client, "q", 10);
    let without_credit = bench.receiver(client, "q", 0);
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.run();
    for link in [sender, with_credit, without_credit] {
        let error = bench.detach_error(link);
        assert_eq!(error.condition, condition::RESOURCE_DELETED);
        assert!(error.description.unwrap().contains("'q'"));
    }
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_queue_that_a_link_makes_on_demand_goes_as_its_lifetime_policy_says() {
    let policies = [("delete-on-close", false), ("delete-if-empty", true), ("manual", true)];
    for (policy, stays_filled) in policies {
        let mut bench = Bench::new();
        let (maker, client) = (bench.client(), bench.client());
        let source = on_demand(Map::new().with("qpid.lifetime-policy", policy));
        let target = Target {
            address: source.address,
            capabilities: source.capabilities,
            dynamic_node_properties: source.dynamic_node_properties,
            ..Target::default()
        };
        let request = AttachRequest::sender("maker", Source::default(), target.into());
        let sender = bench.attach(maker, request);
        bench.send(sender, &text("a"));
        let other = bench.sender(client, "made");
        assert_eq!(bench.queue_names(), ["made"], "{policy}");
        bench.kill(maker);
        let expected: &[&str] = if stays_filled { &["made"] } else { &[] };
        assert_eq!(bench.queue_names(), expected, "{policy}: the link that made it is gone");
        assert_eq!(bench.detached(other).is_none(), stays_filled, "{policy}");
        if stays_filled {
            bench.close_link(other);
            let receiver = bench.receiver(client, "made", 1);
            let got = bench.got(receiver).remove(0);
            bench.settle(&got, DeliveryState::Accepted);
            bench.close_link(receiver);
            let expected: &[&str] = if policy == "manual" { &["made"] } else { &[] };
            assert_eq!(bench.queue_names(), expected, "{policy}: it is empty");
        }
    }
}

#[test]
fn a_deleted_queue_that_is_wanted_again_is_a_new_one() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("old"));
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    let sender = bench.sender(client, "q");
    let receiver = bench.receiver(client, "q", 10);
    bench.send(sender, &text("new"));
    assert_eq!(bench.texts(receiver), ["new"]);
}

#[test]
fn what_is_settled_after_its_queue_was_deleted_harms_nobody() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    bench.send(sender, &text("a"));
    let receiver = bench.receiver(client, "q", 1);
    let got = bench.got(receiver).remove(0);
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.settle(&got, DeliveryState::Accepted);
    assert_eq!(bench.closed(client), None);
    bench.expect_nothing_left();
}

#[test]
fn messages_on_their_way_to_a_queue_that_is_just_deleted_are_rejected_or_dropped_with_the_link() {
    let mut bench = Bench::new();
    let raw = bench.raw_sender("q");
    bench.node.broker.delete("q", DeleteIf::default()).unwrap().perform();
    bench.say_with(raw, 0, &whole(0, 0), &text("late").to_bytes());
    let heard = bench.hear(raw);
    assert_eq!(heard.detach().error.unwrap().condition, condition::RESOURCE_DELETED);
    for told in heard.dispositions() {
        assert!(matches!(told.state, Some(DeliveryState::Rejected { .. })));
    }
}

#[test]
fn a_queue_is_deleted_only_if_unused_or_empty_where_that_is_the_condition() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    let unused = DeleteIf { unused: true, empty: false };
    let empty = DeleteIf { unused: false, empty: true };
    let error = bench.node.broker.delete("q", unused).unwrap_err();
    assert_eq!(error.to_amqp().condition, condition::PRECONDITION_FAILED);
    bench.send(sender, &text("a"));
    assert!(bench.node.broker.delete("q", empty).is_err());
    bench.close_link(sender);
    bench.node.broker.delete("q", unused).unwrap().perform();
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_purge_takes_what_nobody_holds_and_leaves_the_links_alone() {
    let mut bench = Bench::new();
    let client = bench.client();
    let sender = bench.sender(client, "q");
    for body in ["held", "purged", "purged"] {
        bench.send(sender, &text(body));
    }
    let receiver = bench.receiver(client, "q", 1);
    let held = bench.got(receiver).remove(0);
    let (purged, wakeups) = bench.queue("q").purge(bench.now, u64::MAX);
    wakeups.perform();
    assert_eq!((purged, bench.depth("q")), (2, 1));
    bench.settle(&held, DeliveryState::Released);
    bench.grant(receiver, 2);
    assert_eq!(bench.texts(receiver), ["held"]);
    bench.send(sender, &text("after"));
    assert_eq!(bench.texts(receiver), ["after"]);
}

#[test]
fn a_purge_lets_producers_go_on_that_were_held_back() {
    let mut bench = Bench::new();
    bench.create("q", |settings| settings.flow_stop_count = Some(3));
    let client = bench.client();
    let sender = bench.sender(client, "q");
    while bench.credit(sender) > 0 {
        bench.send(sender, &text("m"));
    }
    bench.queue("q").purge(bench.now, u64::MAX).1.perform();
    bench.run();
    assert!(bench.credit(sender) > 0);
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_link() {
    let mut bench = Bench::new();
    let client = bench.client();
    let receiver = bench.receiver_of(client, on_demand(Map::new().with("auto-delete", true)), 0);
    let sender = bench.sender(client, "made");
    bench.close_link(receiver);
    assert_eq!(bench.queue_names(), ["made"]);
    bench.close_link(sender);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn an_auto_delete_queue_with_a_delay_waits_for_somebody_to_come_back() {
    let mut bench = Bench::new();
    let client = bench.client();
    let arguments = Map::new().with("auto-delete", true).with("qpid.auto_delete_timeout", 10u32);
    let receiver = bench.receiver_of(client, on_demand(arguments), 0);
    let sender = bench.sender(client, "made");
    bench.send(sender, &text("kept"));
    bench.close_link(sender);
    bench.close_link(receiver);
    bench.advance(9_000);
    let again = bench.receiver(client, "made", 1);
    assert_eq!(bench.texts(again), ["kept"]);
    bench.advance(60_000);
    bench.close_link(again);
    bench.advance(9_999);
    assert_eq!(bench.queue_names(), ["made"]);
    bench.advance(2);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn a_lifetime_policy_is_taken_for_a_named_node_too() {
    let mut bench = Bench::new();
    let client = bench.client();
    let policy = mochila_wire::terminus::LifetimePolicy::DeleteOnNoLinksOrMessages;
    let mut target = Target::at("made");
    target.capabilities = vec!["create-on-demand".into()];
    target.dynamic_node_properties = Some(policy.to_properties());
    let sender = bench.attach(client, AttachRequest::sender("l", Source::default(), target.into()));
    bench.send(sender, &text("a"));
    bench.close_link(sender);
    assert_eq!(bench.queue_names(), ["made"]);
    let receiver = bench.receiver(client, "made", 1);
    let got = bench.got(receiver);
    bench.accept(&got);
    bench.close_link(receiver);
    assert_eq!(bench.queue_names(), [""; 0]);
}

#[test]
fn g9_thousands_of_connections_that_come_and_go_leave_nothing_behind() {
    let mut bench = Bench::new();
    let mut used = 0;
    for round in 0..3_000 {
        let raw = bench.raw_begun();
        for handle in 0..2 {
            bench.say(raw, 0, &receiving(handle, "in"));
            bench.say(raw, 0, &credit_of(handle, 0, 10));
        }
        bench.say(raw, 0, &sending(2, "in"));
        bench.say_with(raw, 0, &whole(2, 0), &text("to myself").to_bytes());
        bench.say_with(raw, 0, &whole(2, 1), &bytes_of(100));
        bench.cut(raw);
        bench.queue("in").purge(bench.now, u64::MAX).1.perform();
        if round == 0 {
            used = bench.node.broker.budget().used();
        }
        bench.forget_the_gone();
    }
    assert_eq!(bench.node.broker.budget().used(), used);
    let numbers = bench.numbers("in");
    assert_eq!((numbers.consumer_count, numbers.producer_count, numbers.memory_bytes), (0, 0, 0));
    bench.expect_nothing_left();
}
