//! What receivers select.

use mochila_engine::pair::Random;

/// The colour of a message, which it need not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Blue,
}

/// Selectors, and what they mean: known here without the broker's own understanding of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selector {
    pub(crate) text: &'static str,
    wants: fn(Option<Colour>) -> bool,
}

impl Colour {
    /// Any, or none.
    pub(crate) fn any(random: &mut Random) -> Option<Colour> {
        *random.pick(&[None, Some(Colour::Red), Some(Colour::Green), Some(Colour::Blue)])
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Colour::Red => "red",
            Colour::Green => "green",
            Colour::Blue => "blue",
        }
    }
}

impl Selector {
    pub(crate) fn any(random: &mut Random) -> Selector {
        *random.pick(&ALL)
    }

    pub(crate) fn wants(&self, colour: Option<Colour>) -> bool {
        (self.wants)(colour)
    }
}

const ALL: [Selector; 7] = [
    Selector { text: "colour = 'red'", wants: |colour| colour == Some(Colour::Red) },
    Selector { text: "colour = 'blue'", wants: |colour| colour == Some(Colour::Blue) },
    Selector {
        text: "colour IN ('red', 'blue')",
        wants: |colour| matches!(colour, Some(Colour::Red | Colour::Blue)),
    },
    // What has no colour is not known to have another one.
    Selector {
        text: "colour <> 'green'",
        wants: |colour| matches!(colour, Some(Colour::Red | Colour::Blue)),
    },
    Selector { text: "colour IS NULL", wants: |colour| colour.is_none() },
    Selector { text: "colour IS NULL OR colour LIKE '%'", wants: |_| true },
    Selector { text: "colour = 'black'", wants: |_| false },
];
