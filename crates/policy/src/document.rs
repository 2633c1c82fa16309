//! Policy documents: text, the tree that it stands for, and what is wrong with it, to the line.

mod key;
mod node;
mod problem;
mod section;

pub use key::Key;
pub use node::{Name, Node, NodeKind, Place};
pub use problem::{Problem, Problems};
pub use section::{Item, Section};
