use crate::AmqpError;
use crate::descriptor;

composite! {
    /// Detaches a link (part 2, 2.7.7).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Detach("detach", descriptor::DETACH) {
        /// The link.
        mandatory handle: u32,
        /// Whether its terminus ends too.
        default closed: bool = false,
        /// Why.
        optional error: AmqpError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode, condition};

    #[test]
    fn a_detach_survives_the_wire() {
        let error = Some(AmqpError::new(condition::DETACH_FORCED, "purged"));
        let detach = Detach { handle: 2, closed: true, error };
        assert_eq!(Detach::from_bytes(&detach.to_bytes()), Ok(detach));
    }
}
