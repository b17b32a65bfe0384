use crate::AmqpError;
use crate::descriptor;

composite! {
    /// Ends a session (part 2, 2.7.8).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct End("end", descriptor::END) {
        /// Why.
        optional error: AmqpError,
    }
}
