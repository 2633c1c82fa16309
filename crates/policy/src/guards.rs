//! The guards, one file each.
//!
//! A guard file has one `pub(crate) const KIND`, and a line in [`KINDS`]. The order there is the
//! order in which guards are asked.

pub(crate) mod approvals;
mod bridge;
mod browser_automation;
mod budget;
mod code_execution;
mod egress;
mod external;
mod forbidden_paths;
pub(crate) mod human_in_loop;
mod internal_network;
mod limits;
mod malformed;
pub(crate) mod model;
mod output_rules;
mod own_files;
mod patch_integrity;
mod path_allowlist;
mod prompt_injection;
mod rules;
mod schema;
mod secret_patterns;
mod shell_commands;
mod tool_access;
mod tool_velocity;
mod velocity;

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use chio_yaml::{Key, Problems, Section};

use crate::example::ExampleCall;
use crate::state::State;

pub(crate) use internal_network::embedded::addresses as addresses_in;

/// A kind of guard: what a document can say about it, and how it is made.
#[derive(Debug, Clone, Copy)]
pub struct GuardKind {
    /// Its name in receipts, such as `forbidden-path`.
    pub name: &'static str,
    /// Where a document speaks of it, such as `rules.forbidden_paths`.
    pub section: &'static str,
    /// What it is for, in one or two sentences, for the reference page.
    pub about: &'static str,
    /// What its section may have.
    pub keys: &'static [Key],
    /// Whether it is there when a document does not speak of it.
    pub always: bool,
    /// Makes the guard as the section says; none where the section switches it off. Whatever is
    /// wrong is noted in the section's problems.
    pub build: fn(&Section<'_>, &Building<'_>) -> Option<Built>,
}

/// What a guard is made from besides its section.
#[derive(Debug)]
pub struct Building<'a> {
    /// What guards remember from call to call.
    pub state: &'a Arc<State>,
    /// The folder that files named in the document are looked up in; none for built-in documents.
    pub folder: Option<&'a Path>,
    /// What guards read from other files than the document: the hash of the policy is over these
    /// too, and a change of one is a change of the policy.
    pub files: &'a RefCell<Vec<(PathBuf, Vec<u8>)>>,
    /// What is legal and may still surprise.
    pub notes: &'a Problems,
}

impl Building<'_> {
    /// Notes that a list of the document takes the place of one of Chio's own.
    fn note_replaced(&self, section: &Section<'_>, key: &str) {
        if section.has(key) {
            section.note(self.notes, key, "this list replaces Chio's own as a whole");
        }
    }

    /// Notes that a section says something and is not in force.
    fn note_idle(&self, section: &Section<'_>, keys: &[&str]) {
        if !section.has("enabled") && keys.iter().any(|key| section.has(key)) {
            let place = section.place();
            section.note_at(self.notes, place, "this has no effect without `enabled: true`");
        }
    }
}

/// A guard that was made.
pub struct Built {
    /// The guard.
    pub guard: Arc<dyn Guard>,
    /// A call that the guard, as it was made, must not allow; none where it allows everything.
    /// The kernel proves with it, before it serves, that the guard denies it.
    pub forbidden: Option<ExampleCall>,
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built").field("guard", &self.guard.name()).finish_non_exhaustive()
    }
}

impl Built {
    /// A guard that decides by one function, without waiting for anything.
    fn deciding<V: Into<GuardOutcome>>(
        name: &'static str,
        forbidden: Option<ExampleCall>,
        decide: impl Fn(&GuardInput<'_>) -> Result<V, String> + Send + Sync + 'static,
    ) -> Self {
        let decide = Box::new(move |input: &GuardInput<'_>| decide(input).map(Into::into));
        Self { guard: Arc::new(Decider { name, decide }), forbidden }
    }

    /// A guard that can only deny: `refuse` gives the reason, or nothing for a call that may pass.
    fn refusing(
        name: &'static str,
        forbidden: Option<ExampleCall>,
        refuse: impl Fn(&GuardInput<'_>) -> Result<Option<String>, String> + Send + Sync + 'static,
    ) -> Self {
        let verdict = |refusal: Option<String>| refusal.map_or(Verdict::Allow, Verdict::Deny);
        Self::deciding(name, forbidden, move |input| refuse(input).map(verdict))
    }
}

type Decide = dyn Fn(&GuardInput<'_>) -> Result<GuardOutcome, String> + Send + Sync;

/// A guard that is one function.
struct Decider {
    name: &'static str,
    decide: Box<Decide>,
}

#[async_trait]
impl Guard for Decider {
    fn name(&self) -> &str {
        self.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        (self.decide)(input)
    }
}

/// Every kind of guard, in the order in which they are asked.
pub const KINDS: &[GuardKind] = &[
    // First, so that the receipt has no secret, whichever guard denies.
    secret_patterns::KIND,
    tool_access::KIND,
    schema::KIND,
    forbidden_paths::KIND,
    path_allowlist::KIND,
    shell_commands::KIND,
    own_files::KIND,
    code_execution::KIND,
    patch_integrity::KIND,
    egress::KIND,
    internal_network::KIND,
    browser_automation::KIND,
    model::KIND,
    bridge::KIND,
    rules::KIND,
    malformed::KIND,
    // Services of the operator are asked only about calls that no guard before denies.
    external::KIND,
    prompt_injection::KIND,
    output_rules::KIND,
    // Those that ask stand behind those that can only deny, those that count behind all.
    human_in_loop::KIND,
    approvals::KIND,
    velocity::KIND,
    tool_velocity::KIND,
    budget::KIND,
];
