//! When a queue is deleted by itself.

use super::Queue;
use crate::settings::{LifetimePolicy, QueueSettings};
use mochila_wire::Now;
use std::sync::Arc;

/// Under what conditions a queue may be deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteIf {
    /// Only if it has no links.
    pub unused: bool,
    /// Only if it has no messages.
    pub empty: bool,
}

/// Watches over the end of a queue (part 3, sections 3.5.10 to 3.5.13).
#[derive(Debug)]
pub(crate) struct Lifetime {
    policy: Option<LifetimePolicy>,
    delay_ms: u64,
    /// It has had a link: a queue that nobody has linked to yet does not go for want of links, …
    linked: bool,
    /// … and one that has had no message does not go for want of messages, unless the link is gone
    /// that made it.
    filled: bool,
    /// The link that made it is there, or the queue was not made by a link and is new.
    has_creator: bool,
    /// When it goes, if nobody comes back; `NEVER` as long as it does not.
    due_ms: u64,
}

/// What of a queue its lifetime depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) links: u64,
    pub(crate) messages: u64,
}

impl Lifetime {
    pub(crate) fn new(settings: &QueueSettings) -> Lifetime {
        Lifetime {
            policy: settings.lifetime,
            delay_ms: settings.auto_delete_delay_ms,
            linked: false,
            filled: false,
            has_creator: true,
            due_ms: NEVER,
        }
    }

    pub(crate) fn set_policy(&mut self, settings: &QueueSettings) {
        self.policy = settings.lifetime;
        self.delay_ms = settings.auto_delete_delay_ms;
        self.due_ms = NEVER;
    }

    /// The link that made the queue is gone.
    pub(crate) fn lose_creator(&mut self) {
        self.has_creator = false;
    }

    /// Looks at the queue after something has changed: true if its time has come.
    pub(crate) fn is_over(&mut self, now_ms: u64, current: Use) -> bool {
        let Some(policy) = self.policy else { return false };
        self.linked |= current.links > 0;
        self.filled |= current.messages > 0;
        if !self.ends(policy, current) {
            self.due_ms = NEVER;
            return false;
        }
        if self.due_ms == NEVER {
            self.due_ms = now_ms.saturating_add(self.delay_ms);
        }
        now_ms >= self.due_ms
    }

    /// When to look again although nothing has changed.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        Some(self.due_ms).filter(|due_ms| *due_ms != NEVER)
    }

    fn ends(&self, policy: LifetimePolicy, current: Use) -> bool {
        match policy {
            LifetimePolicy::DeleteOnClose => !self.has_creator,
            LifetimePolicy::DeleteOnNoLinks => self.linked && current.links == 0,
            LifetimePolicy::DeleteOnNoMessages => {
                let is_left = self.filled && current.links == 0;
                current.messages == 0 && (!self.has_creator || is_left)
            }
            LifetimePolicy::DeleteOnNoLinksOrMessages => {
                let is_used = self.linked || self.filled;
                is_used && current.links == 0 && current.messages == 0
            }
        }
    }
}

impl Queue {
    /// It lives as long as these settings say.
    pub(crate) fn set_lifetime(&mut self, now: Now, like: &QueueSettings) {
        let (lifetime, auto_delete_delay_ms) = (like.lifetime, like.auto_delete_delay_ms);
        let settings = &self.settings;
        if (lifetime, auto_delete_delay_ms) != (settings.lifetime, settings.auto_delete_delay_ms) {
            let settings =
                QueueSettings { lifetime, auto_delete_delay_ms, ..QueueSettings::clone(settings) };
            self.lifetime.set_policy(&settings);
            self.settings = Arc::new(settings);
            self.settle_down(now);
        }
    }

    /// The link that made this queue is gone.
    pub(crate) fn lose_creator(&mut self, now: Now) {
        self.lifetime.lose_creator();
        self.settle_down(now);
    }
}

const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime(policy: LifetimePolicy, delay_ms: u64) -> Lifetime {
        Lifetime::new(&QueueSettings {
            lifetime: Some(policy),
            auto_delete_delay_ms: delay_ms,
            ..QueueSettings::default()
        })
    }

    const IDLE: Use = Use { links: 0, messages: 0 };
    const LINKED: Use = Use { links: 1, messages: 0 };
    const FILLED: Use = Use { links: 0, messages: 1 };

    #[test]
    fn a_queue_without_lifetime_policy_stays() {
        let mut lifetime = Lifetime::new(&QueueSettings::default());
        lifetime.lose_creator();
        assert!(!lifetime.is_over(0, LINKED) && !lifetime.is_over(1, IDLE));
    }

    #[test]
    fn a_queue_that_nobody_has_used_yet_does_not_go() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnNoLinks, 0);
        assert!(!lifetime.is_over(0, IDLE));
        assert!(!lifetime.is_over(1, LINKED));
        assert!(lifetime.is_over(2, IDLE));
    }

    #[test]
    fn one_that_gets_a_message_before_its_first_link_waits_for_that_link() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnNoLinks, 0);
        assert!(!lifetime.is_over(0, FILLED));
        assert!(!lifetime.is_over(1, LINKED));
        assert!(lifetime.is_over(2, IDLE));
    }

    #[test]
    fn it_goes_with_the_link_that_made_it() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnClose, 0);
        assert!(!lifetime.is_over(0, LINKED));
        lifetime.lose_creator();
        assert!(lifetime.is_over(1, LINKED));
    }

    #[test]
    fn one_that_goes_without_messages_waits_for_its_creator_and_for_the_last_message() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnNoMessages, 0);
        assert!(!lifetime.is_over(0, LINKED));
        lifetime.lose_creator();
        assert!(!lifetime.is_over(1, FILLED));
        assert!(lifetime.is_over(2, LINKED));
    }

    #[test]
    fn one_that_no_link_made_goes_when_its_messages_are_gone_and_nobody_is_linked() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnNoMessages, 0);
        assert!(!lifetime.is_over(0, IDLE));
        assert!(!lifetime.is_over(1, FILLED));
        assert!(!lifetime.is_over(2, LINKED));
        assert!(lifetime.is_over(3, IDLE));
    }

    #[test]
    fn one_that_goes_without_links_or_messages_needs_neither() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnNoLinksOrMessages, 0);
        assert!(!lifetime.is_over(0, LINKED));
        assert!(!lifetime.is_over(1, FILLED));
        assert!(lifetime.is_over(2, IDLE));
    }

    #[test]
    fn with_a_delay_somebody_may_come_back_in_time() {
        let mut lifetime = lifetime(LifetimePolicy::DeleteOnNoLinks, 1_000);
        assert!(!lifetime.is_over(0, LINKED));
        assert!(!lifetime.is_over(100, IDLE));
        assert_eq!(lifetime.due_ms(), Some(1_100));
        assert!(!lifetime.is_over(900, LINKED));
        assert_eq!(lifetime.due_ms(), None);
        assert!(!lifetime.is_over(1_000, IDLE));
        assert!(lifetime.is_over(2_000, IDLE));
    }
}
