//! What a controller says to the coordinator, and how transactions end (part 4, 4.3).

use crate::bench::control::{control, counts, holding, texts, why};
use crate::bench::{Bench, Setup, bytes_of, text};
use mochila_engine::AttachRequest;
use mochila_wire::performative::ReceiverSettleMode;
use mochila_wire::transaction::{Declare, Discharge};
use mochila_wire::{Coordinator, DeliveryState, Encode, Source, Symbol, Value, condition};

#[test]
fn the_coordinator_says_what_it_can_do() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    let answer = bench.answer(controller).target.unwrap();
    let mochila_wire::TargetArchetype::Coordinator(coordinator) = answer else { panic!() };
    let named: Vec<&str> = coordinator.capabilities.iter().map(Symbol::as_str).collect();
    let expected =
        ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"];
    assert_eq!(named, expected);
}

#[test]
fn a_transaction_may_be_used_on_another_session_of_its_connection() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    bench.begin_again(client);
    let sender = bench.sender(client, "q");
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a"]);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 1);
}

#[test]
fn a_transaction_is_unknown_on_another_connection() {
    let mut bench = Bench::new();
    let (client, other) = (bench.client(), bench.client());
    let controller = bench.controller(client);
    let id = bench.declare(controller);
    let sender = bench.sender(other, "q");
    bench.send_within(sender, &id, &["a"]);
    assert_eq!(bench.detach_error(sender).condition, condition::TRANSACTION_UNKNOWN_ID);
}

#[test]
fn a_transaction_that_takes_too_long_is_rolled_back() {
    let (mut bench, client, controller, got) = holding(&["a", "b"], Source::at("q"));
    let sender = bench.sender(client, "to");
    let id = bench.declare(controller);
    bench.advance(30_000);
    let later = bench.declare(controller);
    bench.send_within(sender, &id, &["x"]);
    bench.accept_within(&got[..1], &id, true);
    bench.accept_within(&got[1..], &id, false);
    bench.advance(59_999);
    assert_eq!(bench.totals(), (2, 0, 0));
    bench.advance(1);
    assert_eq!(bench.totals(), (1, 0, 1));
    assert_eq!(texts(&bench.all_of("q")), ["a"], "what was settled is there again");
    bench.send_within(sender, &id, &["y"]);
    let states = bench.states(sender);
    let reason = why(states[1].outcome().unwrap());
    assert_eq!(reason.condition, condition::TRANSACTION_ROLLBACK);
    let answer = bench.discharge(controller, &id, false);
    assert_eq!(why(&answer).condition, condition::TRANSACTION_TIMEOUT);
    assert_eq!(bench.depth("to"), 0);
    bench.commit(controller, &later);
    bench.settle(&got[1], DeliveryState::Accepted);
    assert_eq!(bench.numbers("q").msg_depth, 1);
}

#[test]
fn the_time_of_a_transaction_begins_with_what_is_done_in_it_first() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (controller, sender) = (bench.controller(client), bench.sender(client, "q"));
    let id = bench.declare(controller);
    for _ in 0..100 {
        bench.advance(59_000);
    }
    bench.send_within(sender, &id, &["a"]);
    bench.advance(59_000);
    bench.send_within(sender, &id, &["b"]);
    bench.commit(controller, &id);
    assert_eq!(bench.depth("q"), 2);
}

#[test]
fn a_transaction_that_has_failed_can_be_rolled_back_without_complaint() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (controller, sender) = (bench.controller(client), bench.sender(client, "q"));
    let id = bench.declare(controller);
    bench.send_within(sender, &id, &["a"]);
    bench.advance(60_000);
    assert_eq!(bench.totals(), (0, 0, 1));
    bench.roll_back(controller, &id);
}

#[test]
fn without_a_timeout_a_transaction_stays_open() {
    let mut bench = Bench::with(|setup: &mut Setup| setup.broker.transactions.timeout_ms = 0);
    let client = bench.client();
    let controller = bench.controller(client);
    let id = bench.declare(controller);
    bench.advance(24 * 3_600_000);
    bench.commit(controller, &id);
}

#[test]
fn transactions_end_with_their_controller_their_session_and_their_connection() {
    for how in 0..4 {
        let (mut bench, client, controller, got) = holding(&["a", "b"], Source::at("q"));
        let sender = bench.sender(client, "to");
        let id = bench.declare(controller);
        bench.send_within(sender, &id, &["x"]);
        bench.accept_within(&got[..1], &id, true);
        bench.accept_within(&got[1..], &id, false);
        match how {
            0 => bench.close_link(controller),
            1 => {
                let session = bench.session(client);
                bench.engine(client).end(session, None);
                bench.run();
            }
            2 => bench.close(client),
            _ => bench.kill(client),
        }
        assert_eq!(bench.totals(), (0, 0, 1), "way {how}");
        let again = bench.all_of("q");
        let expected: &[&str] = if how == 0 { &["a"] } else { &["a", "b"] };
        assert_eq!(texts(&again), expected, "way {how}: what was not settled is still held");
        assert_eq!(counts(&again)[0], 1, "way {how}: it was delivered in vain");
        assert_eq!(bench.depth("to"), 0);
        bench.expect_nothing_left();
    }
}

