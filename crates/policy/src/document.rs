//! Policy documents: what extends what, as one document, and its hash.

mod builtin;
mod hash;
mod load;
pub(crate) mod patterns;
mod words;

pub use builtin::{RULESETS, Ruleset};
pub use hash::hash;
pub use load::{Document, MAX_EXTENDS, TOP_KEYS, load, of_node, of_text};
pub(crate) use words::words;
