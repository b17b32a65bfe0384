//! What has to be looked after from time to time.

use crate::memory::Memory;
use crate::site::Site;
use std::sync::Arc;
use tracing::info;

/// Looks after what nobody reports: the memory that the system allows.
///
/// A container's limit can be changed while it runs; who believes what was true at the start is
/// killed.
pub(crate) struct Housekeeping {
    site: Arc<Site>,
    limit_bytes: u64,
}

impl Housekeeping {
    /// Housekeeping, if there is any to do: a limit that the operator has set is left alone.
    pub(crate) fn of(site: &Arc<Site>) -> Option<Self> {
        let limit_bytes = site.node.broker.budget().limit().unwrap_or(0);
        let site = Arc::clone(site);
        site.config.memory_limit_bytes.is_none().then_some(Self { site, limit_bytes })
    }

    /// Looks, and says when to look again.
    pub(crate) fn look(&mut self, now_ms: u64) -> u64 {
        // Whoever cannot be asked now is asked again next time.
        if let Ok(memory) = Memory::read_again() {
            self.adapt_to(&memory);
        }
        now_ms + INTERVAL_MS
    }

    fn adapt_to(&mut self, memory: &Memory) {
        let limit_bytes = memory.for_messages_bytes();
        if limit_bytes != self.limit_bytes {
            info!(
                from_bytes = self.limit_bytes,
                to_bytes = limit_bytes,
                "the memory limit changed"
            );
            self.limit_bytes = limit_bytes;
            self.site.node.broker.budget().set_limit(limit_bytes);
        }
    }
}

const INTERVAL_MS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use mochila_wire::Now;

    fn site(config: Config) -> Arc<Site> {
        let config = Config { no_data_dir: true, ..config };
        Arc::new(Site::new(config, None, Now::default()).unwrap())
    }

    #[test]
    fn g1_g7_a_control_group_that_gets_more_memory_raises_the_limit() {
        let site = site(Config::default());
        let mut housekeeping = Housekeeping::of(&site).expect("nobody has set a limit");
        for group in [256 << 20, 512 << 20, 128 << 20] {
            let memory = Memory { machine_bytes: 8 << 30, group_bytes: Some(group) };
            housekeeping.adapt_to(&memory);
            assert_eq!(site.node.broker.budget().limit(), Some(group / 4 * 3));
        }
    }

    #[test]
    fn a_limit_that_the_operator_has_set_is_left_alone() {
        let site = site(Config { memory_limit_bytes: Some(1 << 20), ..Config::default() });
        assert!(Housekeeping::of(&site).is_none());
        assert_eq!(site.node.broker.budget().limit(), Some(1 << 20));
    }
}
