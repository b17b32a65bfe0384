//! What other brokers got wrong, and what has to be right.

use crate::support::{Encoded, compiled, refusal};
use mochila_broker::{Filters, Selector};
use mochila_wire::terminus::{APPLICATION_PROPERTIES_FILTER, JMS_SELECTOR};
use mochila_wire::{Map, Value, condition};

fn coloured(colour: &str) -> Encoded {
    Encoded::new(|message| message.set_application_property("colour", colour))
}

#[test]
fn k1_not_may_stand_in_front_of_like_and_in_it() {
    let selectors = ["colour NOT LIKE 'r%'", "NOT colour LIKE 'r%'", "NOT (colour LIKE 'r%')"];
    for selector in selectors {
        assert!(!coloured("red").matches(selector), "{selector}");
        assert!(coloured("blue").matches(selector), "{selector}");
        assert!(!Encoded::new(|_| {}).matches(selector), "unknown: {selector}");
    }
    assert!(coloured("red").matches("NOT colour NOT LIKE 'r%'"));
    assert!(coloured("red").matches("colour NOT LIKE 'b%' AND NOT colour LIKE 'g%'"));
}

#[test]
fn k3_a_selector_that_is_right_only_at_first_is_refused_where_it_goes_wrong() {
    let broken = [
        ("colour = 'red' AND", 18),
        ("colour = 'red' weight > 5", 15),
        ("colour = 'red'; DROP TABLE", 14),
        ("colour = 'red' OR (weight > 5", 29),
        ("weight > 5abc", 9),
        ("colour = 'red", 9),
        ("colour == 'red'", 8),
    ];
    for (selector, offset) in broken {
        assert_eq!(refusal(selector).offset(), offset, "{}", refusal(selector));
        let set = Map::new().with("jms-selector", JMS_SELECTOR.with(selector));
        let error = Filters::new(&set).unwrap_err().to_amqp();
        assert_eq!(error.condition, condition::INVALID_FIELD);
        let description = error.description.unwrap();
        assert!(description.contains(&format!("at byte {offset}: ")), "{description}");
    }
}

/// How a condition with this value is written; unknown is a comparison with what is not there.
const TRUTHS: [(&str, Option<bool>); 3] =
    [("t = TRUE", Some(true)), ("t = FALSE", Some(false)), ("missing = 1", None)];

fn check(selector: &str, expected: Option<bool>) {
    let message = Encoded::new(|message| {
        message.set_application_property("t", true);
        message.set_application_property("one", 1);
        message.set_application_property("null", Value::Null);
    });
    assert_eq!(message.matches(selector), expected == Some(true), "{selector}");
    // Unknown differs from false in that its contrary does not match either.
    let contrary = format!("NOT ({selector})");
    assert_eq!(message.matches(&contrary), expected == Some(false), "{contrary}");
}

#[test]
fn k4_conditions_follow_the_three_valued_tables_of_sql() {
    let and = |a, b| match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    let or = |a, b| match (a, b) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    };
    for (left, a) in TRUTHS {
        check(left, a);
        check(&format!("NOT {left}"), a.map(|a| !a));
        for (right, b) in TRUTHS {
            check(&format!("{left} AND {right}"), and(a, b));
            check(&format!("{left} OR {right}"), or(a, b));
            for (third, c) in TRUTHS {
                check(&format!("{left} AND {right} OR {third}"), or(and(a, b), c));
                check(&format!("{left} AND ({right} OR {third})"), and(a, or(b, c)));
                check(&format!("{left} AND {right} AND {third}"), and(and(a, b), c));
            }
        }
    }
}

#[test]
fn k4_what_is_null_or_not_there_makes_every_question_unknown() {
    let unknown = [
        "\"null\" = 1",
        "\"null\" = \"null\"",
        "missing <> missing",
        "missing > 1",
        "1 <= missing",
        "missing BETWEEN 1 AND 2",
        "one BETWEEN 0 AND missing",
        "one NOT BETWEEN missing AND 2",
        "missing IN ('a', 'b')",
        "missing NOT IN ('a')",
        "one IN (2, missing)",
        "missing LIKE '%'",
        "missing NOT LIKE '%'",
        "one LIKE '1'",
        "one + missing = 1",
        "-missing = 1",
        "one / 0 = 1",
        "one / 0.0 = 1",
        "missing",
        "one",
        "NOT missing",
    ];
    for selector in unknown {
        check(selector, None);
    }
    let known = [
        ("missing IS NULL", true),
        ("\"null\" IS NULL", true),
        ("one IS NULL", false),
        ("missing IS NOT NULL", false),
        ("one + missing IS NULL", true),
        ("one / 0 IS NULL", true),
        ("(missing = 1) IS NULL", true),
        // False whatever the other limit is.
        ("one BETWEEN 2 AND missing", false),
        ("one IN (1, missing)", true),
        ("t OR missing", true),
        // Values of different kinds are nothing to each other.
        ("one = '1'", false),
        ("one <> '1'", false),
        ("one > '0'", false),
        ("t < TRUE", false),
        ("one NOT IN ('1')", true),
    ];
    for (selector, expected) in known {
        check(selector, Some(expected));
    }
}

