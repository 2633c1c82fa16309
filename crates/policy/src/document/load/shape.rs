//! What a document may have at its top, and which sections there are.

use chio_yaml::{Key, Name, Node, NodeKind, Place, Problems, Section};
use chio_yaml::{hint, no_map, shown};

use super::merge::Strategy;
use crate::guards::KINDS;

/// The version of HushSpec that is read.
const VERSION: &str = "0.1.0";

/// What a document may have.
pub const TOP_KEYS: &[Key] = &[
    Key::new("hushspec", "\"0.1.0\"", "required", "the version of the format"),
    Key::new("name", "text", "none", "what people call the policy"),
    Key::new("description", "text", "none", "what it is for"),
    Key::new("extends", "a file or a built-in ruleset", "none", "the document that it builds upon"),
    Key::new(
        "merge_strategy",
        "`deep_merge`, `merge` or `replace`",
        "deep_merge",
        "what becomes of the document that it extends",
    ),
    Key::new("rules", "a map", "{}", "the rules of HushSpec"),
    Key::new("extensions", "a map", "{}", "the extensions of HushSpec"),
    Key::new("chio", "a map", "{}", "what HushSpec has no words for"),
];

/// Sections that are read elsewhere than by a guard.
const ELSEWHERE: &[&str] = &["chio.capabilities"];

/// Sections of HushSpec that this kernel knows and does not enforce. To pass over one in silence
/// would be to serve without a rule that the operator relies on.
const NOT_ENFORCED: &[&str] = &[
    "rules.computer_use",
    "rules.input_injection",
    "rules.remote_desktop_channels",
    "extensions.chio",
    "extensions.origins",
    "extensions.posture",
    "extensions.reputation",
    "extensions.runtime_assurance",
    "extensions.detection.jailbreak",
    "extensions.detection.threat_intel",
];

/// Names of another dialect, and where the same is written here.
const OTHER_DIALECT: &[(&str, &str)] = &[
    ("guards", "write guards under `rules`, with the names of HushSpec"),
    ("capabilities", "write it as `chio.capabilities`"),
    ("kernel", "the kernel is configured where it is started"),
];

/// What a document says about itself.
pub(super) struct Head<'a> {
    pub(super) name: Option<String>,
    pub(super) extends: Option<(&'a str, &'a Place)>,
    pub(super) strategy: Strategy,
}

/// Every section that is in force where a document has it, by its path.
fn in_force() -> impl Iterator<Item = &'static str> {
    // A guard without keys is none that a document can speak of.
    let kinds = KINDS.iter().filter(|kind| !kind.keys.is_empty());
    kinds.map(|kind| kind.section).chain(ELSEWHERE.iter().copied())
}

/// Every section that a document may have, by its path.
fn sections() -> impl Iterator<Item = &'static str> {
    in_force().chain(NOT_ENFORCED.iter().copied())
}

