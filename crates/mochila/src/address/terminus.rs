//! What an address string asks of the peer when a link is attached.
//!
//! The mapping is the one of the older messaging library over AMQP 1.0: creation on demand is the
//! capability `create-on-demand`, and what the node is to be like (`node: {properties}` and
//! `x-declare`, its `arguments` flattened) goes into the terminus' dynamic-node-properties.

use mochila_wire::performative::{Role, SenderSettleMode};
use mochila_wire::terminus::{
    DISTRIBUTION_COPY, Filter, JMS_SELECTOR, LifetimePolicy, TerminusDurability,
};
use mochila_wire::{Described, Map, Source, Symbol, Target, Value};

use super::options::{Link, Node, Policy, Reliability};
use super::{Address, Binding};
use crate::failure::{Failure, Outcome};

/// Everything about a link that its address string decides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttachPlan {
    pub(crate) link_name: Option<String>,
    pub(crate) snd_settle_mode: SenderSettleMode,
    pub(crate) source: Source,
    pub(crate) target: Target,
    /// What the peer has to be able to do.
    pub(crate) capabilities: Vec<Symbol>,
    /// What is bound when the node is there, and stays bound.
    pub(crate) node_bindings: Vec<Binding>,
    /// What the peer binds as long as the link is there.
    pub(crate) link_bindings: Vec<Binding>,
    assertion: Option<Assertion>,
}

/// What the peer's answer has to hold, where the address says `assert`.
#[derive(Clone, Debug, PartialEq)]
struct Assertion {
    capabilities: Vec<Symbol>,
    properties: Map,
    filters: Map,
}

/// One terminus of the peer's answer, whichever end it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) capabilities: &'a [Symbol],
    pub(crate) properties: Option<&'a Map>,
    pub(crate) filters: Option<&'a Map>,
}

impl Address {
    /// How to attach a link to this address, as its sender or as its receiver.
    pub(crate) fn plan(&self, role: Role) -> Outcome<AttachPlan> {
        self.verify()?;
        let (node, link) = (Node::read(&self.section("node"))?, Link::read(&self.section("link"))?);
        let mut properties = node.all_properties();
        let temporary = self.is_temporary();
        if temporary
            && !properties.contains(LifetimePolicy::KEY)
            && !properties.contains("auto-delete")
        {
            let policy = LifetimePolicy::DeleteOnClose.to_value();
            properties.insert(Symbol::from_static(LifetimePolicy::KEY), policy);
        }
        let create = self.policy("create")?.is_some_and(|policy| policy.holds_for(role));
        let assert = self.policy("assert")?.is_some_and(|policy| policy.holds_for(role));
        let named = !temporary && self.name != NULL_ADDRESS;
        let mut capabilities = node.capabilities.clone();
        if create && named {
            capabilities.push(CREATE_ON_DEMAND);
        }
        capabilities.extend(node.kind.map(|kind| Symbol::from_static(kind.name())));
        capabilities.extend(node.durable.then_some(DURABLE));
        // Whoever says nothing about creating the node describes it all the same: one that is there
        // and has had no messages may still become what is asked for.
        let declares = node.is_described() && self.policy("create")?.is_none();
        let describes = temporary || (named && (create || assert || declares));
        let filters = self.filters(&link)?;
        let browse = self.browses()?;
        let assertion = assert.then(|| Assertion {
            capabilities: capabilities
                .iter()
                .filter(|c| **c != CREATE_ON_DEMAND)
                .cloned()
                .collect(),
            properties: properties.clone(),
            filters: filters.clone(),
        });
        let near = Target {
            address: named.then(|| self.name.clone()),
            durable: match link.durable {
                true => TerminusDurability::UnsettledState,
                false => TerminusDurability::None,
            },
            dynamic: temporary,
            dynamic_node_properties: (describes && !properties.is_empty()).then_some(properties),
            capabilities,
            ..Target::default()
        };
        let (source, target) = match role {
            Role::Sender => {
                let from = link.sender_source.clone().or_else(|| near.address.clone());
                (Source { address: from, ..Source::default() }, near)
            }
            Role::Receiver => {
                let to = link.receiver_target.clone().or_else(|| near.address.clone());
                let source = Source {
                    address: near.address,
                    durable: near.durable,
                    timeout: link.timeout_s(),
                    dynamic: near.dynamic,
                    dynamic_node_properties: near.dynamic_node_properties,
                    distribution_mode: browse.then_some(DISTRIBUTION_COPY),
                    filter: (!filters.is_empty()).then_some(filters),
                    capabilities: near.capabilities,
                    ..Source::default()
                };
                (source, Target { address: to, ..Target::default() })
            }
        };
        Ok(AttachPlan {
            link_name: link.name,
            snd_settle_mode: match link.reliability {
                Some(Reliability::AtMostOnce) => SenderSettleMode::Settled,
                Some(Reliability::AtLeastOnce) => SenderSettleMode::Unsettled,
                // Whoever only looks has nothing to settle.
                None if browse => SenderSettleMode::Settled,
                None => SenderSettleMode::Mixed,
            },
            source,
            target,
            capabilities: Vec::new(),
            node_bindings: if create || temporary { node.bindings } else { Vec::new() },
            link_bindings: link.bindings,
            assertion,
        })
    }

