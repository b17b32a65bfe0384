//! SASL frames (part 5, 5.3.3).

use std::fmt;

use crate::composite::decode_list;
use crate::decode::{Decode, DecodeError, Decoder, Limits};
use crate::descriptor;
use crate::encode::Encode;
use crate::types::Symbol;

composite! {
    /// The server's mechanisms (part 5, 5.3.3.1).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Mechanisms("sasl-mechanisms", descriptor::SASL_MECHANISMS) {
        /// The mechanisms, best first.
        multiple sasl_server_mechanisms: Symbol,
    }
}

composite! {
    /// The client's choice (part 5, 5.3.3.2).
    #[derive(Clone, PartialEq)]
    pub struct Init("sasl-init", descriptor::SASL_INIT) {
        /// The mechanism.
        mandatory mechanism: Symbol,
        /// What the mechanism says first.
        optional initial_response: Vec<u8>,
        /// The host that the client believes to talk to.
        optional hostname: String,
    }
}

composite! {
    /// A step of the server (part 5, 5.3.3.3).
    #[derive(Clone, PartialEq)]
    pub struct Challenge("sasl-challenge", descriptor::SASL_CHALLENGE) {
        /// What the mechanism says.
        mandatory challenge: Vec<u8>,
    }
}

composite! {
    /// A step of the client (part 5, 5.3.3.4).
    #[derive(Clone, PartialEq)]
    pub struct Response("sasl-response", descriptor::SASL_RESPONSE) {
        /// What the mechanism says.
        mandatory response: Vec<u8>,
    }
}

composite! {
    /// The end of the dialogue (part 5, 5.3.3.5).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Outcome("sasl-outcome", descriptor::SASL_OUTCOME) {
        /// How it ended.
        mandatory code: Code,
        /// What the mechanism says last.
        optional additional_data: Vec<u8>,
    }
}

restricted! {
    /// How a SASL dialogue ended (part 5, 5.3.3.6).
    pub enum Code("sasl-code", u8) {
        /// The client is who it says.
        Ok = 0,
        /// The credentials are wrong.
        Auth = 1,
        /// The system failed.
        Sys = 2,
        /// The system failed, and will until somebody mends it.
        SysPerm = 3,
        /// The system failed, and may not the next time.
        SysTemp = 4,
    }
}

// What mechanisms say holds passwords, so it is never shown.
impl fmt::Debug for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Init")
            .field("mechanism", &self.mechanism)
            .field("initial_response", &self.initial_response.as_ref().map(|_| HIDDEN))
            .field("hostname", &self.hostname)
            .finish()
    }
}

impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenge").field("challenge", &HIDDEN).finish()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("response", &HIDDEN).finish()
    }
}

const HIDDEN: &str = "(hidden)";

/// The body of any SASL frame.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each is the type of the same name")]
pub enum SaslFrame {
    Mechanisms(Mechanisms),
    Init(Init),
    Challenge(Challenge),
    Response(Response),
    Outcome(Outcome),
}

impl SaslFrame {
    /// Reads the body of a SASL frame, which holds nothing else (part 5, 5.3.1).
    pub fn from_body(body: &[u8]) -> Result<SaslFrame, DecodeError> {
        let mut decoder = Decoder::with_limits(body, &Limits::HANDSHAKE);
        let frame = SaslFrame::decode(&mut decoder)?;
        if decoder.is_empty() { Ok(frame) } else { Err(DecodeError::SizeMismatch) }
    }
}

impl Decode for SaslFrame {
    fn decode(decoder: &mut Decoder<'_>) -> Result<SaslFrame, DecodeError> {
        let descriptor = decoder.descriptor()?;
        match descriptor.known() {
            Some(descriptor::SASL_MECHANISMS) => decode_list(decoder).map(SaslFrame::Mechanisms),
            Some(descriptor::SASL_INIT) => decode_list(decoder).map(SaslFrame::Init),
            Some(descriptor::SASL_CHALLENGE) => decode_list(decoder).map(SaslFrame::Challenge),
            Some(descriptor::SASL_RESPONSE) => decode_list(decoder).map(SaslFrame::Response),
            Some(descriptor::SASL_OUTCOME) => decode_list(decoder).map(SaslFrame::Outcome),
            _ => Err(descriptor.unknown()),
        }
    }
}

impl Encode for SaslFrame {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            SaslFrame::Mechanisms(frame) => frame.encode(out),
            SaslFrame::Init(frame) => frame.encode(out),
            SaslFrame::Challenge(frame) => frame.encode(out),
            SaslFrame::Response(frame) => frame.encode(out),
            SaslFrame::Outcome(frame) => frame.encode(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_of_the_dialogue_survives_the_wire() {
        let init = Init {
            mechanism: "PLAIN".into(),
            initial_response: Some(b"\0user\0secret".to_vec()),
            hostname: Some("host".into()),
        };
        let mechanisms = vec!["PLAIN".into(), "ANONYMOUS".into()];
        let frames = [
            SaslFrame::Mechanisms(Mechanisms { sasl_server_mechanisms: mechanisms }),
            SaslFrame::Init(init),
            SaslFrame::Challenge(Challenge { challenge: b"?".to_vec() }),
            SaslFrame::Response(Response { response: b"!".to_vec() }),
            SaslFrame::Outcome(Outcome { code: Code::Auth, additional_data: None }),
        ];
        for frame in frames {
            assert_eq!(SaslFrame::from_body(&frame.to_bytes()), Ok(frame));
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let response = Some(b"\0user\0secret".to_vec());
        let init = Init { mechanism: "PLAIN".into(), initial_response: response, hostname: None };
        assert!(!format!("{init:?}").contains("115"), "{init:?}");
    }

    #[test]
    fn an_outcome_code_that_does_not_exist_is_refused() {
        let bytes = [0x00, 0x53, 0x44, 0xc0, 3, 1, 0x50, 5];
        let invalid = DecodeError::InvalidField { field: "sasl-code" };
        assert_eq!(SaslFrame::from_body(&bytes), Err(invalid));
    }

    #[test]
    fn zero_width_elements_are_refused_before_anybody_logs_in() {
        let bytes = [0x00, 0x53, 0x40, 0xc0, 11, 1, 0xf0, 0, 0, 0, 5, 0, 0, 1, 0, 0x41];
        assert_eq!(SaslFrame::from_body(&bytes), Err(DecodeError::TooManyZeroWidth));
    }
}
