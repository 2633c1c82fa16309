//! A policy: a document that was read, with the guards that it asks for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chio_kernel::{Guard, GuardMemo, Pipeline, Verdict, Work, ask};
use chio_yaml::{Node, NodeKind, Problem, Problems, Section};

use crate::capabilities::{self, DefaultCapability};
use crate::document::{self, Document};
use crate::example::ExampleCall;
use crate::guards::{Building, KINDS, approvals, human_in_loop};
use crate::judge::{self, Judged};
use crate::state::State;

/// A policy that was read without a problem.
pub struct Policy {
    hash: String,
    document: Document,
    guards: Vec<Arc<dyn Guard>>,
    /// Calls that must not pass, by the guard that stands in the way.
    forbidden: Vec<(&'static str, ExampleCall)>,
    capabilities: Vec<DefaultCapability>,
    approval_timeout: Option<Duration>,
    asks_client: bool,
    files: Vec<PathBuf>,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// A policy that lets a call pass which it forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the policy does not hold: guard `{guard}` allows a call of `{tool}` that it has to stop; \
     nothing is served under it"
)]
pub struct Unproved {
    /// The guard.
    pub guard: String,
    /// The tool of the call.
    pub tool: String,
}

impl Policy {
    /// Reads a policy: a file, or a built-in one by its name.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(reference: &str, base: &Path, state: &Arc<State>) -> Result<Self, Vec<Problem>> {
        Self::of_document(document::load(reference, base)?, state)
    }

    /// The guards that a document asks for.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn of_document(mut document: Document, state: &Arc<State>) -> Result<Self, Vec<Problem>> {
        let problems = Problems::default();
        let read = std::cell::RefCell::default();
        let notes = Problems::default();
        let folder = document.folder.clone();
        let building = Building { state, folder: folder.as_deref(), files: &read, notes: &notes };
        let (mut guards, mut forbidden): (Vec<Arc<dyn Guard>>, Vec<_>) = Default::default();
        let empty = Node { place: document.root.place.clone(), kind: NodeKind::Null };
        for kind in KINDS {
            let node = document.root.at(kind.section);
            if node.is_none() && !kind.always {
                continue;
            }
            let section = Section::new(node.unwrap_or(&empty), kind.section, kind.keys, &problems);
            if let Some(built) = (kind.build)(&section, &building) {
                guards.push(built.guard);
                forbidden.extend(built.forbidden.map(|call| (kind.name, call)));
            }
        }
        let section = |path: &str, keys| {
            let node = document.root.at(path).unwrap_or(&empty);
            Section::new(node, path, keys, &problems)
        };
        let capabilities = capabilities::read(&section(capabilities::SECTION, capabilities::KEYS));
        let asking = section(human_in_loop::KIND.section, human_in_loop::KIND.keys);
        let approval_timeout = asking.duration("timeout_seconds");
        let approvals = section(approvals::KIND.section, approvals::KIND.keys);
        let asks_client = approvals.flag("ask_client", false);
        if !problems.is_empty() {
            return Err(problems.into_sorted());
        }
        // What a built-in ruleset says is what its author meant.
        let theirs = |note: &Problem| !note.place.file.starts_with("chio:");
        document.notes.extend(notes.into_sorted().into_iter().filter(theirs));
        let absent = absent(&document, &guards);
        document.notes.extend(absent);
        let extra: Vec<(PathBuf, Vec<u8>)> = read.into_inner();
        let names = extra.iter().enumerate();
        let names: Vec<String> =
            names.map(|(number, (path, _))| format!("{number}: {}", file_name(path))).collect();
        let bytes = extra.iter().map(|(_, bytes)| bytes.as_slice());
        let named = names.iter().map(String::as_str).zip(bytes);
        // What a document leaves out is filled in by this version's defaults.
        let engine = ("engine", env!("CARGO_PKG_VERSION").as_bytes());
        let hash = document::hash(&document.root, &named.chain([engine]).collect::<Vec<_>>());
        let files = document.files.iter().cloned().chain(extra.into_iter().map(|(path, _)| path));
        let files = files.collect();
        Ok(Self {
            hash,
            guards,
            forbidden,
            capabilities,
            approval_timeout,
            asks_client,
            files,
            document,
        })
    }

    /// Whether the user of a calling client may answer its requests for approval.
    #[must_use]
    pub const fn asks_client(&self) -> bool {
        self.asks_client
    }

    /// The name of the policy in receipts: the hash of what is in force, not of how it is written.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The document's own name.
    pub fn name(&self) -> Option<&str> {
        self.document.name.as_deref()
    }

    /// What is legal and may still surprise.
    pub fn notes(&self) -> &[Problem] {
        &self.document.notes
    }

    /// Every file that was read.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The guards, in the order in which they are asked.
    pub fn guards(&self) -> &[Arc<dyn Guard>] {
        &self.guards
    }

    /// What is issued to a new session.
    pub fn capabilities(&self) -> &[DefaultCapability] {
        &self.capabilities
    }

    /// The guards for a kernel, after they have shown that they stand in the way of every call
    /// that is known to be forbidden. There is no other way to get them into a kernel.
    ///
    /// # Errors
    /// When one of them lets such a call pass.
    pub async fn proven(&self) -> Result<Pipeline, Unproved> {
        let pipeline = Pipeline::new(self.hash.clone(), self.guards.clone());
        for (name, call) in &self.forbidden {
            let guard = pipeline.guards().iter().find(|guard| guard.name() == *name);
            let memo = GuardMemo::default();
            let stands = match guard {
                Some(guard) => {
                    ask(&**guard, &call.input(&memo, &Work::default())).await.verdict
                        != Verdict::Allow
                }
                None => false,
            };
            if !stands {
                let tool = call.tool_name.clone();
                return Err(Unproved { guard: (*name).to_owned(), tool });
            }
        }
        Ok(pipeline.with_approval_timeout(self.approval_timeout))
    }

    /// What becomes of a call, guard by guard.
    pub async fn judge(&self, call: &ExampleCall) -> Judged {
        judge::judge(&self.guards, call).await
    }
}

/// A note about the guards of `default` that an operator's document does without.
fn absent(document: &Document, guards: &[Arc<dyn Guard>]) -> Option<Problem> {
    document.folder.as_ref()?;
    let default = document::load("chio:default", Path::new("")).ok()?;
    let there = |name: &str| guards.iter().any(|guard| guard.name() == name);
    let expected = KINDS.iter().filter(|kind| default.root.at(kind.section).is_some());
    let missing: Vec<&str> = expected.map(|kind| kind.name).filter(|name| !there(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let message =
        format!("of the ruleset `default`, these guards are not in force: {}", missing.join(", "));
    Some(Problem { place: document.root.place.clone(), message })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
