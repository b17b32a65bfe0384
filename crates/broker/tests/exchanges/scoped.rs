//! Bindings that go when nobody who has asked for them is left.

use crate::bench::Bench;
use mochila_broker::exchange::ScopedBinding;
use mochila_broker::{DeleteIf, Exchange, ExchangeDeleteIf, ExchangeError, ExchangeKind};
use mochila_wire::Map;

fn claim(bench: &Bench, exchange: &Exchange, queue: &str, key: &str) -> ScopedBinding {
    let bound = exchange.bind_scoped(bench.now, &bench.queue(queue), key, Map::new());
    let (binding, wakeups) = bound.unwrap();
    wakeups.perform();
    binding
}

#[test]
fn the_last_of_those_who_want_a_binding_ends_it() {
    let bench = Bench::new();
    let topic = bench.exchange(ExchangeKind::Topic);
    let (first, second) = (claim(&bench, &topic, "q", "a.#"), claim(&bench, &topic, "q", "a.#"));
    first.end().perform();
    assert_eq!(topic.statistics().binding_count, 1);
    second.end().perform();
    assert_eq!(topic.statistics().binding_count, 0);
    assert!(bench.broker.exchanges_of(&bench.queue("q")).is_empty());
}

#[test]
fn what_was_bound_before_or_has_been_bound_since_stays() {
    let bench = Bench::new();
    let topic = bench.exchange(ExchangeKind::Topic);
    bench.bind(&topic, "q", "before");
    let claims = ["before", "since"].map(|key| claim(&bench, &topic, "q", key));
    bench.bind(&topic, "q", "since");
    for claim in claims {
        claim.end().perform();
    }
    assert_eq!(topic.statistics().binding_count, 2);
}

#[test]
fn a_binding_that_was_ended_and_made_again_is_another_one() {
    let bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let old = claim(&bench, &direct, "q", "k");
    direct.unbind(&bench.queue("q"), "k").unwrap().perform();
    assert!(old.binding().is_none());
    let new = claim(&bench, &direct, "q", "k");
    old.end().perform();
    assert_eq!(direct.statistics().binding_count, 1);
    new.end().perform();
    assert_eq!(direct.statistics().binding_count, 0);
}

#[test]
fn a_claim_is_worth_nothing_when_its_queue_or_its_exchange_is_gone() {
    let bench = Bench::new();
    let direct = bench.exchange(ExchangeKind::Direct);
    let claims = ["deleted", "left"].map(|queue| claim(&bench, &direct, queue, "k"));
    bench.broker.delete("deleted", DeleteIf::default()).unwrap().perform();
    assert_eq!(direct.statistics().binding_count, 1);
    bench.broker.delete_exchange("e", ExchangeDeleteIf::default()).unwrap().perform();
    for claim in claims {
        claim.end().perform();
    }
    let queue = bench.queue("left");
    let bound = direct.bind_scoped(bench.now, &queue, "k", Map::new());
    assert!(matches!(bound, Err(ExchangeError::Deleted { .. })));
}

#[test]
fn an_exchange_that_goes_when_it_is_unused_goes_with_the_last_claim() {
    let bench = Bench::new();
    let exchange = bench.exchange_with("e", |settings| settings.auto_delete = true);
    let only = claim(&bench, &exchange, "q", "");
    assert!(bench.broker.exchange("e").is_some());
    only.end().perform();
    assert!(bench.broker.exchange("e").is_none());
}
