use super::MessageId;
use crate::descriptor;
use crate::types::{Symbol, Timestamp};

composite! {
    /// The standard properties of a message (part 3, 3.2.4).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Properties("properties", descriptor::PROPERTIES) {
        /// What tells this message from all others.
        optional message_id: MessageId,
        /// Who made the message.
        optional user_id: Vec<u8>,
        /// The node that the message is for.
        optional to: String,
        /// What the message is about.
        optional subject: String,
        /// The node that answers go to.
        optional reply_to: String,
        /// The message that this one answers.
        optional correlation_id: MessageId,
        /// The MIME type of the body.
        optional content_type: Symbol,
        /// What has to be undone to get at that type.
        optional content_encoding: Symbol,
        /// When the message is worth nothing any more.
        optional absolute_expiry_time: Timestamp,
        /// When the message was made.
        optional creation_time: Timestamp,
        /// The group that the message belongs to.
        optional group_id: String,
        /// The message's place in its group.
        optional group_sequence: u32,
        /// The group that answers belong to.
        optional reply_to_group_id: String,
    }
}
