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

    /// Passes over a descriptor and its value. Both may be described again, so this counts what
    /// is outstanding instead of calling itself: bytes never decide how deep our stack grows.
    fn skip_described(&mut self) -> Result<(), DecodeError> {
        let mut outstanding = 2;
        let mut depth_left = self.depth_left();
        while outstanding > 0 {
            let code = self.take_u8()?;
            if code == codes::DESCRIBED {
                depth_left = depth_left.checked_sub(1).ok_or(DecodeError::TooDeep)?;
                outstanding += 1;
            } else {
                self.skip_data(code)?;
                outstanding -= 1;
            }
        }
        Ok(())
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
    fn descriptors_of_descriptors_are_cut_off_at_the_depth_limit() {
        assert_eq!(Decoder::new(&[codes::DESCRIBED; 1000]).skip(), Err(DecodeError::TooDeep));
    }

    #[test]
    fn an_unknown_format_code_is_named() {
        assert_eq!(Decoder::new(&[0x57, 1]).skip(), Err(DecodeError::UnknownCode(0x57)));
        assert_eq!(Decoder::new(&[0x01]).skip(), Err(DecodeError::UnknownCode(0x01)));
    }
}
