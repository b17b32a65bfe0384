//! Every primitive type in every encoding (part 1, 1.6), as bytes written by hand.

use mochila_wire::types::{Array, Described, Map, Symbol, Type, Value};
use mochila_wire::{Decode, DecodeError, Decoder, Encode};

const UUID: [u8; 16] = *b"0123456789abcdef";

fn symbol(name: &'static str) -> Value {
    Value::Symbol(Symbol::from_static(name))
}

fn array(of: Type, elements: impl Into<Vec<Value>>) -> Value {
    Value::Array(Array::new(of, elements.into()).expect("the elements are of one type"))
}

/// Joins the parts of one encoding.
macro_rules! bytes {
    ($($part:expr),* $(,)?) => { [$(AsRef::<[u8]>::as_ref(&$part)),*].concat() };
}

/// Each encoding of each type, and the value that it stands for.
fn encodings() -> Vec<(Vec<u8>, Value)> {
    let map = Map::new().with("k", Value::Null);
    vec![
        (bytes![[0x40]], Value::Null),
        (bytes![[0x41]], Value::Bool(true)),
        (bytes![[0x42]], Value::Bool(false)),
        (bytes![[0x56, 1]], Value::Bool(true)),
        (bytes![[0x56, 0]], Value::Bool(false)),
        (bytes![[0x50, 255]], Value::Ubyte(255)),
        (bytes![[0x60, 1, 2]], Value::Ushort(0x0102)),
        (bytes![[0x70, 1, 2, 3, 4]], Value::Uint(0x0102_0304)),
        (bytes![[0x52, 255]], Value::Uint(255)),
        (bytes![[0x43]], Value::Uint(0)),
        (bytes![[0x80, 1, 2, 3, 4, 5, 6, 7, 8]], Value::Ulong(0x0102_0304_0506_0708)),
        (bytes![[0x53, 255]], Value::Ulong(255)),
        (bytes![[0x44]], Value::Ulong(0)),
        (bytes![[0x51, 0x80]], Value::Byte(-128)),
        (bytes![[0x61, 0xff, 0xfe]], Value::Short(-2)),
        (bytes![[0x71, 0x80, 0, 0, 0]], Value::Int(i32::MIN)),
        (bytes![[0x54, 0xff]], Value::Int(-1)),
        (bytes![[0x81, 0x80, 0, 0, 0, 0, 0, 0, 0]], Value::Long(i64::MIN)),
        (bytes![[0x55, 0x80]], Value::Long(-128)),
        (bytes![[0x72, 0x3f, 0xc0, 0, 0]], Value::Float(1.5)),
        (bytes![[0x82, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0]], Value::Double(-1.5)),
        (bytes![[0x74, 1, 2, 3, 4]], Value::Decimal32([1, 2, 3, 4])),
        (bytes![[0x84, 1, 2, 3, 4, 5, 6, 7, 8]], Value::Decimal64([1, 2, 3, 4, 5, 6, 7, 8])),
        (bytes![[0x94], UUID], Value::Decimal128(UUID)),
        (bytes![[0x73, 0, 1, 0xf9, 0x9c]], Value::Char('\u{1f99c}')),
        (bytes![[0x83, 0, 0, 1, 0, 0, 0, 0, 0]], Value::Timestamp(1 << 40)),
        (bytes![[0x98], UUID], Value::Uuid(UUID)),
        (bytes![[0xa0, 2, 0, 255]], Value::Binary(vec![0, 255])),
        (bytes![[0xb0, 0, 0, 0, 2, 0, 255]], Value::Binary(vec![0, 255])),
        (bytes![[0xa0, 0]], Value::Binary(Vec::new())),
        (bytes![[0xa1, 3], "aü"], Value::from("aü")),
        (bytes![[0xb1, 0, 0, 0, 3], "aü"], Value::from("aü")),
        (bytes![[0xa1, 0]], Value::from("")),
        (bytes![[0xa3, 3], "sym"], symbol("sym")),
        (bytes![[0xb3, 0, 0, 0, 3], "sym"], symbol("sym")),
        (bytes![[0x45]], Value::List(vec![])),
        (bytes![[0xc0, 1, 0]], Value::List(vec![])),
        (bytes![[0xc0, 4, 2, 0x41, 0x52, 7]], Value::List(vec![true.into(), 7u32.into()])),
        (bytes![[0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x40]], Value::List(vec![Value::Null])),
        (bytes![[0xc1, 1, 0]], Value::Map(Map::new())),
        (bytes![[0xc1, 5, 2, 0xa3, 1], "k", [0x40]], Value::Map(map.clone())),
        (bytes![[0xd1, 0, 0, 0, 8, 0, 0, 0, 2, 0xa3, 1], "k", [0x40]], Value::Map(map.clone())),
        (bytes![[0xe0, 2, 0, 0xa3]], array(Type::Symbol, [])),
        (
            bytes![[0xe0, 6, 2, 0xa3, 1], "a", [1], "b"],
            array(Type::Symbol, [symbol("a"), symbol("b")]),
        ),
        (
            bytes![[0xf0, 0, 0, 0, 7, 0, 0, 0, 2, 0x50, 1, 2]],
            array(Type::Ubyte, [Value::Ubyte(1), Value::Ubyte(2)]),
        ),
        (
            bytes![[0x00, 0x53, 9, 0x41]],
            Value::from(Described { descriptor: 9u64.into(), value: true.into() }),
        ),
        (
            bytes![[0x00, 0xa3, 3], "a:b", [0xa1, 1], "c"],
            Value::from(Described { descriptor: symbol("a:b"), value: "c".into() }),
        ),
    ]
}