    fn policy(&self, key: &str) -> Outcome<Option<Policy>> {
        self.options.get(key).map(|value| Policy::read(key, value)).transpose()
    }

    fn browses(&self) -> Outcome<bool> {
        match self.options.get("mode").map(|mode| mode.as_str()) {
            None | Some(Some("consume")) => Ok(false),
            Some(Some("browse")) => Ok(true),
            Some(_) => {
                Err(Failure::address("Invalid value for mode; must be 'browse' or 'consume'."))
            }
        }
    }

    fn filters(&self, link: &Link) -> Outcome<Map> {
        let mut filters = Map::new();
        if let Some(selector) = &link.selector {
            filters.insert(Symbol::from_static("selector"), code(JMS_SELECTOR, selector.clone()));
        }
        if let Some(subject) = &self.subject {
            let kind = if subject.contains(['*', '#']) { LEGACY_TOPIC } else { LEGACY_DIRECT };
            let filter = code(kind, Value::String(subject.clone()));
            filters.insert(Symbol::from_static("subject-filter"), filter);
        }
        for (name, filter) in &link.filters {
            filters.insert(name.clone(), filter.clone());
        }
        Ok(filters)
    }
}

impl AttachPlan {
    /// Checks the peer's answer against what the address asserts.
    pub(crate) fn check(&self, answer: Answer<'_>) -> Outcome {
        let Some(assertion) = &self.assertion else { return Ok(()) };
        let missing: Vec<&str> = assertion
            .capabilities
            .iter()
            .filter(|wanted| !answer.capabilities.contains(wanted))
            .map(Symbol::as_str)
            .collect();
        if !missing.is_empty() {
            return Err(failed("Desired capabilities not met", &missing.join(", ")));
        }
        let in_use = |wanted: &Value| {
            let Value::Described(wanted) = wanted else { return false };
            answer.filters.is_some_and(|filters| {
                filters.iter().any(|(_, filter)| match filter {
                    Value::Described(filter) => same_filter(&filter.descriptor, &wanted.descriptor),
                    _ => false,
                })
            })
        };
        let missing: Vec<String> = assertion
            .filters
            .iter()
            .filter(|(_, filter)| !in_use(filter))
            .map(|(name, _)| crate::text::value_text(name))
            .collect();
        if !missing.is_empty() {
            return Err(failed("Desired filters not in use", &missing.join(", ")));
        }
        let met = |key: &str, wanted: &Value| {
            let actual = answer.properties.and_then(|properties| properties.get(key));
            let text = crate::text::value_text;
            match (key, actual) {
                (LifetimePolicy::KEY, Some(_)) => {
                    let wanted = LifetimePolicy::among(&assertion.properties);
                    answer.properties.is_some_and(|actual| LifetimePolicy::among(actual) == wanted)
                }
                // A node that is deleted by some policy is deleted automatically.
                ("auto-delete", None) => {
                    let deleted =
                        answer.properties.is_some_and(|p| p.contains(LifetimePolicy::KEY));
                    text(wanted).eq_ignore_ascii_case(if deleted { "true" } else { "false" })
                }
                (_, Some(actual)) => text(actual) == text(wanted),
                (_, None) => false,
            }
        };
        let mut missing = Map::new();
        for (key, wanted) in assertion.properties.iter() {
            if !met(key.as_str().unwrap_or_default(), wanted) {
                missing.insert(key.clone(), wanted.clone());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let missing = crate::text::value_text(&Value::Map(missing));
        Err(failed("Requested node properties not met", &missing))
    }
}

fn failed(what: &str, missing: &str) -> Failure {
    Failure::new("AssertionFailed", format!("{what}: {missing}"))
}

/// The same filter, whether it is named by number or by symbol.
fn same_filter(a: &Value, b: &Value) -> bool {
    let known = [JMS_SELECTOR, LEGACY_DIRECT, LEGACY_TOPIC];
    let names = |filter: &Filter, value: &Value| match value {
        Value::Ulong(code) => *code == filter.code,
        Value::Symbol(name) => name.as_str() == filter.symbol,
        _ => false,
    };
    a == b || known.iter().any(|filter| names(filter, a) && names(filter, b))
}

/// A filter by its number, which is what the older library sends.
fn code(filter: Filter, value: Value) -> Value {
    Described { descriptor: Value::Ulong(filter.code), value }.into()
}

/// Messages whose routing key or subject is the one given.
const LEGACY_DIRECT: Filter =
    Filter { symbol: "apache.org:legacy-amqp-direct-binding:string", code: 0x0000_468c_0000_0000 };
/// Messages whose routing key or subject fits the pattern given.
const LEGACY_TOPIC: Filter =
    Filter { symbol: "apache.org:legacy-amqp-topic-binding:string", code: 0x0000_468c_0000_0001 };
const CREATE_ON_DEMAND: Symbol = Symbol::from_static("create-on-demand");
const DURABLE: Symbol = Symbol::from_static("durable");
/// The name under which nothing is addressed: every message says itself where it goes.
const NULL_ADDRESS: &str = "<null>";

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, role: Role) -> AttachPlan {
        text.parse::<Address>().unwrap().plan(role).unwrap()
    }

