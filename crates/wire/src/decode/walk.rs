use super::DecodeError;
use super::cursor::{Compound, Decoder};
use super::value::{ascii, type_of};
use crate::types::{Type, Width, codes};

type Result<T> = std::result::Result<T, DecodeError>;

/// Checks values inside out without building them: for those who forward what others decode.
impl<'a> Decoder<'a> {
    /// Passes over the next value and checks everything inside it, as decoding it would.
    pub fn walk(&mut self) -> Result<()> {
        let code = self.take_u8()?;
        self.walk_data(code)
    }

    fn walk_data(&mut self, code: u8) -> Result<()> {
        match code {
            codes::DESCRIBED => {
                let mut nested = self.nest(self.rest())?;
                nested.walk()?;
                nested.walk()?;
                self.resume(&nested);
                Ok(())
            }
            codes::BOOLEAN => match self.take_u8()? {
                0 | 1 => Ok(()),
                byte => Err(DecodeError::InvalidBoolean(byte)),
            },
            codes::CHAR => {
                let number = u32::from_be_bytes(self.take_array()?);
                char::from_u32(number).map(drop).ok_or(DecodeError::InvalidChar(number))
            }
            codes::STRING8 => self.take_sized8().and_then(check_text),
            codes::STRING32 => self.take_sized32().and_then(check_text),
            codes::SYMBOL8 => self.take_sized8().and_then(ascii).map(drop),
            codes::SYMBOL32 => self.take_sized32().and_then(ascii).map(drop),
            codes::LIST8 => self.compound8().and_then(|list| self.walk_items(list)),
            codes::LIST32 => self.compound32().and_then(|list| self.walk_items(list)),
            codes::MAP8 => self.compound8().and_then(|map| self.walk_pairs(map)),
            codes::MAP32 => self.compound32().and_then(|map| self.walk_pairs(map)),
            codes::ARRAY8 | codes::ARRAY32 => self.walk_array(code),
            code => self.skip_data(code),
        }
    }

    fn walk_items(&mut self, list: Compound<'a>) -> Result<()> {
        let mut fields = self.enter(list)?;
        while let Some(element) = fields.next_element() {
            element.walk()?;
        }
        fields.finish(self)
    }

    fn walk_pairs(&mut self, map: Compound<'a>) -> Result<()> {
        if !map.count.is_multiple_of(2) {
            return Err(DecodeError::OddMap);
        }
        self.walk_items(map)
    }

    fn walk_array(&mut self, code: u8) -> Result<()> {
        let (count, mut nested, element) = self.enter_array(code, |nested| nested.walk())?;
        // Elements of fixed width have nothing inside that could be wrong, but two.
        let plain = matches!(Width::of(element), Width::Fixed(_))
            && !matches!(type_of(element), Some(Type::Bool | Type::Char));
        if plain {
            let width = Width::least_element(element) as usize;
            nested.take(count as usize * width)?;
        } else {
            for _ in 0..count {
                nested.walk_data(element)?;
            }
        }
        self.adopt(&nested)
    }
}

fn check_text(bytes: &[u8]) -> Result<()> {
    std::str::from_utf8(bytes).map(drop).map_err(|_| DecodeError::InvalidUtf8)
}
