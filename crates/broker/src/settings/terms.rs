//! What settings come to.

use super::{Arrangement, Defaults, Limits, QueueSettings, Screen, SettingsError};

/// What a queue with some settings does, made once and not for each message.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) arrangement: Arrangement,
    pub(crate) screen: Option<Screen>,
}

impl Terms {
    /// What settings come to, or why they make no sense.
    pub(crate) fn of(
        settings: &QueueSettings,
        defaults: &Defaults,
    ) -> Result<Terms, SettingsError> {
        Ok(Terms {
            limits: Limits::of(settings, defaults)?,
            arrangement: Arrangement::of(settings)?,
            screen: Screen::of(settings)?,
        })
    }
}
