//! Which messages of a queue a request is about.

use crate::error::Error;
use crate::request::Request;
use mochila_broker::{Pick, Selector};
use mochila_wire::{Map, Value};

/// The arguments that pick messages.
pub(super) const PICKING: [&str; 3] = ["count", "request", "filter"];

/// The messages that `count`, or `request`, and `filter` pick.
pub(super) fn picked(request: &Request) -> Result<Pick, Error> {
    let most = most(request)?;
    let text = match request.argument("filter")? {
        None => return Ok(Pick::from(most)),
        Some(Value::Map(filter)) => match header_match(filter)? {
            None => return Ok(Pick::from(most)),
            Some(text) => text,
        },
        Some(filter) => match filter.as_str() {
            Some(text) => text.to_owned(),
            None => return Err(Error::bad_request("'filter' has to be a selector, or a map")),
        },
    };
    let selector = Selector::new(&text).map_err(|error| Error::BadRequest(error.to_string()))?;
    Ok(Pick { most, selector, connection: None })
}

/// How many at most: `count`, or `request` as the Qpid broker calls it; 0 is no limit, as there.
fn most(request: &Request) -> Result<u64, Error> {
    let number = match (request.number("count")?, request.number("request")?) {
        (Some(_), Some(_)) => {
            let text = "'count' and 'request' are two names of one argument: say only one of them";
            return Err(Error::bad_request(text));
        }
        (count, requested) => count.or(requested),
    };
    Ok(number.filter(|count| *count > 0).unwrap_or(u64::MAX))
}

/// A filter of the Qpid broker, as a selector: an application property, shown as text, is a text.
fn header_match(filter: &Map) -> Result<Option<String>, Error> {
    if filter.is_empty() {
        return Ok(None);
    }
    let kind = filter.get("filter_type").and_then(Value::as_str).unwrap_or_default();
    if kind != "header_match_str" {
        let text = format!("'filter_type' has to be header_match_str, not '{kind}'");
        return Err(Error::BadRequest(text));
    }
    let parameters = filter.get("filter_params").and_then(Value::as_map);
    let text = |name| parameters.and_then(|map| map.get(name)).and_then(Value::as_str);
    let (Some(key), Some(value)) = (text("header_key"), text("header_value")) else {
        let text =
            "'filter_params' has to be a map with the strings 'header_key' and 'header_value'";
        return Err(Error::bad_request(text));
    };
    let name = format!("\"application_properties.{}\"", key.replace('"', "\"\""));
    let mut selector = format!("{name} = '{}'", value.replace('\'', "''"));
    // What is no text is compared as it is shown.
    if value.parse::<i64>().is_ok_and(|number| number.to_string() == value) {
        selector += &format!(" OR {name} = {value}");
    }
    if matches!(value, "True" | "False") {
        selector += &format!(" OR {name} = {value}");
    }
    Ok(Some(selector))
}
