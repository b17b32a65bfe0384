//! Two queues that have changed places for those who send.

use crate::bench::QueueBench;
use mochila_broker::settings::{LifetimePolicy, LimitPolicy};
use mochila_broker::{DeleteIf, EventKind, QueueSettings};

/// Two queues, the first of which is redirected to the second.
fn redirected(settings: QueueSettings) -> (QueueBench, QueueBench) {
    let here = QueueBench::default();
    let there = here.beside("there", settings);
    here.broker.redirect(&here.queue, &there.queue).unwrap().perform();
    (here, there)
}

fn depths(here: &QueueBench, there: &QueueBench) -> (u64, u64) {
    (here.statistics().msg_depth, there.statistics().msg_depth)
}

#[test]
fn what_is_sent_to_one_goes_to_the_other_until_that_is_cancelled() {
    let (mut here, mut there) = redirected(QueueSettings::default());
    assert_eq!(here.queue.redirect_peer().as_deref(), Some("there"));
    assert_eq!(there.queue.redirect_peer().as_deref(), Some("q"));
    here.send(&["a", "b"]);
    there.send(&["c"]);
    assert_eq!(depths(&here, &there), (1, 2));
    here.broker.cancel_redirect(&there.queue).unwrap();
    here.send(&["d", "e"]);
    assert_eq!(depths(&here, &there), (3, 2));
    assert_eq!((here.queue.redirect_peer(), there.queue.redirect_peer()), (None, None));
    let kinds: Vec<EventKind> = {
        here.broker.tell_events(here.now).perform();
        here.broker.feed().recent().iter().skip(2).map(|event| event.event.kind()).collect()
    };
    assert_eq!(kinds, [EventKind::QueueRedirect, EventKind::QueueRedirectCancelled]);
}

#[test]
fn producers_that_waited_go_on_and_get_the_credit_of_the_other_queue() {
    let stop = QueueSettings {
        flow_stop_count: Some(2),
        flow_resume_count: Some(1),
        ..QueueSettings::default()
    };
    let mut here = QueueBench::new(stop.clone());
    let mut there = here.beside("there", stop);
    let producer = here.producer();
    here.send(&["a", "b", "c"]);
    assert_eq!(here.grant(producer, 10), 0);
    here.broker.redirect(&here.queue, &there.queue).unwrap().perform();
    assert_eq!(here.woken(), [producer.key]);
    assert_eq!(here.grant(producer, 10), 3);
    here.send(&["d", "e", "f"]);
    assert_eq!(depths(&here, &there), (3, 3));
    assert_eq!(here.grant(producer, 10), 1, "it has to try");
    let consumer = there.consumer();
    assert_eq!(there.take(consumer, 9).texts, ["d", "e", "f"]);
}

#[test]
fn what_the_other_queue_has_no_room_for_is_refused() {
    let small = QueueSettings { max_count: Some(1), ..QueueSettings::default() };
    let (mut here, there) = redirected(small);
    let enqueued = here.send(&["a", "b"]);
    assert_eq!((enqueued.accepted, enqueued.rejected.len()), (1, 1));
    assert_eq!(depths(&here, &there), (0, 1));
}

#[test]
fn a_deletion_of_either_ends_it() {
    for is_source in [true, false] {
        let (here, there) = redirected(QueueSettings::default());
        let (mut left, gone) = if is_source { (there, here) } else { (here, there) };
        gone.queue.delete(DeleteIf::default()).unwrap().perform();
        assert_eq!(left.queue.redirect_peer(), None);
        left.send(&["a"]);
        assert_eq!(left.statistics().msg_depth, 1);
    }
}

#[test]
fn only_two_different_queues_that_stay_can_change_places() {
    let (here, there) = redirected(QueueSettings::default());
    let third = here.beside("third", QueueSettings::default());
    let lifetime = Some(LifetimePolicy::DeleteOnNoLinks);
    let passing = here.beside("passing", QueueSettings { lifetime, ..QueueSettings::default() });
    let refusal = |source: &QueueBench, target: &QueueBench| {
        let result = here.broker.redirect(&source.queue, &target.queue);
        result.map(|_| ()).unwrap_err().to_string()
    };
    let taken = "queue 'there' cannot be redirected: its messages go to queue 'q' already";
    assert_eq!(refusal(&third, &there), taken);
    assert!(refusal(&here, &third).contains("go to queue 'there' already"));
    assert!(refusal(&third, &third).contains("cannot go to where they are"));
    assert!(refusal(&third, &passing).contains("it may delete itself"));
    let limit_policy = LimitPolicy::SelfDestruct;
    let explosive = QueueSettings { limit_policy, max_count: Some(1), ..QueueSettings::default() };
    let bomb = here.beside("bomb", explosive.clone());
    assert!(refusal(&third, &bomb).contains("it may delete itself"));
    for settings in [QueueSettings { lifetime, ..QueueSettings::default() }, explosive] {
        let error = there.queue.set_settings(there.now, settings).unwrap_err().to_string();
        assert!(error.contains("must not delete itself: its messages go to queue 'q'"), "{error}");
    }
    assert_eq!(third.queue.redirect_peer(), None, "nothing is half done");
    let error = here.broker.cancel_redirect(&third.queue).unwrap_err().to_string();
    assert_eq!(error, "queue 'third' cannot be redirected: its messages go to no other queue");
}
