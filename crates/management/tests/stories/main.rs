//! Management told as stories: requests as they come from the wire, to a real broker.

#![allow(clippy::unwrap_used, reason = "tests; the lint knows only functions marked so")]

mod bad_requests;
mod connections;
mod desk;
mod events;
mod exchanges;
mod moving;
mod queries;
mod queues;
mod standing;
mod updates;
