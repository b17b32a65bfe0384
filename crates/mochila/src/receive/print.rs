//! What `receive` prints of a message.

use std::fs::File;
use std::io::{BufWriter, Write};

use mochila_client::LostGroups;
use mochila_wire::message::{Body, Header, Message};
use mochila_wire::{Sections, Value};

use super::options::Options;
use crate::failure::{Failure, Outcome};
use crate::text::{one_line, type_name, value_text};

/// Prints headers and content as the options say.
#[derive(Debug)]
pub(super) struct Printer {
    headers: bool,
    content: bool,
    types: bool,
    saved: Option<BufWriter<File>>,
}

impl Printer {
    pub(super) fn new(options: &Options) -> Outcome<Self> {
        let saved = match &options.save_content {
            Some(path) => Some(BufWriter::new(File::create(path)?)),
            None => None,
        };
        Ok(Self {
            headers: options.print_headers,
            content: options.print_content,
            types: options.print_object_type,
            saved,
        })
    }

    #[inline]
    pub(super) fn print(
        &mut self,
        _sections: &Sections,
        bytes: &[u8],
        out: &mut impl Write,
    ) -> Outcome {
        if self.headers || self.content || self.saved.is_some() {
            self.print_message(bytes, out)?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Outcome {
        if let Some(saved) = &mut self.saved {
            saved.flush()?;
        }
        Ok(())
    }

    fn print_message(&mut self, bytes: &[u8], out: &mut impl Write) -> Outcome {
        let message =
            Message::decode(bytes).map_err(|error| Failure::new("MessageError", error))?;
        if self.headers {
            print_headers(&message, out)?;
        }
        if self.content {
            print_body(&message.body, self.types, out)?;
        }
        if let Some(saved) = &mut self.saved {
            print_body(&message.body, false, saved)?;
        }
        Ok(())
    }
}

/// Says which message groups have gone to other receivers.
pub(super) fn lost_groups(lost: &LostGroups, out: &mut impl Write) -> std::io::Result<()> {
    match lost.names() {
        Some(names) => writeln!(out, "Lost groups: {}", one_line(&names.join(", "))),
        None => writeln!(out, "Lost groups, which are not named"),
    }
}

fn print_headers(message: &Message, out: &mut impl Write) -> std::io::Result<()> {
    let properties = message.properties.clone().unwrap_or_default();
    let header = message.header.unwrap_or_default();
    if let Some(subject) = &properties.subject {
        writeln!(out, "Subject: {subject}")?;
    }
    if let Some(reply_to) = &properties.reply_to {
        writeln!(out, "ReplyTo: {reply_to}")?;
    }
    if let Some(id) = &properties.message_id {
        writeln!(out, "MessageId: {}", value_text(&id.clone().into()))?;
    }
    if let Some(id) = &properties.correlation_id {
        writeln!(out, "CorrelationId: {}", value_text(&id.clone().into()))?;
    }
    if let Some(user_id) = &properties.user_id {
        writeln!(out, "UserId: {}", String::from_utf8_lossy(user_id))?;
    }
    if let Some(ttl) = header.ttl {
        writeln!(out, "TTL: {ttl}")?;
    }
    if header.priority != Header::DEFAULT_PRIORITY {
        writeln!(out, "Priority: {}", header.priority)?;
    }
    if header.durable {
        writeln!(out, "Durable: true")?;
    }
    if header.delivery_count > 0 {
        writeln!(out, "Redelivered: true")?;
    }
    writeln!(out, "Properties: {}", all_properties(message))?;
    if let Some(content_type) = &properties.content_type {
        writeln!(out, "ContentType: {}", content_type.as_str())?;
    }
    writeln!(out)
}

/// Application properties and message annotations together, in the order of their names.
fn all_properties(message: &Message) -> String {
    let maps = [&message.application_properties, &message.message_annotations];
    let mut pairs: Vec<(String, String)> = maps
        .into_iter()
        .flatten()
        .flat_map(|map| map.iter())
        .map(|(key, value)| (value_text(key), value_text(value)))
        .collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn print_body(body: &Body, types: bool, out: &mut impl Write) -> std::io::Result<()> {
    let value = match body {
        Body::Empty => return writeln!(out),
        Body::Data(sections) => {
            for section in sections {
                out.write_all(section)?;
            }
            return writeln!(out);
        }
        Body::Value(value) => value.clone(),
        Body::Sequence(lists) => Value::List(lists.concat()),
    };
    if types {
        writeln!(out, "[Object: {}]", type_name(&value))?;
    }
    writeln!(out, "{}", value_text(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(message: &Message) -> String {
        let mut out = Vec::new();
        print_headers(message, &mut out).unwrap();
        print_body(&message.body, true, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn headers_that_say_something_come_first_and_properties_in_order() {
        let mut message = Message::of_value("hello");
        message.properties_mut().subject = Some("news".into());
        message.properties_mut().message_id = Some(7_u64.into());
        message.header_mut().priority = 9;
        message.header_mut().delivery_count = 1;
        message.set_application_property("b", 2_u32);
        message.set_application_property("a", true);
        message.set_message_annotation("x-seq", 5_u32);
        assert_eq!(
            printed(&message),
            "Subject: news\nMessageId: 7\nPriority: 9\nRedelivered: true\n\
             Properties: {a:True, b:2, x-seq:5}\n\n[Object: string]\nhello\n"
        );
    }

    #[test]
    fn bytes_are_printed_as_they_are_and_an_empty_body_is_an_empty_line() {
        assert_eq!(printed(&Message::of_data("raw")), "Properties: {}\n\nraw\n");
        assert_eq!(printed(&Message::default()), "Properties: {}\n\n\n");
    }

    #[test]
    fn a_map_is_printed_between_braces() {
        let mut map = mochila_wire::Map::new();
        map.insert("a", 1_i64);
        map.insert("b", Value::List(vec![Value::from("x"), Value::Null]));
        let text = printed(&Message::of_value(map));
        assert!(text.ends_with("[Object: map]\n{a:1, b:[x, <void>]}\n"), "{text}");
    }
}
