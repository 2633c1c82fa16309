//! A small, honest tool server for first runs and tests.
//!
//! Its tools do what their descriptions say and nothing else: they reach no network, and no file
//! outside the folder that they were given.

mod arguments;
mod manifest;
mod notebook;
mod server;

pub use manifest::{MAX_CHUNKS, MAX_SLEEP_MS, MAX_TEXT, PAID_PRICE, SERVER_ID};
pub use notebook::{MAX_FILE, MAX_NOTES};
pub use server::{DemoOptions, DemoServer};
