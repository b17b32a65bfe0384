use mochila_wire::Map;

use crate::url::Endpoint;

/// How a connection introduces itself, and what it does when it breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The container id of the open performative (part 2, section 2.7.1); made up if `None`.
    pub container_id: Option<String>,
    /// The host name of the open performative; the name of the endpoint if `None`.
    pub hostname: Option<String>,
    /// The SASL mechanisms that may be used, separated by spaces: `PLAIN`, `ANONYMOUS`, or `NONE`
    /// for no SASL layer at all. If `None`, `PLAIN` where the URL has a user, else `ANONYMOUS`.
    pub mechanisms: Option<String>,
    /// The largest frame that we accept, in bytes.
    pub max_frame_size: u32,
    /// The highest channel number that the peer may use.
    pub channel_max: u16,
    /// After this long without a frame from the peer the connection counts as broken.
    pub idle_timeout_ms: Option<u32>,
    /// Connection properties of the open performative.
    pub properties: Map,
    /// Whether small packets leave at once (TCP_NODELAY).
    pub nodelay: bool,
    /// How long connecting and the handshake may take together.
    pub connect_timeout_ms: u64,
    /// How to try again after a connection is lost; `None` = not at all.
    pub reconnect: Option<Backoff>,
    /// Further endpoints to try, after those of the URL.
    pub failover: Vec<Endpoint>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            container_id: None,
            hostname: None,
            mechanisms: None,
            max_frame_size: 256 * 1024,
            channel_max: 255,
            idle_timeout_ms: None,
            properties: Map::new(),
            nodelay: true,
            connect_timeout_ms: 10_000,
            reconnect: None,
            failover: Vec::new(),
        }
    }
}

/// How long to wait between attempts to connect: twice as long each time, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the second attempt; the first is made at once.
    pub min_ms: u64,
    /// The longest wait.
    pub max_ms: u64,
    /// The number of attempts before giving up; `None` = without limit.
    pub max_attempts: Option<u32>,
    /// The time since the connection was lost after which to give up; `None` = never.
    pub give_up_after_ms: Option<u64>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { min_ms: 1, max_ms: 2_000, max_attempts: None, give_up_after_ms: None }
    }
}

impl Backoff {
    /// How long to wait before attempt number `attempt` (the first is 0), when `elapsed_ms` have
    /// passed since the connection was lost; `None` = give up.
    ///
    /// ```
    /// use mochila_client::Backoff;
    /// let backoff = Backoff { min_ms: 100, max_ms: 300, max_attempts: Some(5), ..Backoff::default() };
    /// let waits: Vec<_> = (0..6).map(|attempt| backoff.wait_ms(attempt, 0)).collect();
    /// assert_eq!(waits, [Some(0), Some(100), Some(200), Some(300), Some(300), None]);
    /// ```
    pub fn wait_ms(&self, attempt: u32, elapsed_ms: u64) -> Option<u64> {
        if self.max_attempts.is_some_and(|max| attempt >= max)
            || self.give_up_after_ms.is_some_and(|limit| elapsed_ms >= limit)
        {
            return None;
        }
        let Some(doublings) = attempt.checked_sub(1) else { return Some(0) };
        let wait_ms = self.min_ms.saturating_mul(1_u64.checked_shl(doublings).unwrap_or(u64::MAX));
        Some(wait_ms.min(self.max_ms.max(self.min_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end_by_number_or_by_time() {
        let backoff = Backoff { max_attempts: Some(2), ..Backoff::default() };
        assert_eq!([0, 1, 2].map(|n| backoff.wait_ms(n, 0)), [Some(0), Some(1), None]);
        let backoff = Backoff { give_up_after_ms: Some(1_000), ..Backoff::default() };
        assert_eq!(backoff.wait_ms(3, 999), Some(4));
        assert_eq!(backoff.wait_ms(3, 1_000), None);
    }

    #[test]
    fn a_wait_never_overflows() {
        assert_eq!(Backoff::default().wait_ms(u32::MAX, 0), Some(2_000));
    }
}
