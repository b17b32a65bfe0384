//! Configuration, workers and wiring of a Mochila node.
