//! Policy: a document becomes an ordered pipeline of guards, and every decision
//! explains itself.
//!
//! [`document`] parses documents and reports exactly what is wrong with them. [`facts`] derives what
//! a call does, from its tool and its arguments. [`guards`] has one file for each guard, [`rules`]
//! the rules in Cedar. [`own`] is what belongs to Chio itself.

pub mod capabilities;
pub mod cases;
pub mod document;
pub mod example;
pub mod facts;
pub mod guards;
pub mod judge;
pub mod own;
mod pattern;
pub mod policy;
pub mod rules;
mod search_pattern;
pub mod shadow;
mod size;
pub mod state;
mod tool_cache;
pub mod trial;

pub use policy::{Policy, Unproved};
