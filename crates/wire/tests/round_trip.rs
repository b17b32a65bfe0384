//! Whatever is written is read back as it was: values, performatives, SASL frames and messages.

use mochila_wire::message::{Body, Header, MessageId, Properties};
use mochila_wire::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, ReceiverSettleMode, Role,
    SenderSettleMode, Transfer,
};
use mochila_wire::terminus::{Source, Target, TargetArchetype, TerminusDurability};
use mochila_wire::types::{Array, Described, Map, Symbol, Timestamp, Uuid};
use mochila_wire::{
    AmqpError, Coordinator, Decode, DeliveryState, Encode, HeadPatch, Limits, Message,
    Performative, Value, annotation, frame, section,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn symbol() -> impl Strategy<Value = Symbol> {
    "[ -~]{0,20}".prop_map(|name| Symbol::new(name).expect("the name is ASCII"))
}

fn scalar() -> impl Strategy<Value = Value> {
    let not_nan = |f: &f64| !f.is_nan();
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u8>().prop_map(Value::Ubyte),
        any::<u16>().prop_map(Value::Ushort),
        prop_oneof![0..300u32, any::<u32>()].prop_map(Value::Uint),
        prop_oneof![0..300u64, any::<u64>()].prop_map(Value::Ulong),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        prop_oneof![-200..200i32, any::<i32>()].prop_map(Value::Int),
        prop_oneof![-200..200i64, any::<i64>()].prop_map(Value::Long),
        any::<f32>().prop_filter("NaN", |f| !f.is_nan()).prop_map(Value::Float),
        any::<f64>().prop_filter("NaN", not_nan).prop_map(Value::Double),
        any::<[u8; 4]>().prop_map(Value::Decimal32),
        any::<[u8; 8]>().prop_map(Value::Decimal64),
        any::<[u8; 16]>().prop_map(Value::Decimal128),
        any::<char>().prop_map(Value::Char),
        any::<i64>().prop_map(Value::Timestamp),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        vec(any::<u8>(), 0..300).prop_map(Value::Binary),
        ".{0,100}".prop_map(Value::String),
        symbol().prop_map(Value::Symbol),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::List),
            vec((inner.clone(), inner.clone()), 0..5).prop_map(|pairs| Value::Map(Map(pairs))),
            (inner.clone(), inner.clone()).prop_map(|(descriptor, value)| Described {
                descriptor,
                value
            }
            .into()),
            array(inner).prop_map(Value::Array),
        ]
    })
}

/// Arrays of whatever one strategy makes: values of one type are picked out of several.
fn array(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Array> {
    (vec(inner, 1..8), vec(scalar(), 0..2)).prop_map(|(mut elements, descriptors)| {
        elements.retain(|element| !matches!(element, Value::Described(_)));
        let of = elements.first().map_or(mochila_wire::Type::Null, Value::type_of);
        elements.retain(|element| element.type_of() == of);
        Array { descriptors, of, elements }
    })
}

fn map() -> impl Strategy<Value = Map> {
    vec((symbol(), value()), 0..4)
        .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (Value::Symbol(k), v)).collect())
}

fn symbols() -> impl Strategy<Value = Vec<Symbol>> {
    vec(symbol(), 0..4)
}

fn error() -> impl Strategy<Value = AmqpError> {
    (symbol(), option::of(".{0,40}"), option::of(map()))
        .prop_map(|(condition, description, info)| AmqpError { condition, description, info })
}

fn outcome() -> impl Strategy<Value = DeliveryState> {
    prop_oneof![
        Just(DeliveryState::Accepted),
        option::of(error().prop_map(Box::new)).prop_map(|error| DeliveryState::Rejected { error }),
        Just(DeliveryState::Released),
        (any::<bool>(), any::<bool>(), option::of(map())).prop_map(
            |(delivery_failed, undeliverable_here, message_annotations)| {
                DeliveryState::Modified { delivery_failed, undeliverable_here, message_annotations }
            }
        ),
        vec(any::<u8>(), 0..40)
            .prop_map(|id| DeliveryState::Declared { txn_id: id.into_boxed_slice() }),
        (1u64 << 32.., value()).prop_map(|(code, value)| {
            DeliveryState::Other(Box::new(Described { descriptor: code.into(), value }))
        }),
    ]
}

