/// What one decoder accepts before it refuses; every limit has an error of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep lists, maps, arrays and descriptors may nest.
    pub max_depth: u32,
    /// How many elements all lists, maps and arrays of one frame or message may have together.
    pub max_elements: u32,
    /// How many elements of arrays may take no bytes at all (null, true, false, zero, empty
    /// list), per frame or message: a few bytes on the wire can claim billions of them.
    pub max_zero_width: u32,
    /// How many sections a message may have.
    pub max_sections: u32,
    /// How many bytes a message may have.
    pub max_size: u32,
}

impl Limits {
    /// The limits that hold unless somebody says otherwise.
    pub const DEFAULT: Limits = Limits {
        max_depth: 32,
        max_elements: 1 << 18,
        max_zero_width: 1 << 10,
        max_sections: 10_000,
        max_size: 1 << 30,
    };

    /// The limits before a peer has authenticated itself.
    pub const HANDSHAKE: Limits = Limits {
        max_depth: 8,
        max_elements: 1 << 10,
        max_zero_width: 0,
        max_sections: 0,
        max_size: 8 << 10,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
