//! AMQP 1.0 connections, sessions, links and SASL as pure state machines: bytes in, events out, bytes out.
