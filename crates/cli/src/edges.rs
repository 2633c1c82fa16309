//! The edges of this program. Adding a protocol is adding a line here.

use chio_edge::EdgeKind;

/// Every edge, in the order in which they are announced.
pub(crate) const EDGES: &[&EdgeKind] = &[
    &chio_native_edge::EDGE,
    &chio_mcp_edge::EDGE,
    &chio_a2a_edge::EDGE,
    #[cfg(test)]
    &chio_testkit::edge::EDGE,
];