    fn refusal(text: &str) -> String {
        text.parse::<Address>().unwrap().plan(Role::Sender).unwrap_err().to_string()
    }

    fn names(symbols: &[Symbol]) -> Vec<&str> {
        symbols.iter().map(Symbol::as_str).collect()
    }

    #[test]
    fn a_bare_name_is_the_address_of_both_ends() {
        let sender = plan("q", Role::Sender);
        assert_eq!(sender.target, Target::at("q"));
        assert_eq!(sender.source.address.as_deref(), Some("q"));
        assert_eq!(sender.snd_settle_mode, SenderSettleMode::Mixed);
        assert_eq!(plan("q", Role::Receiver).source, Source::at("q"));
    }

    #[test]
    fn a_node_that_is_created_on_demand_is_described_by_its_properties() {
        let text = "q; {create: always, node: {type: queue, durable: true, properties: {a: 1}, \
                    x-declare: {auto-delete: true, type: direct, arguments: {qpid.max_count: 5}}}}";
        for role in [Role::Sender, Role::Receiver] {
            let plan = plan(text, role);
            let (capabilities, properties) = match role {
                Role::Sender => (plan.target.capabilities, plan.target.dynamic_node_properties),
                Role::Receiver => (plan.source.capabilities, plan.source.dynamic_node_properties),
            };
            assert_eq!(names(&capabilities), ["create-on-demand", "queue", "durable"]);
            let expected = Map::new()
                .with("supported-dist-modes", "move")
                .with("durable", true)
                .with("a", 1_i64)
                .with("auto-delete", true)
                .with("exchange-type", "direct")
                .with("qpid.max_count", 5_i64);
            assert_eq!(properties, Some(expected));
        }
    }

    #[test]
    fn creation_only_for_one_end_does_not_concern_the_other() {
        let text = "q; {create: receiver, node: {x-declare: {arguments: {a: 1}}}}";
        let sender = plan(text, Role::Sender);
        assert!(sender.target.capabilities.is_empty());
        assert_eq!(sender.target.dynamic_node_properties, None);
        let receiver = plan(text, Role::Receiver);
        assert_eq!(names(&receiver.source.capabilities), ["create-on-demand"]);
    }

    #[test]
    fn a_node_that_nobody_is_to_create_is_described_if_it_is_declared() {
        let text = "q; {node: {x-declare: {arguments: {qpid.shared_msg_group: 1}}}}";
        let source = plan(text, Role::Receiver).source;
        assert!(source.capabilities.is_empty() && !source.dynamic);
        let expected = Map::new().with("qpid.shared_msg_group", 1_i64);
        assert_eq!(source.dynamic_node_properties, Some(expected));
        assert_eq!(
            plan("q; {node: {type: queue}}", Role::Receiver).source.dynamic_node_properties,
            None
        );
    }

    #[test]
    fn a_temporary_node_is_dynamic_and_goes_when_its_link_is_closed() {
        let source = plan("#; {node: {type: queue}}", Role::Receiver).source;
        assert!(source.dynamic && source.address.is_none());
        let properties = source.dynamic_node_properties.unwrap();
        assert_eq!(LifetimePolicy::among(&properties), Some(LifetimePolicy::DeleteOnClose));
    }

    #[test]
    fn lifetime_policies_have_the_names_of_the_older_library() {
        let text = "q; {create: always, node: {properties: {lifetime-policy: delete-if-unused}}}";
        let properties = plan(text, Role::Sender).target.dynamic_node_properties.unwrap();
        assert_eq!(LifetimePolicy::among(&properties), Some(LifetimePolicy::DeleteOnNoLinks));
    }