/// Every encoding that an array's elements can have: two elements, or three without width.
fn arrays() -> Vec<(Vec<u8>, Value)> {
    let one_item = Value::List(vec![Value::Null]);
    let map = Value::Map(Map::new().with("k", true));
    let inner = array(Type::Ubyte, [Value::Ubyte(5)]);
    let elements: Vec<(u8, Vec<u8>, Vec<Value>)> = vec![
        (0x40, vec![], vec![Value::Null; 3]),
        (0x41, vec![], vec![Value::Bool(true); 3]),
        (0x42, vec![], vec![Value::Bool(false); 3]),
        (0x43, vec![], vec![Value::Uint(0); 3]),
        (0x44, vec![], vec![Value::Ulong(0); 3]),
        (0x45, vec![], vec![Value::List(vec![]); 3]),
        (0x50, vec![1, 2], vec![Value::Ubyte(1), Value::Ubyte(2)]),
        (0x51, vec![1, 0xff], vec![Value::Byte(1), Value::Byte(-1)]),
        (0x52, vec![1, 2], vec![Value::Uint(1), Value::Uint(2)]),
        (0x53, vec![1, 2], vec![Value::Ulong(1), Value::Ulong(2)]),
        (0x54, vec![1, 0xff], vec![Value::Int(1), Value::Int(-1)]),
        (0x55, vec![1, 0xff], vec![Value::Long(1), Value::Long(-1)]),
        (0x56, vec![1, 0], vec![Value::Bool(true), Value::Bool(false)]),
        (0x60, vec![0, 1, 0, 2], vec![Value::Ushort(1), Value::Ushort(2)]),
        (0x61, vec![0, 1, 0, 2], vec![Value::Short(1), Value::Short(2)]),
        (0x70, vec![0, 0, 0, 1, 0, 0, 0, 2], vec![Value::Uint(1), Value::Uint(2)]),
        (0x71, vec![0, 0, 0, 1, 0, 0, 0, 2], vec![Value::Int(1), Value::Int(2)]),
        (0x72, bytes![1f32.to_be_bytes(), 2f32.to_be_bytes()], vec![1f32.into(), 2f32.into()]),
        (0x73, vec![0, 0, 0, 97, 0, 0, 0, 98], vec![Value::Char('a'), Value::Char('b')]),
        (0x74, vec![1; 8], vec![Value::Decimal32([1; 4]); 2]),
        (0x80, vec![1; 16], vec![Value::Ulong(u64::from_be_bytes([1; 8])); 2]),
        (0x81, vec![1; 16], vec![Value::Long(i64::from_be_bytes([1; 8])); 2]),
        (0x82, bytes![1f64.to_be_bytes(), 2f64.to_be_bytes()], vec![1f64.into(), 2f64.into()]),
        (0x83, vec![1; 16], vec![Value::Timestamp(i64::from_be_bytes([1; 8])); 2]),
        (0x84, vec![1; 16], vec![Value::Decimal64([1; 8]); 2]),
        (0x94, vec![1; 32], vec![Value::Decimal128([1; 16]); 2]),
        (0x98, vec![1; 32], vec![Value::Uuid([1; 16]); 2]),
        (0xa0, vec![1, 7, 0], vec![Value::Binary(vec![7]), Value::Binary(vec![])]),
        (0xb0, vec![0, 0, 0, 1, 7, 0, 0, 0, 0], vec![vec![7].into(), Vec::<u8>::new().into()]),
        (0xa1, vec![1, 97, 0], vec!["a".into(), "".into()]),
        (0xb1, vec![0, 0, 0, 1, 97, 0, 0, 0, 0], vec!["a".into(), "".into()]),
        (0xa3, vec![1, 97, 0], vec![symbol("a"), symbol("")]),
        (0xb3, vec![0, 0, 0, 1, 97, 0, 0, 0, 0], vec![symbol("a"), symbol("")]),
        (0xc0, vec![2, 1, 0x40, 1, 0], vec![one_item.clone(), Value::List(vec![])]),
        (
            0xd0,
            vec![0, 0, 0, 5, 0, 0, 0, 1, 0x40, 0, 0, 0, 4, 0, 0, 0, 0],
            vec![one_item, Value::List(vec![])],
        ),
        (0xc1, vec![5, 2, 0xa3, 1, b'k', 0x41, 1, 0], vec![map.clone(), Map::new().into()]),
        (
            0xd1,
            vec![0, 0, 0, 8, 0, 0, 0, 2, 0xa3, 1, b'k', 0x41, 0, 0, 0, 4, 0, 0, 0, 0],
            vec![map, Map::new().into()],
        ),
        (0xe0, vec![3, 1, 0x50, 5, 3, 1, 0x50, 5], vec![inner.clone(); 2]),
        (
            0xf0,
            [[0, 0, 0, 6, 0, 0, 0, 1, 0x50, 5], [0, 0, 0, 6, 0, 0, 0, 1, 0x50, 5]].concat(),
            vec![inner; 2],
        ),
    ];
    let mut arrays = Vec::new();
    for (code, data, values) in elements {
        let (count, of) = (values.len() as u8, values[0].type_of());
        let size = data.len() as u8 + 2;
        let value = array(of, values);
        arrays.push((bytes![[0xe0, size, count, code], data], value.clone()));
        arrays.push((bytes![[0xf0, 0, 0, 0, size + 3, 0, 0, 0, count, code], data], value));
    }
    arrays
}

