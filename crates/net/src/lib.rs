//! What every network-facing crate needs once.