#[test]
fn what_is_sent_settled_to_the_coordinator_ends_its_link() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    bench.send_bytes(controller, &control(&Declare::default()), true);
    assert_eq!(bench.detach_error(controller).condition, condition::NOT_ALLOWED);
    assert_eq!(bench.totals(), (0, 0, 0));
}

#[test]
fn what_the_coordinator_does_not_understand_is_rejected() {
    let mut bench = Bench::new();
    let client = bench.client();
    let controller = bench.controller(client);
    for bytes in [text("declare").to_bytes(), bytes_of(10), control(&DeliveryState::Accepted)] {
        bench.send_bytes(controller, &bytes, false);
        let states = bench.states(controller);
        assert_eq!(why(&states[0]).condition, condition::DECODE_ERROR);
    }
    let global = Declare { global_id: Some(Value::from("xa")) };
    let answer = bench.ask_for(controller, &global);
    assert_eq!(why(&answer).condition, condition::NOT_IMPLEMENTED);
    for id in [&b""[..], b"12345678", b"a long id that is none of ours"] {
        let answer = bench.discharge(controller, &Box::from(id), false);
        assert_eq!(why(&answer).condition, condition::TRANSACTION_UNKNOWN_ID);
    }
}

#[test]
fn a_controller_that_knows_no_rejection_is_detached_instead() {
    let mut bench = Bench::new();
    let client = bench.client();
    let outcomes = vec!["amqp:accepted:list".into()];
    let controller = bench.controller_of(client, Source { outcomes, ..Source::default() });
    let id = bench.declare(controller);
    let unknown = Discharge { txn_id: Box::from(*b"none"), fail: false };
    bench.send_bytes(controller, &control(&unknown), false);
    assert_eq!(bench.detach_error(controller).condition, condition::TRANSACTION_UNKNOWN_ID);
    assert_eq!(bench.totals(), (0, 0, 0), "{id:?} went with its controller");
}

#[test]
fn another_controller_cannot_discharge_a_transaction() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (controller, other) = (bench.controller(client), bench.controller(client));
    let id = bench.declare(controller);
    let answer = bench.discharge(other, &id, false);
    let error = why(&answer);
    assert_eq!(error.condition, condition::TRANSACTION_UNKNOWN_ID);
    assert!(error.description.as_deref().unwrap_or_default().contains("belongs to another link"));
    bench.commit(controller, &id);
}

#[test]
fn transactions_of_a_session_are_bounded_and_so_is_what_each_does() {
    let mut bench = Bench::with(|setup: &mut Setup| {
        setup.broker.transactions.max_per_session = 2;
        setup.broker.transactions.max_operations = 3;
    });
    let client = bench.client();
    let controller = bench.controller(client);
    let sender = bench.sender(client, "q");
    let ids = [bench.declare(controller), bench.declare(controller)];
    let answer = bench.ask_for(controller, &Declare::default());
    assert_eq!(why(&answer).condition, condition::RESOURCE_LIMIT_EXCEEDED);
    bench.send_within(sender, &ids[0], &["a", "b", "c"]);
    bench.send_within(sender, &ids[1], &["a", "b", "c", "d"]);
    let told = bench.states(sender);
    assert_eq!(why(told[6].outcome().unwrap()).condition, condition::TRANSACTION_ROLLBACK);
    bench.commit(controller, &ids[0]);
    let answer = bench.discharge(controller, &ids[1], false);
    assert_eq!(why(&answer).condition, condition::TRANSACTION_ROLLBACK);
    assert_eq!(bench.depth("q"), 3);
    bench.declare(controller);
}

#[test]
fn a_receiver_that_wants_to_settle_second_hears_of_the_discharge() {
    let mut bench = Bench::new();
    let client = bench.client();
    let target = Coordinator::default().into();
    let request = AttachRequest {
        rcv_settle_mode: ReceiverSettleMode::Second,
        ..AttachRequest::sender("second", Source::default(), target)
    };
    let controller = bench.attach(client, request);
    let id = bench.declare(controller);
    assert_eq!(bench.discharge(controller, &id, false), DeliveryState::Accepted);
}
