//! Names of groups.

/// The name of a group; a short one takes no memory of its own.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl Name {
    pub(crate) fn new(name: &[u8]) -> Name {
        if name.len() > SHORT {
            return Name::Long(name.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..name.len()].copy_from_slice(name);
        Name::Short { len: name.len() as u8, bytes }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Name::Short { len, bytes } => &bytes[..usize::from(*len)],
            Name::Long(bytes) => bytes,
        }
    }

    /// Bytes of memory beyond its own.
    pub(crate) fn heap_bytes(&self) -> u64 {
        match self {
            Name::Short { .. } => 0,
            Name::Long(bytes) => bytes.len() as u64,
        }
    }
}

const SHORT: usize = 22;

const _: () = assert!(size_of::<Name>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_it_was() {
        for len in [0, 1, SHORT, SHORT + 1, 300] {
            let name = vec![7; len];
            assert_eq!(Name::new(&name).as_bytes(), name);
        }
    }
}
