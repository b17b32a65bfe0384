//! The reference page of management, made from the tables.

use crate::attribute::{Access, Column};
use crate::kind::{KINDS, Kind};
use crate::query::NODE_OPERATIONS;
use std::fmt::Write as _;

/// The text of `docs/management.md`.
pub(crate) fn describe() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Operations of the node itself\n\n| operation | meaning |\n|---|---|\n");
    for operation in NODE_OPERATIONS {
        operation_row(&mut page, operation.name, operation.doc);
    }
    for kind in &KINDS {
        section(&mut page, kind);
    }
    page
}

fn section(page: &mut String, kind: &Kind) {
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## `{}`\n\n{}\n\n", kind.name, kind.doc);
    page.push_str("| operation | meaning |\n|---|---|\n");
    for operation in kind.operations {
        operation_row(page, operation.name, operation.doc);
    }
    page.push_str("\n| attribute | type | set by | meaning |\n|---|---|---|---|\n");
    for Column { name, of, doc, access } in kind.columns.iter() {
        let access = match access {
            Access::Read => "",
            Access::Create => "create",
            Access::Update if kind.operations.iter().any(|known| known.name == "CREATE") => {
                "create, update"
            }
            Access::Update => "update",
        };
        let _ = writeln!(page, "| `{name}` | {of} | {access} | {} |", cell(doc));
    }
}

fn operation_row(page: &mut String, name: &str, doc: &str) {
    let _ = writeln!(page, "| `{name}` | {} |", cell(doc));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = "\
# Management

A broker is managed over AMQP: requests go to the node `$management`, and each is answered at its
reply-to address. Requests and answers are those of AMQP Management 1.0 (working draft), so tools made
for other brokers and routers that speak it work too; `mochila config` and `mochila stat` use nothing
else.

A request has the application properties `operation`, `type` (or `entityType`) and, where it is about
one entity, `name` or `identity`; its body is a map in an amqp-value section. Types have a short name
as below and a long one, `org.mochila.queue`. The answer has the correlation id of the request, or its
message id where it has none, and the application properties `statusCode` and `statusDescription`:

| status | meaning |
|---|---|
| 200 | done |
| 201 | created |
| 204 | deleted |
| 400 | the request is wrong; the description says what |
| 404 | there is no such entity |
| 409 | it exists already, is in use, or is not empty |
| 501 | there is no such operation |
| 503 | the node has no memory for it, or for its answer |

A request may have 64 KiB; names may have 1024 bytes.

Queues and messages are in memory only in this version: when the node stops they are gone, durable ones
too, and `durable` says false.

Durations end in `Ms` and sizes in `Bytes`, except where the name is that of the Qpid broker.

This page is made from the tables in `crates/management`; a test compares the two.
";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_page_in_docs_is_what_the_tables_make() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/management.md");
        if std::env::var_os("MOCHILA_BLESS").is_some() {
            std::fs::write(&path, describe()).unwrap();
        }
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            page == describe(),
            "docs/management.md is out of date; `MOCHILA_BLESS=1 cargo test -p mochila-management \
             docs` writes it anew"
        );
    }

    #[test]
    fn every_attribute_has_a_name_of_its_own_and_a_sentence() {
        for kind in &KINDS {
            for (at, column) in kind.columns.iter().enumerate() {
                assert_eq!(kind.column(column.name), Some(at), "{} {}", kind.name, column.name);
                assert!(column.doc.ends_with('.'), "{} {}", kind.name, column.name);
            }
        }
    }
}
