//! Random but lawful objects, for property tests.
//!
//! Names come from small sets, so that grants, patterns and constraints meet often enough.

mod json;
mod manifest;
mod receipt;
mod scope;
mod token;

pub use json::{json, text};
pub use manifest::{manifest, sample_manifest};
pub use receipt::{child_receipt, receipt};
pub use scope::{narrower, scope, steps, tool_grant};
pub use token::token;
