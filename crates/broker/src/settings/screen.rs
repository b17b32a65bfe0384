//! What keeps messages out of a queue.

use super::{QueueSettings, SettingsError};
use crate::selector::{Filters, Selector, SelectorInput};
use std::sync::Arc;

/// Which messages a queue lets in, whatever its limits; looked at while it is not locked.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    selector: Option<Arc<Selector>>,
    /// Messages of the queue's own connection stay out.
    no_local: bool,
    /// What a subscriber asks for, …
    filters: Option<Arc<Filters>>,
    /// … and the connection that it was last on: what comes over that stays local when its link is
    /// gone for a while.
    subscriber: Option<u64>,
}

impl Screen {
    /// What settings keep out, if anything, or why they make no sense.
    pub(crate) fn of(settings: &QueueSettings) -> Result<Option<Screen>, SettingsError> {
        let text = settings.filter.as_deref().unwrap_or_default();
        let selector = Selector::new(text).map_err(|error| SettingsError::InvalidValue {
            name: "qpid.filter",
            expected: "a selector".to_owned(),
            found: format!("'{}': {error}", text.escape_debug()),
        })?;
        let no_local = settings.no_local;
        let filters = settings.filters_of_subscriber().filter(|filters| !filters.is_empty());
        let is_open = selector.is_none() && !no_local && filters.is_none();
        let (selector, filters) = (selector.map(Arc::new), filters.cloned());
        Ok((!is_open).then_some(Screen { selector, no_local, filters, subscriber: None }))
    }

    /// The connection that the queue of a subscription belongs to until another one uses it.
    pub(crate) fn subscriber(&self) -> Option<u64> {
        self.subscriber
    }

    /// The queue belongs to this connection now.
    pub(crate) fn set_subscriber(&mut self, connection: Option<u64>) {
        self.subscriber = connection.filter(|_| self.filters.is_some());
    }

    /// Whether a message gets in that came over a connection, where the queue has an owner or not.
    pub(crate) fn lets_in(
        &self,
        message: &SelectorInput<'_>,
        connection: u64,
        owner: Option<u64>,
    ) -> bool {
        let owner = owner.or(self.subscriber);
        let is_local = connection != 0 && owner == Some(connection);
        let input = SelectorInput { is_local, ..*message };
        !(self.no_local && is_local)
            && self.selector.as_ref().is_none_or(|selector| selector.matches(&input))
            && self.filters.as_ref().is_none_or(|filters| filters.matches(&input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_that_is_wrong_is_a_clear_error() {
        let settings = QueueSettings { filter: Some("a =".into()), ..QueueSettings::default() };
        let error = Screen::of(&settings).unwrap_err().to_string();
        assert!(error.starts_with("qpid.filter takes a selector, not 'a =': "), "{error}");
    }
}
