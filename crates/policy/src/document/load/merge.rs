//! One document over another.
//!
//! As HushSpec has it (core, "Merge Semantics"): lists are never joined, and a section of `rules`
//! that the child has replaces the base's section as a whole, under `merge` and `deep_merge` alike.
//! The two differ for `extensions`, where `deep_merge` goes member by member; we read `chio`, of
//! which HushSpec knows nothing, in the same way. A member without a value says nothing, so what
//! the base has there stays.

use std::collections::HashSet;

use chio_yaml::{Name, Node, NodeKind, Place, Problem};

/// What becomes of the document that one extends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Nothing.
    Replace,
    /// Its sections stay where the child has none.
    Merge,
    /// The same, and `extensions` and `chio` go member by member.
    #[default]
    DeepMerge,
}

impl Strategy {
    pub(super) const WORDS: &[(&'static str, Self)] =
        &[("deep_merge", Self::DeepMerge), ("merge", Self::Merge), ("replace", Self::Replace)];
}

/// The child over its base.
pub(super) fn merge(base: Node, child: Node, strategy: Strategy, notes: &mut Vec<Problem>) -> Node {
    if strategy == Strategy::Replace {
        // What was surprising about the base is no longer there.
        notes.clear();
        return child;
    }
    let deep = strategy == Strategy::DeepMerge;
    join(base, child, |name, base, child| match &*name.text {
        "rules" => sections("rules", base, child, notes),
        path @ ("extensions" | "chio") if deep => members(path, base, child, notes),
        path @ ("extensions" | "chio") => sections(path, base, child, notes),
        _ => child,
    })
}

/// The members of both maps; `both` decides about those that both have. Whatever is no map is the
/// child's.
fn join(base: Node, child: Node, mut both: impl FnMut(&Name, Node, Node) -> Node) -> Node {
    let Node { place, kind } = child;
    let (mut joined, added) = match (base.kind, kind) {
        (NodeKind::Map(base), NodeKind::Map(child)) => (base, child),
        (_, kind) => return Node { place, kind },
    };
    for (name, node) in added {
        let same = joined.iter().position(|(existing, _)| existing.text == name.text);
        match same {
            None => joined.push((name, node)),
            Some(_) if node.kind == NodeKind::Null => {}
            Some(at) => {
                let (_, base) = joined.swap_remove(at);
                let node = both(&name, base, node);
                joined.push((name, node));
            }
        }
    }
    Node { place, kind: NodeKind::Map(joined) }
}

/// Section by section: the child's replaces the base's.
fn sections(path: &str, base: Node, child: Node, notes: &mut Vec<Problem>) -> Node {
    join(base, child, |name, base, child| {
        note_taken(&format!("{path}.{}", name.text), &base, Some(&child), &child.place, notes);
        child
    })
}

/// Member by member, all the way down.
fn members(path: &str, base: Node, child: Node, notes: &mut Vec<Problem>) -> Node {
    if !matches!((&base.kind, &child.kind), (NodeKind::Map(_), NodeKind::Map(_))) {
        note_taken(path, &base, Some(&child), &child.place, notes);
        return child;
    }
    if child.is_off() && !base.is_off() {
        note_off(path, &base, &child.place, notes);
    }
    join(base, child, |name, base, child| {
        members(&format!("{path}.{}", name.text), base, child, notes)
    })
}

/// Notes what the child removes: sections that it switches off, and items of lists.
fn note_taken(path: &str, base: &Node, child: Option<&Node>, at: &Place, notes: &mut Vec<Problem>) {
    if child.is_some_and(Node::is_off) {
        if !base.is_off() {
            note_off(path, base, at, notes);
        }
        return;
    }
    match &base.kind {
        NodeKind::List(items) => note_items(path, base, items, child, at, notes),
        NodeKind::Map(members) => {
            for (name, base) in members {
                let child = child.and_then(|child| child.get(&name.text));
                let at = child.map_or(at, |child| &child.place);
                note_taken(&format!("{path}.{}", name.text), base, child, at, notes);
            }
        }
        _ => {}
    }
}

fn note_items(
    path: &str,
    base: &Node,
    items: &[Node],
    child: Option<&Node>,
    at: &Place,
    notes: &mut Vec<Problem>,
) {
    let text = |item: &Node| item.to_value().to_string();
    let kept: HashSet<String> = match child.map(|child| &child.kind) {
        Some(NodeKind::List(items)) => items.iter().map(text).collect(),
        _ => HashSet::new(),
    };
    let gone = items.iter().filter(|item| !kept.contains(&text(item))).count();
    if gone == 0 {
        return;
    }
    let (all, from) = (items.len(), &base.place);
    let message = if child.is_some() {
        let are = if gone == 1 { "is" } else { "are" };
        format!(
            "`{path}`: lists are not joined; {gone} of the {all} items of {from} {are} not here"
        )
    } else {
        let items = if all == 1 { "item" } else { "items" };
        format!(
            "`{path}` is left out here, where {from} has {all} {items}; a section of `rules` is \
             replaced as a whole"
        )
    };
    notes.push(Problem { place: at.clone(), message });
}

fn note_off(path: &str, base: &Node, at: &Place, notes: &mut Vec<Problem>) {
    let message = format!("`{path}` is switched off here; {} has it in force", base.place);
    notes.push(Problem { place: at.clone(), message });
}
