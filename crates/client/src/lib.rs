//! An async AMQP 1.0 client library on the Mochila engine.
