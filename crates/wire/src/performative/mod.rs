//! The performatives: what frames say (part 2, 2.7).

mod attach;
mod begin;
mod close;
mod detach;
mod disposition;
mod end;
mod flow;
mod open;
mod transfer;

pub use attach::Attach;
pub use begin::Begin;
pub use close::Close;
pub use detach::Detach;
pub use disposition::Disposition;
pub use end::End;
pub use flow::Flow;
pub use open::Open;
pub use transfer::{Transfer, TransferState};

use crate::composite::decode_list;
use crate::decode::{DecodeError, Decoder, Limits};
use crate::descriptor;
use crate::encode::Encode;

restricted! {
    /// The end of a link that a peer is (part 2, 2.8.1).
    pub enum Role("role", bool) {
        /// The end that sends messages.
        Sender = false,
        /// The end that receives messages.
        Receiver = true,
    }
}

impl Role {
    /// The role of the peer.
    #[must_use]
    pub const fn other(self) -> Role {
        match self {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        }
    }
}

restricted! {
    /// Whether the sender settles deliveries as it sends them (part 2, 2.8.2).
    #[derive(Default)]
    pub enum SenderSettleMode("sender-settle-mode", u8) {
        /// Never.
        Unsettled = 0,
        /// Always.
        Settled = 1,
        /// Sometimes.
        #[default]
        Mixed = 2,
    }
}

restricted! {
    /// When the receiver settles deliveries (part 2, 2.8.3).
    #[derive(Default)]
    pub enum ReceiverSettleMode("receiver-settle-mode", u8) {
        /// As it tells their outcome.
        #[default]
        First = 0,
        /// After the sender has settled.
        Second = 1,
    }
}

/// What an AMQP frame says; large and rare ones are boxed, so that the hot ones move cheaply.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each is the type of the same name")]
pub enum Performative<'a> {
    Open(Box<Open>),
    Begin(Box<Begin>),
    Attach(Box<Attach>),
    Flow(Flow),
    Transfer(Transfer<'a>),
    Disposition(Disposition),
    Detach(Box<Detach>),
    End(End),
    Close(Close),
}

impl<'a> Performative<'a> {
    /// Reads the performative at the front of a frame's body, and tells how many bytes it takes:
    /// what follows is the payload.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<(Performative<'a>, usize), DecodeError> {
        Performative::decode_within(body, &Limits::DEFAULT)
    }

    /// The same within other limits.
    #[inline]
    pub fn decode_within(
        body: &'a [u8],
        limits: &Limits,
    ) -> Result<(Performative<'a>, usize), DecodeError> {
        // What messages cost comes first, in its usual encodings.
        const TRANSFER: u8 = descriptor::TRANSFER as u8;
        const DISPOSITION: u8 = descriptor::DISPOSITION as u8;
        const FLOW: u8 = descriptor::FLOW as u8;
        match body {
            [_, _, TRANSFER, ..] => {
                if let Some((transfer, used)) = Transfer::decode_usual(body) {
                    return Ok((Performative::Transfer(transfer), used));
                }
            }
            [_, _, DISPOSITION, ..] => {
                if let Some((disposition, used)) = Disposition::decode_usual(body) {
                    return Ok((Performative::Disposition(disposition), used));
                }
            }
            [_, _, FLOW, ..] => {
                if let Some((flow, used)) = Flow::decode_usual(body) {
                    return Ok((Performative::Flow(flow), used));
                }
            }
            _ => {}
        }
        Performative::decode_any(body, limits)
    }

    fn decode_any(
        body: &'a [u8],
        limits: &Limits,
    ) -> Result<(Performative<'a>, usize), DecodeError> {
        let mut decoder = Decoder::with_limits(body, limits);
        let descriptor = decoder.descriptor()?;
        let d = &mut decoder;
        let performative = match descriptor.known() {
            Some(descriptor::OPEN) => Performative::Open(decode_list(d).map(Box::new)?),
            Some(descriptor::BEGIN) => Performative::Begin(decode_list(d).map(Box::new)?),
            Some(descriptor::ATTACH) => Performative::Attach(decode_list(d).map(Box::new)?),
            Some(descriptor::FLOW) => Performative::Flow(decode_list(d)?),
            Some(descriptor::TRANSFER) => Performative::Transfer(Transfer::decode_list(d)?),
            Some(descriptor::DISPOSITION) => Performative::Disposition(decode_list(d)?),
            Some(descriptor::DETACH) => Performative::Detach(decode_list(d).map(Box::new)?),
            Some(descriptor::END) => Performative::End(decode_list(d)?),
            Some(descriptor::CLOSE) => Performative::Close(decode_list(d)?),
            _ => return Err(descriptor.unknown()),
        };
        Ok((performative, body.len() - decoder.rest().len()))
    }

    /// The name in the specification.
    pub const fn name(&self) -> &'static str {
        match self {
            Performative::Open(_) => "open",
            Performative::Begin(_) => "begin",
            Performative::Attach(_) => "attach",
            Performative::Flow(_) => "flow",
            Performative::Transfer(_) => "transfer",
            Performative::Disposition(_) => "disposition",
            Performative::Detach(_) => "detach",
            Performative::End(_) => "end",
            Performative::Close(_) => "close",
        }
    }
}

impl Encode for Performative<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Performative::Open(open) => open.encode(out),
            Performative::Begin(begin) => begin.encode(out),
            Performative::Attach(attach) => attach.encode(out),
            Performative::Flow(flow) => flow.encode(out),
            Performative::Transfer(transfer) => transfer.encode(out),
            Performative::Disposition(disposition) => disposition.encode(out),
            Performative::Detach(detach) => detach.encode(out),
            Performative::End(end) => end.encode(out),
            Performative::Close(close) => close.encode(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_performative_is_named_in_its_error() {
        let unknown = |name: &str| Err(DecodeError::UnknownDescriptor(name.into()));
        assert_eq!(Performative::decode(&[0x00, 0x53, 0x19, 0x45]), unknown("0x19"));
        let symbolic = [&[0x00, 0xa3, 15][..], b"amqp:open:list2", &[0x45]].concat();
        assert_eq!(Performative::decode(&symbolic), unknown("amqp:open:list2"));
    }

    #[test]
    fn a_performative_may_have_a_symbolic_descriptor_or_a_wide_one() {
        let symbolic = [&[0x00, 0xa3, 14][..], b"amqp:end:list", &[0x45]].concat();
        let symbolic = [&symbolic[..2], &[13], &symbolic[3..]].concat();
        let wide = [0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x17, 0x45];
        for body in [&symbolic[..], &wide] {
            let (end, used) = Performative::decode(body).unwrap();
            assert_eq!(end, Performative::End(End { error: None }));
            assert_eq!(used, body.len());
        }
    }

    #[test]
    fn the_size_of_a_performative_stays_small() {
        assert!(size_of::<Performative<'_>>() <= 120, "{}", size_of::<Performative<'_>>());
    }
}
