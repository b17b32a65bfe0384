//! Messages to a transaction coordinator (part 4, 4.5.2 and 4.5.3).

use crate::descriptor;
use crate::types::{Symbol, Value};

composite! {
    /// Begins a transaction (part 4, 4.5.2).
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Declare("declare", descriptor::DECLARE) {
        /// The distributed transaction that this one is part of.
        optional global_id: Value,
    }
}

composite! {
    /// Ends a transaction (part 4, 4.5.3).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Discharge("discharge", descriptor::DISCHARGE) {
        /// The transaction.
        mandatory txn_id: Box<[u8]>,
        /// Whether it is rolled back.
        default fail: bool = false,
    }
}

/// Transactions within one coordinator (part 4, 4.5.7).
pub const LOCAL_TRANSACTIONS: Symbol = Symbol::from_static("amqp:local-transactions");
/// Several transactions may be active on one session (part 4, 4.5.7).
pub const MULTI_TXNS_PER_SSN: Symbol = Symbol::from_static("amqp:multi-txns-per-ssn");
/// A transaction may be active on several sessions (part 4, 4.5.7).
pub const MULTI_SSNS_PER_TXN: Symbol = Symbol::from_static("amqp:multi-ssns-per-txn");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decode, Encode};

    #[test]
    fn a_transaction_is_declared_and_discharged() {
        assert_eq!(Declare::default().to_bytes(), [0x00, 0x53, 0x31, 0x45]);
        let discharge = Discharge { txn_id: Box::from(*b"t1"), fail: true };
        let bytes = discharge.to_bytes();
        assert_eq!(bytes, [0x00, 0x53, 0x32, 0xc0, 6, 2, 0xa0, 2, b't', b'1', 0x41]);
        assert_eq!(Discharge::from_bytes(&bytes), Ok(discharge));
    }
}
