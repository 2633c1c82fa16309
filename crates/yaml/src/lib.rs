//! Documents in YAML, read strictly: text, the tree that it stands for, and what is wrong with it,
//! to the line.

mod key;
mod node;
mod parse;
mod problem;
mod section;
mod words;

pub use key::Key;
pub use node::{Name, Node, NodeKind, Place};
pub use parse::{MAX_BYTES, MAX_DEPTH, MAX_NODES, parse};
pub use problem::{Problem, Problems};
pub use section::{Item, Section, no_map};
pub use words::{hint, listed, nearest, shortened, shown};
