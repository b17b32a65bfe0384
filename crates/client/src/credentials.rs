//! Which SASL mechanism a client uses.

use mochila_engine::{Credentials, Secret};

use crate::options::Options;

/// The user and password, if there are any and the options allow PLAIN; else anonymous, or no SASL
/// at all where the options say `NONE`.
pub(crate) fn choose(
    options: &Options,
    user: Option<String>,
    password: Option<String>,
) -> Credentials {
    let allowed = |mechanism: &str| match &options.mechanisms {
        None => mechanism != "NONE",
        Some(list) => list.split([' ', ',']).any(|allowed| allowed.eq_ignore_ascii_case(mechanism)),
    };
    match user {
        Some(user) if allowed("PLAIN") => {
            let password = Secret::new(password.unwrap_or_default());
            Credentials::Plain { user, password }
        }
        _ if allowed("NONE") => Credentials::NoSasl,
        _ => Credentials::Anonymous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mechanisms(list: &str) -> Options {
        Options { mechanisms: Some(list.to_owned()), ..Options::default() }
    }

    #[test]
    fn a_user_means_plain_unless_the_options_say_otherwise() {
        let user = || Some("me".to_owned());
        let chosen = choose(&Options::default(), user(), Some("pw".into()));
        assert_eq!(chosen, Credentials::Plain { user: "me".into(), password: Secret::new("pw") });
        assert_eq!(choose(&mechanisms("ANONYMOUS"), user(), None), Credentials::Anonymous);
    }

    #[test]
    fn nobody_in_particular_is_anonymous_and_none_means_no_sasl() {
        assert_eq!(choose(&Options::default(), None, None), Credentials::Anonymous);
        assert_eq!(choose(&mechanisms("NONE"), None, None), Credentials::NoSasl);
    }
}