fn state() -> impl Strategy<Value = DeliveryState> {
    prop_oneof![
        (any::<u32>(), any::<u64>()).prop_map(|(section_number, section_offset)| {
            DeliveryState::Received { section_number, section_offset }
        }),
        outcome(),
        (vec(any::<u8>(), 0..40), option::of(outcome().prop_map(Box::new))).prop_map(
            |(id, outcome)| DeliveryState::Transactional { txn_id: id.into_boxed_slice(), outcome }
        ),
    ]
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Sender), Just(Role::Receiver)]
}

fn source() -> impl Strategy<Value = Source> {
    (
        (option::of(".{0,20}"), any::<u32>(), any::<bool>(), option::of(map())),
        (option::of(symbol()), option::of(map()), option::of(outcome()), symbols(), symbols()),
    )
        .prop_map(|((address, timeout, dynamic, properties), rest)| Source {
            address,
            timeout,
            dynamic,
            dynamic_node_properties: properties,
            distribution_mode: rest.0,
            filter: rest.1,
            default_outcome: rest.2,
            outcomes: rest.3,
            capabilities: rest.4,
            ..Source::default()
        })
}

fn target() -> impl Strategy<Value = TargetArchetype> {
    prop_oneof![
        (option::of(".{0,20}"), any::<bool>(), symbols()).prop_map(|(address, dynamic, c)| {
            TargetArchetype::Target(Target {
                address,
                dynamic,
                durable: TerminusDurability::Configuration,
                capabilities: c,
                ..Target::default()
            })
        }),
        symbols().prop_map(|c| TargetArchetype::Coordinator(Coordinator { capabilities: c })),
    ]
}

fn open() -> impl Strategy<Value = Open> {
    (
        (".{0,40}", option::of(".{0,40}"), any::<u32>(), any::<u16>(), option::of(any::<u32>())),
        (symbols(), symbols(), symbols(), symbols(), option::of(map())),
    )
        .prop_map(|(a, b)| Open {
            container_id: a.0,
            hostname: a.1,
            max_frame_size: a.2,
            channel_max: a.3,
            idle_time_out: a.4,
            outgoing_locales: b.0,
            incoming_locales: b.1,
            offered_capabilities: b.2,
            desired_capabilities: b.3,
            properties: b.4,
        })
}

fn begin() -> impl Strategy<Value = Begin> {
    (
        (option::of(any::<u16>()), any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()),
        (symbols(), symbols(), option::of(map())),
    )
        .prop_map(|(a, b)| Begin {
            remote_channel: a.0,
            next_outgoing_id: a.1,
            incoming_window: a.2,
            outgoing_window: a.3,
            handle_max: a.4,
            offered_capabilities: b.0,
            desired_capabilities: b.1,
            properties: b.2,
        })
}

fn attach() -> impl Strategy<Value = Attach> {
    (
        (".{0,20}", any::<u32>(), role(), option::of(source()), option::of(target())),
        (option::of(map()), any::<bool>(), option::of(any::<u32>()), option::of(any::<u64>())),
        (symbols(), symbols(), option::of(map())),
    )
        .prop_map(|(a, b, c)| Attach {
            name: a.0,
            handle: a.1,
            role: a.2,
            snd_settle_mode: SenderSettleMode::Settled,
            rcv_settle_mode: ReceiverSettleMode::Second,
            source: a.3,
            target: a.4,
            unsettled: b.0,
            incomplete_unsettled: b.1,
            initial_delivery_count: b.2,
            max_message_size: b.3,
            offered_capabilities: c.0,
            desired_capabilities: c.1,
            properties: c.2,
        })
}

fn flow() -> impl Strategy<Value = Flow> {
    let number = || option::of(any::<u32>());
    (
        (number(), any::<u32>(), any::<u32>(), any::<u32>(), number(), number()),
        (number(), number(), any::<bool>(), any::<bool>(), option::of(map())),
    )
        .prop_map(|(a, b)| Flow {
            next_incoming_id: a.0,
            incoming_window: a.1,
            next_outgoing_id: a.2,
            outgoing_window: a.3,
            handle: a.4,
            delivery_count: a.5,
            link_credit: b.0,
            available: b.1,
            drain: b.2,
            echo: b.3,
            properties: b.4,
        })
}

