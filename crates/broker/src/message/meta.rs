//! What a queue has to know about a message without looking into it again.

use mochila_wire::section::Section;
use mochila_wire::{Now, Sections};

/// The fields of the header that matter to a queue (part 3, section 3.2.1), and the absolute
/// expiry time (section 3.2.4), read once at ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageMeta {
    /// The message-format of the transfer (part 2, section 2.7.5); 0 is the message of part 3.
    pub message_format: u32,
    /// The sender wants it to survive a crash.
    pub durable: bool,
    /// 0 to 9, 4 unless given.
    pub priority: u8,
    /// How long it may live, if the header says.
    pub ttl_ms: Option<u32>,
    /// When it expires, in milliseconds of the Unix epoch, if the properties say.
    pub absolute_expiry_ms: Option<i64>,
    /// How often it had been delivered in vain before it came here.
    pub delivery_count: u32,
    /// The header claims that nobody has acquired it before.
    pub first_acquirer: bool,
    /// There are delivery annotations, which are for this hop only.
    pub has_delivery_annotations: bool,
}

impl Default for MessageMeta {
    fn default() -> MessageMeta {
        MessageMeta {
            message_format: 0,
            durable: false,
            priority: DEFAULT_PRIORITY,
            ttl_ms: None,
            absolute_expiry_ms: None,
            delivery_count: 0,
            first_acquirer: false,
            has_delivery_annotations: false,
        }
    }
}

impl MessageMeta {
    /// Reads it from the sections of an encoded message; the format is not in them.
    pub fn read(sections: &Sections, bytes: &[u8]) -> MessageMeta {
        let header = sections.header(bytes);
        MessageMeta {
            message_format: 0,
            durable: header.durable,
            priority: header.priority,
            ttl_ms: header.ttl,
            absolute_expiry_ms: sections.absolute_expiry_time(bytes),
            delivery_count: header.delivery_count,
            first_acquirer: header.first_acquirer,
            has_delivery_annotations: sections.has(Section::DeliveryAnnotations),
        }
    }

    /// When it expires on the monotonic clock, if it does.
    pub(crate) fn expiry_ms(&self, now: Now) -> Option<u64> {
        let by_ttl = self.ttl_ms.map(|ttl| now.mono_ms + u64::from(ttl));
        let by_time = self.absolute_expiry_ms.map(|time| {
            let left = time.saturating_sub(now.wall_ms).max(0);
            now.mono_ms.saturating_add(left as u64)
        });
        match (by_ttl, by_time) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

const DEFAULT_PRIORITY: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { mono_ms: 1_000, wall_ms: 50_000 };

    #[test]
    fn a_message_without_ttl_and_expiry_time_never_expires() {
        assert_eq!(MessageMeta::default().expiry_ms(NOW), None);
    }

    #[test]
    fn the_earlier_of_ttl_and_absolute_expiry_time_counts() {
        let meta = MessageMeta {
            ttl_ms: Some(500),
            absolute_expiry_ms: Some(50_200),
            ..MessageMeta::default()
        };
        assert_eq!(meta.expiry_ms(NOW), Some(1_200));
    }

    #[test]
    fn an_expiry_time_in_the_past_is_now() {
        let meta = MessageMeta { absolute_expiry_ms: Some(-5), ..MessageMeta::default() };
        assert_eq!(meta.expiry_ms(NOW), Some(1_000));
    }
}