#[test]
fn every_encoding_of_every_type_is_read() {
    for (bytes, value) in encodings().into_iter().chain(arrays()) {
        assert_eq!(Value::from_bytes(&bytes).as_ref(), Ok(&value), "{bytes:02x?}");
        assert!(mochila_wire::probe::value(&bytes));
    }
}

#[test]
fn a_value_is_written_in_its_smallest_encoding() {
    for (bytes, value) in encodings() {
        let written = value.to_bytes();
        assert!(written.len() <= bytes.len(), "{value:?} was written as {written:02x?}");
    }
    assert_eq!(Value::Int(128).to_bytes(), [0x71, 0, 0, 0, 128]);
    assert_eq!(Value::Long(-129).to_bytes()[0], 0x81);
    assert_eq!(Value::Uint(256).to_bytes(), [0x70, 0, 0, 1, 0]);
    assert_eq!(Value::Ulong(256).to_bytes()[0], 0x80);
    assert_eq!(Value::Binary(vec![0; 255]).to_bytes()[..2], [0xa0, 255]);
    assert_eq!(Value::Binary(vec![0; 256]).to_bytes()[..5], [0xb0, 0, 0, 1, 0]);
}

#[test]
fn what_is_written_is_read_back_as_it_was() {
    for (_, value) in encodings().into_iter().chain(arrays()) {
        assert_eq!(Value::from_bytes(&value.to_bytes()), Ok(value));
    }
}