/// The names right below a path on the way to sections.
fn names_below(path: &str, sections: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let below = sections.filter_map(|section| section.strip_prefix(path)?.strip_prefix('.'));
    let mut names: Vec<&str> = below.filter_map(|rest| rest.split('.').next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Checks the names of a document down to its sections, and reads its head.
pub(super) fn check<'a>(root: &'a Node, problems: &'a Problems) -> Head<'a> {
    let mut head = Head { name: None, extends: None, strategy: Strategy::default() };
    match &root.kind {
        NodeKind::Map(members) => check_top(members, problems),
        NodeKind::Null => {
            let message = format!("the document is empty; begin with `hushspec: \"{VERSION}\"`");
            problems.add(&root.place, message);
            return head;
        }
        _ => {
            problems.add(&root.place, format!("the document: {}", no_map(root)));
            return head;
        }
    }
    let section = Section::top(root, TOP_KEYS, problems);
    check_version(&section, root);
    let text = |key| section.text(key).map(|item| item.text.to_owned());
    head.name = text("name");
    let _description = text("description");
    head.extends = extends_of(&section);
    head.strategy = section.one_of("merge_strategy", Strategy::WORDS).unwrap_or_default();
    head
}

fn extends_of<'a>(section: &Section<'a>) -> Option<(&'a str, &'a Place)> {
    if section.node("extends").is_some_and(|node| matches!(node.kind, NodeKind::List(_))) {
        let message = "expected one file or built-in ruleset, found a list; \
                       extend one that extends the other";
        section.problem("extends", message);
        return None;
    }
    section.text("extends").map(|item| (item.text.trim(), item.place))
}

fn check_top(members: &[(Name, Node)], problems: &Problems) {
    let known: Vec<&str> = TOP_KEYS.iter().map(|key| key.name).collect();
    for (name, node) in members {
        if !known.contains(&&*name.text) {
            unknown(name, "", &known, problems);
        } else if matches!(&*name.text, "rules" | "extensions" | "chio") {
            check_below(node, &name.text, problems);
        }
    }
}

/// Checks what is below a path that leads to sections and is none itself.
fn check_below(node: &Node, path: &str, problems: &Problems) {
    let members = match &node.kind {
        NodeKind::Map(members) => members,
        NodeKind::Null => return,
        _ => {
            return problems.add(&node.place, format!("`{path}`: {}", no_map(node)));
        }
    };
    let (known, offered) = (names_below(path, sections()), names_below(path, in_force()));
    for (name, node) in members {
        let full = format!("{path}.{}", name.text);
        if !known.contains(&&*name.text) {
            unknown(name, path, &offered, problems);
        } else if !sections().any(|section| section == full) {
            check_below(node, &full, problems);
        }
    }
}

/// Notes an unknown name, with the remedy: where it belongs, or which name is near.
fn unknown(name: &Name, path: &str, known: &[&str], problems: &Problems) {
    let shown_path = if path.is_empty() { "the document".to_owned() } else { format!("`{path}`") };
    let other = OTHER_DIALECT.iter().find(|(other, _)| path.is_empty() && *other == name.text);
    let last = |section: &'static str| section.rsplit('.').next() == Some(&*name.text);
    let way_out = match (other, sections().find(|section| last(section))) {
        (Some((_, way_out)), _) => format!("; {way_out}"),
        (None, Some(section)) => format!("; it belongs at `{section}`"),
        (None, None) => hint(&name.text, known),
    };
    let text = shown(&name.text);
    problems.add(&name.place, format!("{shown_path}: there is no `{text}`{way_out}"));
}

fn check_version(section: &Section<'_>, root: &Node) {
    let write = format!("write `hushspec: \"{VERSION}\"`");
    let Some(node) = section.node("hushspec") else {
        return section.problem_at(&root.place, &format!("`hushspec` is missing; {write}"));
    };
    match &node.kind {
        NodeKind::Text(text) if text == VERSION => {}
        NodeKind::Text(text) => {
            let text = shown(text);
            let message =
                format!("expected \"{VERSION}\", the version that is read here, found \"{text}\"");
            section.problem("hushspec", &message);
        }
        _ => {
            let found = node.found();
            let message =
                format!("expected \"{VERSION}\", found {found}; {write}, with the quotes");
            section.problem("hushspec", &message);
        }
    }
}

/// Refuses an effective document that asks for what this kernel does not do.
pub(super) fn check_enforced(root: &Node, problems: &Problems) {
    let enforced = |path: &str| KINDS.iter().any(|kind| kind.section == path);
    for path in NOT_ENFORCED.iter().filter(|path| !enforced(path)) {
        let Some(node) = root.at(path) else { continue };
        if !node.is_off() && node.kind != NodeKind::Null {
            let message = format!(
                "`{path}`: this kernel does not enforce it; remove it or set `enabled: false`"
            );
            problems.add(&node.place, message);
        }
    }
}
