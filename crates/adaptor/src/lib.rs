//! Engine events to broker commands and back.
