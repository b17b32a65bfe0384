use crate::AmqpError;
use crate::descriptor;

composite! {
    /// Closes a connection (part 2, 2.7.9).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Close("close", descriptor::CLOSE) {
        /// Why.
        optional error: AmqpError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode, condition};

    #[test]
    fn a_close_says_why_or_nothing() {
        assert_eq!(Close::default().to_bytes(), [0x00, 0x53, 0x18, 0x45]);
        let close = Close { error: Some(condition::CONNECTION_FORCED.into()) };
        assert_eq!(Close::from_bytes(&close.to_bytes()), Ok(close));
    }
}
