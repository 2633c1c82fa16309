//! Policy documents: text, the tree that it stands for, and what is wrong with it, to the line.

mod builtin;
mod hash;
mod key;
mod load;
mod node;
mod problem;
mod section;
mod yaml;

pub use builtin::{RULESETS, Ruleset};
pub use hash::hash;
pub use key::Key;
pub use load::{Document, MAX_EXTENDS, TOP_KEYS, load, of_node, of_text};
pub use node::{Name, Node, NodeKind, Place};
pub use problem::{Problem, Problems};
pub(crate) use section::shortened;
pub use section::{Item, Section};
pub use yaml::{MAX_BYTES, MAX_DEPTH, MAX_NODES, parse};