#[test]
fn k7_a_blank_selector_is_none_whichever_way_it_comes() {
    for blank in ["", " ", " \t\r\n"] {
        assert_eq!(Selector::new(blank), Ok(None));
        let filters = Filters::new(&Map::new().with("s", JMS_SELECTOR.with(blank))).unwrap();
        assert!(filters.is_empty() && filters.matches(&coloured("red").input()));
    }
}

#[test]
fn k11_a_pattern_of_many_wildcards_is_no_bomb() {
    let text = "a".repeat(200_000);
    let message = coloured(&text);
    for piece in ["%a", "%a_", "%_a", "%%_", "_%a"] {
        let pattern = format!("{}b", piece.repeat(500));
        assert!(!message.matches(&format!("colour LIKE '{pattern}'")));
        assert!(!message.matches(&format!("colour LIKE '%{pattern}%'")));
    }
}

#[test]
fn k12_what_is_too_complex_is_refused_with_the_limit_in_the_text() {
    let long = format!("a = '{}'", "x".repeat(20_000));
    let deep = "(".repeat(65) + "a" + &")".repeat(65);
    let many = vec!["a = 1"; 513].join(" OR ");
    for (selector, limit) in [(long, "16384 bytes"), (deep, "64 operators"), (many, "1024 names")] {
        let error = refusal(&selector);
        assert!(error.reason().contains(limit), "{error}");
    }
    // More than others allow is fine.
    let ids: Vec<String> = (0..1000).map(|i| format!("'id-{i}'")).collect();
    let selector = compiled(&format!("colour IN ({})", ids.join(",")));
    assert!(selector.matches(&coloured("id-999").input()));
    assert!(!selector.matches(&coloured("id-1000").input()));
    let fields = (0..65).map(|i| (Value::from(format!("f{i}")), Value::from(i)));
    let filter = APPLICATION_PROPERTIES_FILTER.with(fields.collect::<Map>());
    let error = Filters::new(&Map::new().with("f", filter)).unwrap_err().to_amqp();
    assert_eq!(error.condition, condition::INVALID_FIELD);
    assert!(error.description.unwrap().contains("may name 64 fields, not 65"));
}

#[test]
fn numbers_are_calculated_with_and_compared_as_in_java() {
    let message = Encoded::new(|message| {
        message.set_application_property("int", 7);
        message.set_application_property("float", 0.1f32);
        message.set_application_property("double", 2.5);
        message.set_application_property("long", i64::MIN);
    });
    let matching = [
        "int / 2 = 3",
        "int / 2.0 = 3.5",
        "int * double = 17.5",
        "int - 10 = -3",
        "-int + +8 = 1",
        "int = 7.0",
        "int = 0x7",
        "int = 07L",
        "int BETWEEN 6.5 AND 7.5",
        "int IN (5, 7.0)",
        "float = 0.1f",
        "float <> 0.1",
        "long = -9223372036854775808",
        "2 + 3 * 4 = 14 AND (2 + 3) * 4 = 20",
        "10 - 4 - 3 = 3 AND 12 / 3 / 2 = 2",
        "1e3 = 1000 AND .5 < 1. AND 5d = 5f",
    ];
    for selector in matching {
        assert!(message.matches(selector), "{selector}");
    }
}

#[test]
fn text_may_have_any_characters() {
    let message = Encoded::new(|message| {
        message.set_application_property("größe", "it's 5\"");
        message.set_application_property("my key", "50%");
        message.set_application_property("select", true);
    });
    assert!(message.matches("größe = 'it''s 5\"'"));
    assert!(message.matches("größe LIKE 'it''s _\"'"));
    assert!(message.matches("\"my key\" LIKE '__\\%' ESCAPE '\\'"));
    assert!(!message.matches("\"my key\" LIKE '__!_' ESCAPE '!'"));
    assert!(message.matches("select"));
    assert!(!message.matches("SELECT"), "names are case-sensitive");
    assert!(!message.matches("größe = 'IT''S 5\"'"), "so is text");
}

#[test]
fn a_selector_with_many_names_finds_them_all() {
    let message = Encoded::new(|message| {
        for i in 0..40 {
            message.set_application_property(&format!("n{i}"), i);
        }
    });
    let all: Vec<String> = (0..40).rev().map(|i| format!("n{i} = {i}")).collect();
    assert!(message.matches(&all.join(" AND ")));
    let sum: Vec<String> = (0..40).map(|i| format!("n{i}")).collect();
    assert!(message.matches(&format!("{} = 780", sum.join(" + "))));
}
