//! The rulesets that come with the program.

use chio_yaml::hint;

/// A ruleset that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruleset {
    /// Its name, such as `default`.
    pub name: &'static str,
    /// The document.
    pub text: &'static str,
}

/// Every built-in ruleset.
pub const RULESETS: &[Ruleset] = &[
    Ruleset { name: "default", text: include_str!("../rulesets/default.yaml") },
    Ruleset { name: "strict", text: include_str!("../rulesets/strict.yaml") },
    Ruleset { name: "permissive", text: include_str!("../rulesets/permissive.yaml") },
    Ruleset { name: "code-agent", text: include_str!("../rulesets/code-agent.yaml") },
];

/// The ruleset of this name.
pub(super) fn find(name: &str) -> Option<&'static Ruleset> {
    RULESETS.iter().find(|ruleset| ruleset.name == name)
}

/// `; did you mean …?`, or which rulesets there are.
pub(super) fn nearest(name: &str) -> String {
    let names: Vec<&str> = RULESETS.iter().map(|ruleset| ruleset.name).collect();
    hint(name, &names)
}
