use super::{DecodeError, Decoder};
use crate::types::{Width, codes};

impl Decoder<'_> {
    /// Passes over the next value, whatever it is, by its size: what is inside is not looked at.
    #[inline]
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        let code = self.take_u8()?;
        if code == codes::DESCRIBED { self.skip_described() } else { self.skip_data(code) }
    }

    /// Passes over the data that follow a format code.
    #[inline]
    pub(crate) fn skip_data(&mut self, code: u8) -> Result<(), DecodeError> {
        match Width::of(code) {
            Width::Fixed(width) => self.take(usize::from(width)).map(drop),
            Width::Size8 => self.take_sized8().map(drop),
            Width::Size32 => self.take_sized32().map(drop),
            Width::Unknown => Err(DecodeError::UnknownCode(code)),
        }
    }

    /// Passes over a descriptor and its value. Both may be described again, so this keeps one bit
    /// for each level instead of calling itself: bytes never decide how deep our stack grows.
    fn skip_described(&mut self) -> Result<(), DecodeError> {
        let most = self.depth_left().min(u64::BITS);
        let (mut level, mut has_value_to_come) = (0, 0u64);
        let mut code = codes::DESCRIBED;
        loop {
            if code == codes::DESCRIBED {
                if level == most {
                    return Err(DecodeError::TooDeep);
                }
                level += 1;
                has_value_to_come = has_value_to_come << 1 | 1;
            } else {
                self.skip_data(code)?;
                // The levels of which this was the value are done.
                let done = has_value_to_come.trailing_zeros().min(level);
                level -= done;
                if level == 0 {
                    return Ok(());
                }
                has_value_to_come = has_value_to_come >> done & !1;
            }
            code = self.take_u8()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_passed_over_whatever_its_width() {
        let values: [&[u8]; 8] = [
            &[codes::NULL],
            &[codes::SMALL_UINT, 7],
            &[codes::ULONG, 1, 2, 3, 4, 5, 6, 7, 8],
            &[codes::STRING8, 2, b'a', b'b'],
            &[codes::BINARY32, 0, 0, 0, 1, 9],
            &[codes::LIST8, 2, 1, codes::NULL],
            &[codes::ARRAY8, 3, 1, codes::UBYTE, 5],
            &[codes::DESCRIBED, codes::SMALL_ULONG, 1, codes::DESCRIBED, codes::ULONG0, 0x40],
        ];
        for value in values {
            let bytes = [value, &[0xee][..]].concat();
            let mut decoder = Decoder::new(&bytes);
            decoder.skip().unwrap();
            assert_eq!(decoder.rest(), [0xee], "{value:02x?}");
        }
    }

    #[test]
    fn many_described_values_beside_each_other_are_not_deep() {
        // Both the descriptor and the value are described, and so on, six levels down.
        let mut bushy = vec![codes::NULL];
        for _ in 0..6 {
            bushy = [&[codes::DESCRIBED][..], &bushy, &bushy].concat();
        }
        let mut decoder = Decoder::new(&bushy);
        assert_eq!(decoder.skip(), Ok(()));
        assert!(decoder.is_empty());
        assert!(Decoder::new(&bushy).value().is_ok(), "decoding it agrees");
    }

    #[test]
    fn skipping_goes_as_deep_as_decoding() {
        for levels in [31, 32, 33] {
            let mut bytes = [codes::DESCRIBED, codes::ULONG0].repeat(levels);
            bytes.push(codes::NULL);
            let decoded = Decoder::new(&bytes).value().map(drop);
            assert_eq!(Decoder::new(&bytes).skip(), decoded, "{levels} levels");
        }
    }

    #[test]
    fn descriptors_of_descriptors_are_cut_off_at_the_depth_limit() {
        assert_eq!(Decoder::new(&[codes::DESCRIBED; 1000]).skip(), Err(DecodeError::TooDeep));
    }

    #[test]
    fn an_unknown_format_code_is_named() {
        assert_eq!(Decoder::new(&[0x57, 1]).skip(), Err(DecodeError::UnknownCode(0x57)));
        assert_eq!(Decoder::new(&[0x01]).skip(), Err(DecodeError::UnknownCode(0x01)));
    }
}
