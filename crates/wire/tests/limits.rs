//! Each limit is reached, refused with its own error, and costs no memory.

use mochila_wire::{Decode, DecodeError, Decoder, Encode, Limits, Message, Value};

fn decode(bytes: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    let walked = Decoder::with_limits(bytes, &limits).walk();
    let decoded = Decoder::with_limits(bytes, &limits).value();
    assert_eq!(decoded.as_ref().err(), walked.as_ref().err(), "both ways to check agree");
    decoded
}

fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(Value::Null, |inner, _| Value::List(vec![inner])).to_bytes()
}

#[test]
fn lists_nest_as_deep_as_the_limit_and_no_deeper() {
    let limits = Limits { max_depth: 5, ..Limits::DEFAULT };
    assert!(decode(&nested(5), limits).is_ok());
    assert_eq!(decode(&nested(6), limits), Err(DecodeError::TooDeep));
}

#[test]
fn depth_counts_maps_arrays_and_descriptors_too() {
    let limits = Limits { max_depth: 1, ..Limits::DEFAULT };
    let cases: [&[u8]; 4] = [
        &[0xc1, 5, 2, 0x40, 0xc1, 1, 0],
        &[0xe0, 5, 1, 0xe0, 2, 0, 0x40],
        &[0x00, 0x44, 0x00, 0x44, 0x40],
        &[0x00, 0x00, 0x44, 0x44, 0x40],
    ];
    for bytes in cases {
        assert_eq!(decode(bytes, limits), Err(DecodeError::TooDeep), "{bytes:02x?}");
        assert!(decode(bytes, Limits { max_depth: 2, ..limits }).is_ok());
    }
}

#[test]
fn a_tower_of_a_million_levels_does_not_overflow_the_stack() {
    let mut lists = vec![0x00; 1 << 20];
    assert_eq!(decode(&lists, Limits::DEFAULT), Err(DecodeError::TooDeep));
    lists.fill(0xe0);
    assert!(decode(&lists, Limits::DEFAULT).is_err());
    assert_eq!(decode(&nested(100_000 / 9), Limits::DEFAULT), Err(DecodeError::TooDeep));
}

#[test]
fn elements_are_counted_over_all_levels() {
    let limits = Limits { max_elements: 5, ..Limits::DEFAULT };
    let row = Value::List(vec![Value::Null; 2]);
    let five = Value::List(vec![row.clone(), Value::from(vec![Value::Null])]);
    let six = Value::List(vec![row.clone(), row]);
    assert!(decode(&five.to_bytes(), limits).is_ok());
    assert_eq!(decode(&six.to_bytes(), limits), Err(DecodeError::TooManyElements));
}

#[test]
fn array_elements_without_bytes_have_a_limit_of_their_own() {
    for code in [0x40, 0x41, 0x42, 0x43, 0x44, 0x45] {
        let array = |count: u32| {
            let [a, b, c, d] = count.to_be_bytes();
            [0xf0, 0, 0, 0, 5, a, b, c, d, code]
        };
        let limit = Limits::DEFAULT.max_zero_width;
        assert!(decode(&array(limit), Limits::DEFAULT).is_ok());
        let refused = decode(&array(limit + 1), Limits::DEFAULT);
        assert_eq!(refused, Err(DecodeError::TooManyZeroWidth));
        let refused = decode(&array(u32::MAX), Limits::DEFAULT);
        assert_eq!(refused, Err(DecodeError::TooManyElements));
    }
}

#[test]
fn many_small_arrays_without_bytes_share_one_limit() {
    let array = [0xe0, 2, 200, 0x40];
    let list = |n: u8| [&[0xc0, n * 4 + 1, n][..], &array.repeat(n.into())].concat();
    assert!(decode(&list(5), Limits::DEFAULT).is_ok());
    assert_eq!(decode(&list(6), Limits::DEFAULT), Err(DecodeError::TooManyZeroWidth));
}

#[test]
fn n7_a_count_that_the_bytes_do_not_back_is_refused_before_anything_is_built() {
    let count = u32::MAX;
    let [a, b, c, d] = count.to_be_bytes();
    let error = Err(DecodeError::CountExceedsBytes { count });
    for code in [0xd0, 0xd1] {
        assert_eq!(decode(&[code, 0, 0, 0, 5, a, b, c, d, 0x40], Limits::DEFAULT), error);
    }
    let limits = Limits { max_elements: u32::MAX, ..Limits::DEFAULT };
    for element in [0x50, 0x70, 0x98, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0] {
        let bytes = [0xf0, 0, 0, 0, 6, a, b, c, d, element, 0];
        assert_eq!(decode(&bytes, limits), error, "{element:02x}");
    }
}

