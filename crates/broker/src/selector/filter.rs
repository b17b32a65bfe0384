//! The filters of a source, as far as they are questions to a message (part 3, 3.5.8).

use super::binding::{BINDINGS, BindingFilter};
use super::fields::FieldFilter;
use super::question::Requirement;
use super::{Selector, SelectorError, SelectorInput};
use mochila_wire::terminus::{
    APPLICATION_PROPERTIES_FILTER, Filter as Kind, JMS_SELECTOR, NO_LOCAL, PROPERTIES_FILTER,
};
use mochila_wire::{AmqpError, Described, Map, Value, condition};
use std::fmt;

/// A question to a message that a consumer may ask.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// `apache.org:selector-filter:string`
    Selector(Selector),
    /// `apache.org:no-local-filter:list`: it came over another connection.
    NoLocal,
    /// `amqp:properties-filter`
    Properties(FieldFilter<u8>),
    /// `amqp:application-properties-filter`
    ApplicationProperties(FieldFilter<Box<str>>),
    /// `apache.org:legacy-amqp-direct-binding:string`, and the same for topics and headers.
    Binding(BindingFilter),
}

impl Filter {
    /// Whether a message passes.
    pub fn matches(&self, message: &SelectorInput<'_>) -> bool {
        match self {
            Filter::Selector(selector) => selector.matches(message),
            Filter::NoLocal => !message.is_local,
            Filter::Properties(fields) => fields.matches(message),
            Filter::ApplicationProperties(fields) => fields.matches(message),
            Filter::Binding(binding) => binding.matches(message),
        }
    }

    /// The filter with this descriptor; `None` if it lets everything pass.
    fn new(kind: Kind, argument: &Value) -> Result<Option<Filter>, FilterError> {
        Ok(Some(match kind {
            JMS_SELECTOR => {
                let text = argument
                    .as_str()
                    .ok_or_else(|| FilterError::new(kind.symbol, "it has to be text".into()))?;
                return Ok(Selector::new(text)?.map(Filter::Selector));
            }
            NO_LOCAL => Filter::NoLocal,
            kind if BINDINGS.contains(&kind) => {
                Filter::Binding(BindingFilter::new(kind, argument)?)
            }
            PROPERTIES_FILTER => Filter::Properties(FieldFilter::of_properties(argument)?),
            _ => Filter::ApplicationProperties(FieldFilter::of_application_properties(argument)?),
        }))
    }
}

/// The filters of a consumer: a message has to pass all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    filters: Box<[Filter]>,
    in_force: Map,
}

impl Filters {
    /// Reads the filter set of a source that is an exchange. What binds the queue to it is left to
    /// others; what is of no kind in [`Filter`] is not in force.
    pub fn new(set: &Map) -> Result<Filters, FilterError> {
        Filters::read(set, &QUESTIONS)
    }

    /// Reads the filter set of a source that is a queue.
    pub fn of_queue(set: &Map) -> Result<Filters, FilterError> {
        Filters::read(set, &[&QUESTIONS[..], &BINDINGS].concat())
    }

    fn read(set: &Map, kinds: &[Kind]) -> Result<Filters, FilterError> {
        let mut filters = Vec::new();
        let mut in_force = Map::new();
        for (key, value) in set.iter() {
            let Value::Described(described) = value else { continue };
            let Some(kind) = kind_of(described, kinds) else { continue };
            if in_force.len() == MOST_FILTERS {
                let reason = format!("a source may have {MOST_FILTERS} filters");
                return Err(FilterError::new(kind.symbol, reason));
            }
            filters.extend(Filter::new(kind, &described.value)?);
            in_force.0.push((key.clone(), value.clone()));
        }
        // The cheapest question first.
        filters.sort_by_key(|filter| !matches!(filter, Filter::NoLocal));
        Ok(Filters { filters: filters.into(), in_force })
    }

    /// The questions.
    pub fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter()
    }

    /// Whether every message passes, so that nobody has to be asked.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// What one of them requires, if anything is known.
    #[inline]
    pub(super) fn requirement(&self) -> Option<&Requirement> {
        self.filters.iter().find_map(|filter| match filter {
            Filter::Selector(selector) => selector.requirement.as_ref(),
            _ => None,
        })
    }

    /// An application property without which no message passes, and the digest of its text.
    pub(crate) fn digest(&self) -> Option<(&str, u64)> {
        self.requirement()?.digest()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether other filters let the same messages pass, whatever they are called and in whatever
    /// order they come.
    pub fn ask_the_same(&self, other: &Filters) -> bool {
        let has_all = |filters: &[Filter], of: &[Filter]| of.iter().all(|it| filters.contains(it));
        has_all(&self.filters, &other.filters) && has_all(&other.filters, &self.filters)
    }

    /// Whether one of them asks for the message annotation of this name.
    pub(crate) fn read_annotation(&self, name: &str) -> bool {
        let reads = |filter: &Filter| match filter {
            Filter::Selector(selector) => selector.reads_annotation(name),
            _ => false,
        };
        self.filters.iter().any(reads)
    }

    /// Whether it matters which connection a consumer is on.
    pub fn depend_on_connection(&self) -> bool {
        self.filters.contains(&Filter::NoLocal)
    }

    /// Whether a message passes.
    pub fn matches(&self, message: &SelectorInput<'_>) -> bool {
        self.filters.iter().all(|filter| filter.matches(message))
    }

    /// The filter set to answer with: what was asked for and is obeyed, as it was asked for.
    pub fn in_force(&self) -> &Map {
        &self.in_force
    }
}

