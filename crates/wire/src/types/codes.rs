//! Format codes (part 1, 1.6) and what they say about the size of a value.

pub(crate) const DESCRIBED: u8 = 0x00;
pub(crate) const NULL: u8 = 0x40;
pub(crate) const TRUE: u8 = 0x41;
pub(crate) const FALSE: u8 = 0x42;
pub(crate) const UINT0: u8 = 0x43;
pub(crate) const ULONG0: u8 = 0x44;
pub(crate) const LIST0: u8 = 0x45;
pub(crate) const UBYTE: u8 = 0x50;
pub(crate) const BYTE: u8 = 0x51;
pub(crate) const SMALL_UINT: u8 = 0x52;
pub(crate) const SMALL_ULONG: u8 = 0x53;
pub(crate) const SMALL_INT: u8 = 0x54;
pub(crate) const SMALL_LONG: u8 = 0x55;
pub(crate) const BOOLEAN: u8 = 0x56;
pub(crate) const USHORT: u8 = 0x60;
pub(crate) const SHORT: u8 = 0x61;
pub(crate) const UINT: u8 = 0x70;
pub(crate) const INT: u8 = 0x71;
pub(crate) const FLOAT: u8 = 0x72;
pub(crate) const CHAR: u8 = 0x73;
pub(crate) const DECIMAL32: u8 = 0x74;
pub(crate) const ULONG: u8 = 0x80;
pub(crate) const LONG: u8 = 0x81;
pub(crate) const DOUBLE: u8 = 0x82;
pub(crate) const TIMESTAMP: u8 = 0x83;
pub(crate) const DECIMAL64: u8 = 0x84;
pub(crate) const DECIMAL128: u8 = 0x94;
pub(crate) const UUID: u8 = 0x98;
pub(crate) const BINARY8: u8 = 0xa0;
pub(crate) const STRING8: u8 = 0xa1;
pub(crate) const SYMBOL8: u8 = 0xa3;
pub(crate) const BINARY32: u8 = 0xb0;
pub(crate) const STRING32: u8 = 0xb1;
pub(crate) const SYMBOL32: u8 = 0xb3;
pub(crate) const LIST8: u8 = 0xc0;
pub(crate) const MAP8: u8 = 0xc1;
pub(crate) const LIST32: u8 = 0xd0;
pub(crate) const MAP32: u8 = 0xd1;
pub(crate) const ARRAY8: u8 = 0xe0;
pub(crate) const ARRAY32: u8 = 0xf0;

/// How a format code says where its value ends (part 1, 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// So many bytes follow.
    Fixed(u8),
    /// One byte tells how many follow.
    Size8,
    /// Four bytes tell how many follow.
    Size32,
    /// The code is not one of AMQP 1.0.
    Unknown,
}

impl Width {
    /// The width that belongs to a format code.
    #[inline]
    pub(crate) const fn of(code: u8) -> Width {
        WIDTHS[code as usize]
    }

    /// The fewest bytes that an array element with this format code takes (part 1, 1.6.24).
    pub(crate) const fn least_element(code: u8) -> u32 {
        match code {
            LIST8 | MAP8 => 2,
            LIST32 | MAP32 => 8,
            ARRAY8 => 3,
            ARRAY32 => 9,
            _ => match Width::of(code) {
                Width::Fixed(width) => width as u32,
                Width::Size8 => 1,
                Width::Size32 | Width::Unknown => 4,
            },
        }
    }
}

const WIDTHS: [Width; 256] = {
    let mut widths = [Width::Unknown; 256];
    let mut i = 0;
    while i < KNOWN.len() {
        let code = KNOWN[i];
        widths[code as usize] = match code >> 4 {
            0x4 => Width::Fixed(0),
            0x5 => Width::Fixed(1),
            0x6 => Width::Fixed(2),
            0x7 => Width::Fixed(4),
            0x8 => Width::Fixed(8),
            0x9 => Width::Fixed(16),
            0xa | 0xc | 0xe => Width::Size8,
            _ => Width::Size32,
        };
        i += 1;
    }
    widths
};

/// Every format code of AMQP 1.0 except the one that begins a described value.
pub(crate) const KNOWN: [u8; 39] = [
    NULL,
    TRUE,
    FALSE,
    UINT0,
    ULONG0,
    LIST0,
    UBYTE,
    BYTE,
    SMALL_UINT,
    SMALL_ULONG,
    SMALL_INT,
    SMALL_LONG,
    BOOLEAN,
    USHORT,
    SHORT,
    UINT,
    INT,
    FLOAT,
    CHAR,
    DECIMAL32,
    ULONG,
    LONG,
    DOUBLE,
    TIMESTAMP,
    DECIMAL64,
    DECIMAL128,
    UUID,
    BINARY8,
    STRING8,
    SYMBOL8,
    BINARY32,
    STRING32,
    SYMBOL32,
    LIST8,
    MAP8,
    LIST32,
    MAP32,
    ARRAY8,
    ARRAY32,
];
