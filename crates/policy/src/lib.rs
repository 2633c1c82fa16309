//! Policy: a document that people can write becomes an ordered line of guards, and every decision
//! explains itself.
//!
//! [`document`] reads what people write and says exactly what is wrong with it. [`facts`] tells what
//! a call does, from its tool and its arguments. [`guards`] has one file for each guard, [`rules`]
//! the rules in Cedar.

pub mod capabilities;
pub mod cases;
pub mod document;
pub mod example;
pub mod facts;
pub mod guards;
pub mod judge;
mod pattern;
pub mod policy;
pub mod rules;
pub mod shadow;
pub mod state;
pub mod trial;

pub use policy::{Policy, Unproved};