/// Why a filter is refused, and with it the link that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// A selector is none.
    Selector(SelectorError),
    /// A filter of another kind is wrong.
    Filter {
        /// Its descriptor.
        filter: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl FilterError {
    pub(super) fn new(filter: &'static str, reason: String) -> FilterError {
        FilterError::Filter { filter, reason }
    }

    /// The condition and sentence for the peer.
    pub fn to_amqp(&self) -> AmqpError {
        AmqpError::new(condition::INVALID_FIELD, self.to_string())
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Selector(error) => error.fmt(f),
            FilterError::Filter { filter, reason } => {
                write!(f, "the filter {filter} is wrong: {reason}")
            }
        }
    }
}

impl std::error::Error for FilterError {}

impl From<SelectorError> for FilterError {
    fn from(error: SelectorError) -> FilterError {
        FilterError::Selector(error)
    }
}

/// Which of our kinds a filter is of; the number and the name of a descriptor are the same to us.
fn kind_of(described: &Described, kinds: &[Kind]) -> Option<Kind> {
    kinds.iter().copied().find(|kind| described.is(kind.symbol, kind.code))
}

/// The kinds of filters that are a question to a message.
const QUESTIONS: [Kind; 4] =
    [JMS_SELECTOR, NO_LOCAL, PROPERTIES_FILTER, APPLICATION_PROPERTIES_FILTER];

/// How many filters one source may have.
const MOST_FILTERS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mochila_wire::{Encode, Limits, Message, section};

    fn numbered(kind: Kind, argument: impl Into<Value>) -> Value {
        Described { descriptor: Value::Ulong(kind.code), value: argument.into() }.into()
    }

    fn passes(filters: &Filters, colour: &str, is_local: bool) -> bool {
        let mut message = Message::of_value("body");
        message.set_application_property("colour", colour);
        let bytes = message.to_bytes();
        let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
        filters.matches(&SelectorInput { is_local, ..SelectorInput::of(&bytes, &sections) })
    }

    #[test]
    fn a_message_has_to_pass_every_filter() {
        let set = Map::new()
            .with("jms-selector", JMS_SELECTOR.with("colour LIKE 'r%'"))
            .with("no-local", NO_LOCAL.with(Vec::<Value>::new()));
        let filters = Filters::new(&set).unwrap();
        assert!(passes(&filters, "red", false));
        assert!(!passes(&filters, "red", true));
        assert!(!passes(&filters, "blue", false));
    }

    #[test]
    fn a_filter_is_known_by_the_number_and_by_the_name_of_its_descriptor() {
        let red = Map::new().with("colour", "red");
        for argument in
            [JMS_SELECTOR.with("colour = 'red'"), numbered(JMS_SELECTOR, "colour='red'")]
        {
            let filters = Filters::new(&Map::new().with("any key", argument)).unwrap();
            assert!(passes(&filters, "red", true) && !passes(&filters, "blue", true));
        }
        let kind = APPLICATION_PROPERTIES_FILTER;
        for argument in [kind.with(red.clone()), numbered(kind, red)] {
            let filters = Filters::new(&Map::new().with("f", argument)).unwrap();
            assert!(passes(&filters, "red", true) && !passes(&filters, "blue", true));
        }
        let subject = numbered(PROPERTIES_FILTER, Map::new().with("subject", "news"));
        let filters = Filters::new(&Map::new().with("f", subject)).unwrap();
        assert!(!passes(&filters, "red", false));
    }

    #[test]
    fn the_answer_has_the_filters_in_force_as_they_were_asked_for() {
        let unknown = Described { descriptor: Value::Symbol("x:y".into()), value: 1.into() };
        let known = Map::new()
            .with("selector", numbered(JMS_SELECTOR, "a = 1"))
            .with("nolocal", NO_LOCAL.with(Value::Null));
        let mut set = known.clone();
        set.insert("unknown", unknown);
        set.insert("undescribed", "a = 1");
        let filters = Filters::new(&set).unwrap();
        assert_eq!(filters.in_force(), &known);
        assert!(!filters.is_empty());
    }

    #[test]
    fn a_blank_selector_is_in_force_and_lets_everything_pass() {
        let set = Map::new().with("selector", JMS_SELECTOR.with("  "));
        let filters = Filters::new(&set).unwrap();
        assert!(filters.is_empty() && passes(&filters, "red", true));
        assert_eq!(filters.in_force(), &set);
    }

    #[test]
    fn a_filter_that_is_wrong_is_an_invalid_field() {
        let wrong = [
            JMS_SELECTOR.with("a ="),
            JMS_SELECTOR.with(5u32),
            PROPERTIES_FILTER.with("subject"),
            APPLICATION_PROPERTIES_FILTER.with(Map::new()),
        ];
        for filter in wrong {
            let error = Filters::new(&Map::new().with("f", filter)).unwrap_err().to_amqp();
            assert_eq!(error.condition, condition::INVALID_FIELD);
        }
        let selector = Filters::new(&Map::new().with("f", JMS_SELECTOR.with("a ="))).unwrap_err();
        let sentence = "the selector is wrong at byte 3: expected a name or a value, found the end";
        assert_eq!(selector.to_string(), sentence);
    }

    #[test]
    fn a_source_may_have_a_limited_number_of_filters() {
        let of = |count: usize| {
            let filter = |i: usize| (Value::from(format!("f{i}")), JMS_SELECTOR.with("a = 1"));
            Filters::new(&(0..count).map(filter).collect())
        };
        assert!(of(MOST_FILTERS).is_ok());
        assert!(of(MOST_FILTERS + 1).unwrap_err().to_string().contains("16 filters"));
    }
}