fn disposition() -> impl Strategy<Value = Disposition> {
    let range = (any::<u32>(), option::of(any::<u32>()));
    (role(), range, any::<bool>(), option::of(state()), any::<bool>()).prop_map(|d| Disposition {
        role: d.0,
        first: d.1.0,
        last: d.1.1,
        settled: d.2,
        state: d.3,
        batchable: d.4,
    })
}

fn performative() -> impl Strategy<Value = Performative<'static>> {
    let detach = (any::<u32>(), any::<bool>(), option::of(error()))
        .prop_map(|(handle, closed, error)| Detach { handle, closed, error });
    prop_oneof![
        open().prop_map(|open| Performative::Open(Box::new(open))),
        begin().prop_map(|begin| Performative::Begin(Box::new(begin))),
        attach().prop_map(|attach| Performative::Attach(Box::new(attach))),
        flow().prop_map(Performative::Flow),
        disposition().prop_map(Performative::Disposition),
        detach.prop_map(|detach| Performative::Detach(Box::new(detach))),
        option::of(error()).prop_map(|error| Performative::End(End { error })),
        option::of(error()).prop_map(|error| Performative::Close(Close { error })),
    ]
}

fn id() -> impl Strategy<Value = MessageId> {
    prop_oneof![
        any::<u64>().prop_map(MessageId::Ulong),
        any::<[u8; 16]>().prop_map(|id| MessageId::Uuid(Uuid(id))),
        vec(any::<u8>(), 0..20).prop_map(MessageId::Binary),
        ".{0,20}".prop_map(MessageId::String),
    ]
}

fn properties() -> impl Strategy<Value = Properties> {
    let text = || option::of(".{0,20}");
    let time = || option::of(any::<i64>().prop_map(Timestamp));
    (
        (option::of(id()), option::of(vec(any::<u8>(), 0..20)), text(), text(), text()),
        (option::of(id()), option::of(symbol()), option::of(symbol()), time(), time()),
        (text(), option::of(any::<u32>()), text()),
    )
        .prop_map(|(a, b, c)| Properties {
            message_id: a.0,
            user_id: a.1,
            to: a.2,
            subject: a.3,
            reply_to: a.4,
            correlation_id: b.0,
            content_type: b.1,
            content_encoding: b.2,
            absolute_expiry_time: b.3,
            creation_time: b.4,
            group_id: c.0,
            group_sequence: c.1,
            reply_to_group_id: c.2,
        })
}

