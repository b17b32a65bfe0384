//! AMQP 1.0 types, performatives, frames, section scanner and annotation writer.
