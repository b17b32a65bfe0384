//! What messages contain: one fixed body, or the lines of standard input.

use std::io::BufRead;
use std::num::IntErrorKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use mio::Waker;
use mochila_wire::message::Body;
use mochila_wire::{Encode, Map, Value};

use super::options::Options;
use super::template::name_and_value;
use crate::failure::Outcome;

/// Where bodies come from.
#[derive(Debug)]
pub(super) struct Content {
    fixed: Vec<u8>,
    eos: Vec<u8>,
    lines: Option<Receiver<std::io::Result<String>>>,
    ended: bool,
}

/// The next body.
#[derive(Debug)]
pub(super) enum Next {
    /// The one that all messages have.
    Fixed,
    /// A line, encoded as a body.
    Line(Box<[u8]>),
    /// The next line has not been typed yet; the waker will tell.
    Wait,
    /// There are no more.
    End,
}

impl Content {
    /// `waker` is woken when there is another line.
    pub(super) fn new(options: &Options, waker: Arc<Waker>) -> Outcome<Self> {
        let value = if !options.content_map.is_empty() {
            Value::Map(entries(&options.content_map))
        } else if options.content_size > 0 {
            Value::String("X".repeat(options.content_size))
        } else {
            Value::String(options.content_string.clone().unwrap_or_default())
        };
        let lines = if options.content_stdin { Some(read_lines(waker)?) } else { None };
        Ok(Self { fixed: body(value), eos: body(Value::from(EOS)), lines, ended: false })
    }

    pub(super) fn next(&mut self) -> Outcome<Next> {
        let Some(lines) = &self.lines else { return Ok(Next::Fixed) };
        match lines.try_recv() {
            Ok(line) => Ok(Next::Line(body(Value::String(line?)).into_boxed_slice())),
            Err(TryRecvError::Empty) => Ok(Next::Wait),
            Err(TryRecvError::Disconnected) => Ok(Next::End),
        }
    }

    /// There will be no more lines.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The body that all messages have.
    pub(super) fn fixed(&self) -> &[u8] {
        &self.fixed
    }

    /// The body that marks the end.
    pub(super) fn eos(&self) -> &[u8] {
        &self.eos
    }
}

/// The content that marks the end of a stream of messages.
pub(crate) const EOS: &str = "eos";

/// Reads the size of a content; used as clap's `value_parser`.
///
/// The length of a string has 32 bits (part 1, 1.6.20).
pub(crate) fn content_size(text: &str) -> Result<usize, String> {
    match text.parse::<u32>() {
        Ok(bytes) => Ok(bytes as usize),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("the content of one message has at most {} bytes", u32::MAX))
        }
        Err(_) => Err("that is not a number of bytes".to_owned()),
    }
}

fn body(value: Value) -> Vec<u8> {
    Body::Value(value).to_bytes()
}

fn entries(texts: &[String]) -> Map {
    let mut map = Map::new();
    for text in texts {
        let (name, value) = name_and_value(text);
        map.insert(name, value.map_or(Value::Null, Value::from));
    }
    map
}

/// Reads lines on a thread of their own: a connection has to be looked after while nobody types.
fn read_lines(waker: Arc<Waker>) -> Outcome<Receiver<std::io::Result<String>>> {
    let (lines, receiver) = sync_channel(LINES_AHEAD);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        forward_lines(&lines, &waker);
        drop(lines);
        // The end is news too. A waker that fails has nobody to wake.
        let _ = waker.wake();
    })?;
    Ok(receiver)
}

fn forward_lines(lines: &SyncSender<std::io::Result<String>>, waker: &Waker) {
    for line in std::io::stdin().lock().lines() {
        if lines.send(line).is_err() || waker.wake().is_err() {
            return;
        }
    }
}

const LINES_AHEAD: usize = 1024;