fn header() -> impl Strategy<Value = Header> {
    (any::<bool>(), any::<u8>(), option::of(any::<u32>()), any::<bool>(), 0..300u32).prop_map(
        |(durable, priority, ttl, first_acquirer, delivery_count)| Header {
            durable,
            priority,
            ttl,
            first_acquirer,
            delivery_count,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        Just(Body::Empty),
        vec(vec(any::<u8>(), 0..400), 1..4).prop_map(Body::Data),
        vec(vec(value(), 0..4), 1..4).prop_map(Body::Sequence),
        value().prop_map(Body::Value),
    ];
    (
        (option::of(header()), option::of(map()), option::of(map())),
        (option::of(properties().prop_map(Box::new)), option::of(map()), body, option::of(map())),
    )
        .prop_map(|(a, b)| Message {
            header: a.0,
            delivery_annotations: a.1,
            message_annotations: a.2,
            properties: b.0,
            application_properties: b.1,
            body: b.2,
            footer: b.3,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_value_survives_the_wire(value in value()) {
        let bytes = value.to_bytes();
        prop_assert_eq!(Value::from_bytes(&bytes), Ok(value));
        mochila_wire::probe::value(&bytes);
    }

    #[test]
    fn a_performative_survives_the_wire(performative in performative()) {
        let bytes = performative.to_bytes();
        prop_assert_eq!(Performative::decode(&bytes), Ok((performative, bytes.len())));
    }

    #[test]
    fn a_transfer_survives_the_wire(
        numbers in (any::<u32>(), option::of(any::<u32>()), option::of(any::<u32>())),
        tag in option::of(vec(any::<u8>(), 0..40)),
        flags in (option::of(any::<bool>()), any::<bool>(), any::<bool>(), any::<bool>()),
        state in option::of(state()),
        payload in vec(any::<u8>(), 0..50),
    ) {
        let transfer = Transfer {
            handle: numbers.0,
            delivery_id: numbers.1,
            delivery_tag: tag.as_deref(),
            message_format: numbers.2,
            settled: flags.0,
            more: flags.1,
            rcv_settle_mode: Some(ReceiverSettleMode::First),
            state: state.map(Into::into),
            resume: flags.2,
            aborted: flags.3,
            batchable: false,
        };
        let mut bytes = transfer.to_bytes();
        let len = bytes.len();
        bytes.extend_from_slice(&payload);
        prop_assert_eq!(Transfer::decode(&bytes), Ok((transfer, len)));
    }

    #[test]
    fn the_fast_writer_of_transfers_agrees_with_the_slow_one(
        numbers in (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>()),
        tag in vec(any::<u8>(), 0..=32),
        flags in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        first in any::<bool>(),
        payload in vec(any::<u8>(), 0..50),
    ) {
        let head = frame::TransferHead {
            handle: numbers.0,
            delivery_id: first.then_some(numbers.1),
            delivery_tag: &tag,
            message_format: numbers.2,
            settled: flags.0,
            more: flags.1,
            aborted: flags.2,
            batchable: flags.3,
        };
        let transfer = Transfer {
            handle: numbers.0,
            delivery_id: first.then_some(numbers.1),
            delivery_tag: first.then_some(&tag),
            message_format: first.then_some(numbers.2),
            settled: Some(flags.0),
            more: flags.1,
            aborted: flags.2,
            batchable: flags.3,
            ..Transfer::default()
        };
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        let (front, back) = payload.split_at(payload.len() / 2);
        frame::write_transfer(&mut fast, numbers.3, &head, &[front, back]);
        let start = frame::start(&mut slow, frame::FrameKind::Amqp, numbers.3);
        transfer.encode(&mut slow);
        slow.extend_from_slice(&payload);
        frame::finish(&mut slow, start);
        let body = |bytes: &[u8]| bytes[frame::HEADER_LEN..].to_vec();
        let (fast_body, slow_body) = (body(&fast), body(&slow));
        prop_assert_eq!(
            Transfer::decode(&fast_body).unwrap().0,
            Transfer::decode(&slow_body).unwrap().0
        );
        let header = frame::Header::parse(&fast).unwrap().unwrap();
        prop_assert_eq!(header.size as usize, fast.len());
        prop_assert!(fast.ends_with(&payload));
    }

    #[test]
    fn a_message_survives_the_wire_and_every_way_to_look_at_it(message in message()) {
        let bytes = message.to_bytes();
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
        mochila_wire::probe::message(&bytes);
        section::verify(&bytes, &Limits::DEFAULT).unwrap();
    }

    #[test]
    fn annotating_adds_pairs_and_changes_nothing_else(
        message in message(),
        added in vec(("[a-z]{1,3}".prop_map(|k| Symbol::new(k).unwrap()), value()), 1..4),
        delivery_count in 0..3u32,
    ) {
        let bytes = message.to_bytes();
        let sections = section::scan(&bytes, &Limits::DEFAULT).unwrap();
        let patch = HeadPatch { delivery_count, annotations: &added, ..HeadPatch::default() };
        let mut out = Vec::new();
        let from = annotation::write_head(&mut out, &bytes, &sections, &patch);
        prop_assert_eq!(from, sections.bare_start());
        out.extend_from_slice(&bytes[from..]);

        let mut sent = Message::decode(&out).unwrap();
        prop_assert_eq!(sent.header.unwrap_or_default().delivery_count, delivery_count);
        let annotations = sent.message_annotations.take().unwrap();
        for (key, value) in &added {
            let last = added.iter().rfind(|(k, _)| k == key).map(|(_, v)| v).unwrap();
            let found = annotations.get(key.as_str()).unwrap();
            let same_type = last.to_type(found.type_of());
            prop_assert_eq!(same_type.as_ref().unwrap_or(value), found);
        }
        for (key, value) in message.message_annotations.iter().flat_map(Map::iter) {
            if !added.iter().any(|(k, _)| Some(k.as_str()) == key.as_str()) {
                prop_assert!(annotations.iter().any(|pair| pair == (key, value)));
            }
        }
        let untouched = |message: &Message| {
            (message.properties.clone(), message.application_properties.clone(),
             message.body.clone(), message.footer.clone(), message.delivery_annotations.clone())
        };
        prop_assert_eq!(untouched(&sent), untouched(&message));
    }
}