#[test]
fn n1_a_large_array_costs_no_more_than_its_elements() {
    // What looks at all elements for each of them, or at each level again, does not end here.
    let count = Limits::DEFAULT.max_elements;
    let flat = [&[0xf0][..], &(count + 5).to_be_bytes(), &count.to_be_bytes(), &[0x53]].concat();
    let flat = [flat, vec![7; count as usize]].concat();
    let Ok(Value::Array(array)) = decode(&flat, Limits::DEFAULT) else { panic!("it is refused") };
    assert_eq!(array.len(), count as usize);
    assert!(decode(&Value::Array(array).to_bytes(), Limits::DEFAULT).is_ok());

    let deep = Limits::DEFAULT.max_depth as usize - 1;
    let bytes = vec![Value::Binary(vec![7; 1 << 20])];
    let nested = (0..deep).fold(Value::List(bytes), |inner, _| Value::List(vec![inner]));
    assert!(decode(&nested.to_bytes(), Limits::DEFAULT).is_ok());
}

#[test]
fn n6_an_element_does_not_reach_beyond_what_it_is_in() {
    // The bytes of the element are there, but do not belong to it.
    let element: [&[u8]; 6] = [
        &[0x70, 0, 0, 0, 1],
        &[0xa1, 3, b'a', b'b', b'c'],
        &[0xc0, 3, 1, 0x50, 1],
        &[0xe0, 4, 2, 0x50, 1, 2],
        &[0x00, 0x53, 1, 0x50, 1],
        &[0x98, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    ];
    for element in element {
        for len in 0..=element.len() {
            let size = len as u8 + 1;
            let list = [&[0xc0, size, 1][..], element, &[0x40; 20]].concat();
            assert_eq!(decode_first(&list).is_ok(), len == element.len(), "{len} of {element:?}");
            let map = [&[0xc1, size + 1, 2, 0x40][..], element, &[0x40; 20]].concat();
            assert_eq!(decode_first(&map).is_ok(), len == element.len(), "{len} of {element:?}");
        }
    }
}

/// Reads the first value, whatever follows it.
fn decode_first(bytes: &[u8]) -> Result<Value, DecodeError> {
    let walked = Decoder::with_limits(bytes, &Limits::DEFAULT).walk();
    let decoded = Decoder::with_limits(bytes, &Limits::DEFAULT).value();
    assert_eq!(decoded.as_ref().err(), walked.as_ref().err(), "both ways to check agree");
    decoded
}

#[test]
fn a_size_that_the_bytes_do_not_back_is_refused() {
    for code in [0xb0, 0xb1, 0xb3, 0xd0, 0xd1, 0xf0] {
        let error = DecodeError::SizeExceedsBytes { size: u32::MAX };
        assert_eq!(decode(&[code, 0xff, 0xff, 0xff, 0xff, 0], Limits::DEFAULT), Err(error));
    }
    for code in [0xa0, 0xa1, 0xa3, 0xc0, 0xc1, 0xe0] {
        let error = DecodeError::SizeExceedsBytes { size: 2 };
        assert_eq!(decode(&[code, 2, 0], Limits::DEFAULT), Err(error));
    }
}

#[test]
fn a_message_may_have_as_many_sections_and_bytes_as_the_limits_say() {
    let message = Message { body: Message::of_data("x").body, ..Message::default() }.to_bytes();
    let size = message.len() as u32;
    let within = |limits| Message::decode_within(&message, &limits).err();
    assert_eq!(within(Limits { max_size: size, max_sections: 1, ..Limits::DEFAULT }), None);
    let small = Limits { max_size: size - 1, ..Limits::DEFAULT };
    assert_eq!(within(small), Some(DecodeError::TooLarge));
    let none = Limits { max_sections: 0, ..Limits::DEFAULT };
    assert_eq!(within(none), Some(DecodeError::TooManySections));
}

#[test]
fn each_limit_has_an_error_and_a_sentence_of_its_own() {
    let errors = [
        DecodeError::TooDeep,
        DecodeError::TooManyElements,
        DecodeError::TooManyZeroWidth,
        DecodeError::TooManySections,
        DecodeError::TooLarge,
        DecodeError::CountExceedsBytes { count: 9 },
        DecodeError::SizeExceedsBytes { size: 9 },
    ];
    let sentences: std::collections::BTreeSet<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(sentences.len(), errors.len());
    assert!(Value::from_bytes(&[]).is_err());
}