    #[test]
    fn a_browser_copies_and_has_nothing_to_settle() {
        let browser = plan("q; {mode: browse}", Role::Receiver);
        assert!(browser.source.is_browsing());
        assert_eq!(browser.snd_settle_mode, SenderSettleMode::Settled);
        let careful = plan("q; {mode: browse, link: {reliability: at-least-once}}", Role::Receiver);
        assert_eq!(careful.snd_settle_mode, SenderSettleMode::Unsettled);
    }

    #[test]
    fn a_subject_and_a_selector_become_filters() {
        let source = plan("e/key; {link: {selector: \"a = 1\"}}", Role::Receiver).source;
        let filter = source.filter.unwrap();
        assert_eq!(JMS_SELECTOR.find(&filter).unwrap().1.as_str(), Some("a = 1"));
        assert_eq!(LEGACY_DIRECT.find(&filter).unwrap().1.as_str(), Some("key"));
        let wild = plan("e/a.#", Role::Receiver).source.filter.unwrap();
        assert!(LEGACY_TOPIC.find(&wild).is_some());
    }

    #[test]
    fn filters_may_be_given_by_name_descriptor_and_value() {
        let text = "q; {link: {filter: [{name: f, descriptor: 'a:b', value: 1}, \
                    {name: g, descriptor: 7, value: x}]}}";
        let filter = plan(text, Role::Receiver).source.filter.unwrap();
        let described = |descriptor, value| Value::from(Described { descriptor, value });
        let by_name = Value::Symbol(Symbol::from_static("a:b"));
        assert_eq!(filter.get("f"), Some(&described(by_name, Value::Long(1))));
        assert_eq!(filter.get("g"), Some(&described(Value::Ulong(7), Value::from("x"))));
    }

    #[test]
    fn a_durable_link_keeps_its_name_and_waits_for_its_owner() {
        let plan = plan("q; {link: {name: sub, durable: true}}", Role::Receiver);
        assert_eq!(plan.link_name.as_deref(), Some("sub"));
        assert_eq!(plan.source.durable, TerminusDurability::UnsettledState);
        assert_eq!(plan.source.timeout, 120);
    }

    #[test]
    fn the_null_address_leaves_the_choice_to_each_message() {
        assert_eq!(plan("<null>", Role::Sender).target, Target::default());
    }

    #[test]
    fn what_amqp_1_0_does_not_have_is_refused() {
        for (text, expected) in [
            ("q; {delete: always}", "Delete policies not supported over AMQP 1.0."),
            ("q; {node: {x-bindings: {}}}", "x-bindings must be a list"),
            ("q; {node: {x-bindings: [{key: k}]}}", "A binding must specify exchange or queue"),
            ("q; {link: {x-bindings: [{shoe: 1}]}}", "Unrecognised option: shoe"),
            ("q; {link: {x-subscribe: {}}}", "Link scoped x-subscribe element not supported"),
            ("q; {create: sometimes}", "Invalid value for create"),
            ("q; {mode: chew}", "Invalid value for mode"),
            ("q; {shoe: 1}", "Unrecognised option: shoe"),
            ("q; {node: {shoe: 1}}", "Unrecognised option: shoe"),
            ("q; {link: {reliability: perfect}}", "Invalid value for reliability"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.starts_with("Failed: AddressError: "), "{refusal}");
            assert!(refusal.contains(expected), "{text}: {refusal}");
        }
    }

    #[test]
    fn bindings_of_a_node_are_for_whoever_creates_it_and_those_of_a_link_for_its_own_end() {
        let text = "q; {create: receiver, node: {x-bindings: [{exchange: e, key: a}]}, \
                    link: {x-bindings: [{exchange: e, arguments: {x-match: all}}]}}";
        let (sender, receiver) = (plan(text, Role::Sender), plan(text, Role::Receiver));
        assert_eq!((sender.node_bindings.len(), sender.link_bindings.len()), (0, 1));
        assert_eq!((receiver.node_bindings.len(), receiver.link_bindings.len()), (1, 1));
    }

    #[test]
    fn an_assertion_fails_with_what_is_missing() {
        let text = "q; {assert: always, node: {type: queue, x-declare: {arguments: {n: 5}}}}";
        let plan = plan(text, Role::Sender);
        let queue = [Symbol::from_static("queue")];
        let properties = Map::new().with("supported-dist-modes", "move").with("n", 5_u32);
        let answer = Answer { capabilities: &queue, properties: Some(&properties), filters: None };
        assert_eq!(plan.check(answer), Ok(()));
        let failure = plan.check(Answer { capabilities: &[], ..answer }).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "Failed: AssertionFailed: Desired capabilities not met: queue"
        );
        let other = Map::new().with("supported-dist-modes", "move").with("n", 6_u32);
        let failure = plan.check(Answer { properties: Some(&other), ..answer }).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "Failed: AssertionFailed: Requested node properties not met: {n:5}"
        );
    }
}
