//! The policies of a kernel: the one in force, and one that is tried beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chio_kernel::Pipeline;
use chio_policy::capabilities::DefaultCapability;
use chio_policy::document::RULESETS;
use chio_policy::own::Own;
use chio_policy::shadow::Shadow;
use chio_policy::state::State;
use chio_policy::{Policy, Unproved};
use chio_yaml::Problem;
use parking_lot::RwLock;

use crate::text;

/// How much of a hash tells policies apart for people.
const SHORT: usize = 12;

/// The policy that is in force unless the operator names another.
pub(crate) const DEFAULT: &str = "default";

/// Whether the program itself has a policy of this name.
pub(crate) fn is_built_in(reference: &str) -> bool {
    let name = ["chio:", "hushspec:"].iter().find_map(|it| reference.strip_prefix(it));
    RULESETS.iter().any(|ruleset| ruleset.name == name.unwrap_or(reference))
}

/// Where a policy comes from, and what its guards remember while it is read anew.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    reference: String,
    base: PathBuf,
    state: Arc<State>,
}

/// Why a policy cannot be put in force.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The document is not understood.
    Broken(Vec<Problem>),
    /// It is, and lets a call pass that it forbids.
    Unproved(Unproved),
}

impl Unusable {
    /// A line for each thing that is wrong.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Broken(problems) => problems.iter().map(Problem::to_string).collect(),
            Self::Unproved(unproved) => vec![unproved.to_string()],
        }
    }
}

impl Source {
    /// A file, looked up in `base`, or a built-in policy, of a program to which this belongs.
    pub(crate) fn new(reference: &str, base: &Path, own: &Arc<Own>) -> Self {
        let (reference, base) = (reference.to_owned(), base.to_owned());
        Self { reference, base, state: Arc::new(State::of(Arc::clone(own))) }
    }

    /// Another policy in its place, whose guards go on with what these have counted.
    pub(crate) fn renamed(&self, reference: &str) -> Self {
        Self { reference: reference.to_owned(), ..self.clone() }
    }

    /// Whether it is what is in force unless the operator names another.
    pub(crate) fn is_default(&self) -> bool {
        self.reference == DEFAULT
    }

    /// Reads it as it is now.
    pub(crate) fn read(&self) -> Result<Policy, Vec<Problem>> {
        Policy::load(&self.reference, &self.base, &self.state)
    }

    /// What people call the policy that was read from it.
    pub(crate) fn name(&self, policy: &Policy) -> String {
        policy.name().unwrap_or(&self.reference).to_owned()
    }
}

/// A policy that holds.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) source: Source,
    pub(crate) policy: Policy,
    pub(crate) pipeline: Pipeline,
}

impl Held {
    async fn load(source: Source) -> Result<Self, (String, Unusable)> {
        let reference = source.reference.clone();
        match source.read() {
            Ok(policy) => match policy.proven().await {
                Ok(pipeline) => Ok(Self { source, policy, pipeline }),
                Err(unproved) => Err((reference, Unusable::Unproved(unproved))),
            },
            Err(problems) => Err((reference, Unusable::Broken(problems))),
        }
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        self.source.name(&self.policy)
    }

    /// A line about it.
    pub(crate) fn summary(&self) -> String {
        let (name, hash) = (self.name(), self.policy.hash());
        let guards = text::count(self.policy.guards().len(), "guard");
        let line = format!("{name} {hash:.SHORT$}, {guards}");
        match self.policy.notes().len() {
            0 => line,
            number => {
                let (notes, file) = (text::count(number, "note"), &self.source.reference);
                format!("{line}, {notes}: chio policy check {}", text::quoted(file))
            }
        }
    }
}

/// What new sessions are handed, as the policy in force says now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capabilities(Arc<RwLock<Arc<[DefaultCapability]>>>);

impl Capabilities {
    /// The capabilities that the policy in force issues.
    pub(crate) fn now(&self) -> Arc<[DefaultCapability]> {
        Arc::clone(&self.0.read())
    }

    fn set(&self, capabilities: &[DefaultCapability]) {
        *self.0.write() = capabilities.into();
    }
}

/// The policies of a kernel.
#[derive(Debug)]
pub(crate) struct Policies {
    pub(crate) in_force: Held,
    pub(crate) on_trial: Option<Held>,
    capabilities: Capabilities,
    /// Whether users of clients may answer requests for approval, as the policy in force says now.
    asks_client: Arc<AtomicBool>,
}

impl Policies {
    /// Reads them.
    ///
    /// # Errors
    /// With the one that cannot be used, and why.
    pub(crate) async fn load(
        in_force: Source,
        on_trial: Option<Source>,
    ) -> Result<Self, (String, Unusable)> {
        let in_force = Held::load(in_force).await?;
        let on_trial = match on_trial {
            Some(source) => Some(Held::load(source).await?),
            None => None,
        };
        let (capabilities, asks_client) = Default::default();
        let policies = Self { in_force, on_trial, capabilities, asks_client };
        policies.renewed();
        Ok(policies)
    }

    /// Takes other policies in the place of these: who has been told what they hand out is told what
    /// the others do.
    pub(crate) fn replace(&mut self, others: Self) {
        (self.in_force, self.on_trial) = (others.in_force, others.on_trial);
        self.renewed();
    }

    /// What the kernel judges by.
    pub(crate) fn pipeline(&self) -> Pipeline {
        let in_force = &self.in_force.pipeline;
        match &self.on_trial {
            None => in_force.clone(),
            Some(trial) => Shadow::beside(in_force, trial.pipeline.clone()),
        }
    }

    /// What new sessions are handed.
    pub(crate) const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether users of clients may answer requests for approval.
    pub(crate) const fn asks_client(&self) -> &Arc<AtomicBool> {
        &self.asks_client
    }

    /// Notes that the policy in force has become another.
    pub(crate) fn renewed(&self) {
        let policy = &self.in_force.policy;
        self.asks_client.store(policy.asks_client(), Ordering::Relaxed);
        self.capabilities.set(policy.capabilities());
        let own = self.in_force.source.state.own();
        own.protect_policy("policy", policy.files());
        let trial = self.on_trial.as_ref().map(|trial| trial.policy.files());
        own.protect_policy("shadow policy", trial.unwrap_or_default());
    }
}