#[test]
fn an_array_is_as_wide_as_its_widest_element() {
    let long = Value::from("x".repeat(256));
    let strings = array(Type::String, [Value::from("a"), long]);
    let lists = Value::List(vec![Value::Binary(vec![0; 300])]);
    let lists = array(Type::List, [Value::List(vec![]), Value::List(vec![Value::Null]), lists]);
    for array in [strings, lists] {
        let bytes = array.to_bytes();
        assert_eq!(bytes[0], 0xf0);
        assert_eq!(Value::from_bytes(&bytes), Ok(array));
    }
}

#[test]
fn the_elements_of_an_array_may_share_descriptors() {
    let bytes = [0xe0, 7, 2, 0x00, 0x53, 7, 0x00, 0x44, 0x42];
    let array = Value::from_bytes(&bytes).unwrap();
    let expected = Array {
        descriptors: vec![Value::Ulong(7), Value::Ulong(0)],
        of: Type::Bool,
        elements: vec![Value::Bool(false); 2],
    };
    assert_eq!(array, Value::Array(expected));
    assert_eq!(Value::from_bytes(&array.to_bytes()), Ok(array));
}

#[test]
fn a_value_cut_short_is_refused_wherever_it_is_cut() {
    for (bytes, _) in encodings().into_iter().chain(arrays()) {
        for end in 0..bytes.len() {
            assert!(Value::from_bytes(&bytes[..end]).is_err(), "{:02x?}", &bytes[..end]);
            let skipped = Decoder::new(&bytes[..end]).skip();
            assert!(skipped.unwrap_err().is_incomplete(), "{:02x?}", &bytes[..end]);
        }
    }
}

#[test]
fn bytes_that_are_no_value_of_their_type_are_refused() {
    let refused = |bytes: &[u8], error: DecodeError| {
        assert_eq!(Value::from_bytes(bytes), Err(error));
        assert!(!mochila_wire::probe::value(bytes));
    };
    refused(&[0x56, 2], DecodeError::InvalidBoolean(2));
    refused(&[0x73, 0, 0, 0xd8, 0], DecodeError::InvalidChar(0xd800));
    refused(&[0x73, 0, 0x11, 0, 0], DecodeError::InvalidChar(0x11_0000));
    refused(&[0xa1, 1, 0xff], DecodeError::InvalidUtf8);
    refused(&[0xa3, 1, 0x80], DecodeError::InvalidSymbol);
    refused(&[0xc1, 2, 1, 0x40], DecodeError::OddMap);
    refused(&[0xc0, 3, 1, 0x40, 0x40], DecodeError::SizeMismatch);
    refused(&[0xc0, 0], DecodeError::SizeMismatch);
    refused(&[0xd0, 0, 0, 0, 3, 0, 0, 0], DecodeError::SizeMismatch);
    refused(&[0xe0, 4, 1, 0x50, 1, 2], DecodeError::SizeMismatch);
    refused(&[0xe0, 1, 0], DecodeError::UnexpectedEnd);
    refused(&[0xe0, 3, 1, 0x57, 1], DecodeError::UnknownCode(0x57));
    for code in (1..=0xff).filter(|code| !is_known(*code)) {
        refused(&[code, 0, 0, 0, 0, 0, 0, 0, 0], DecodeError::UnknownCode(code));
    }
}

fn is_known(code: u8) -> bool {
    encodings().iter().any(|(bytes, _)| bytes[0] == code)
}

#[test]
fn all_format_codes_of_the_specification_are_covered() {
    assert_eq!((0..=0xff).filter(|code| is_known(*code)).count(), 40);
    let elements: std::collections::BTreeSet<u8> =
        arrays().iter().filter(|(bytes, _)| bytes[0] == 0xe0).map(|(bytes, _)| bytes[3]).collect();
    assert_eq!(elements.len(), 39);
}
