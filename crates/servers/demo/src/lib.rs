//! A small, honest tool server for first runs and tests.
