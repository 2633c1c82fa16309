//! Which policy a kernel judges calls by.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use chio_policy::own::Own;
use chio_yaml::Problem;

use crate::files::shown;
use crate::io::Io;
use crate::outcome::Refused;
use crate::policies::{Policies, Source, Unusable};
use crate::text;

/// Which policy judges calls, and which one is only tried.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    /// The policy that judges calls: a file, or a built-in one (`chio policy list`)
    #[arg(long, value_name = "FILE|NAME", default_value = "default")]
    policy: String,
    /// A policy to try beside it: receipts tell what it would have done, and it stops nothing
    #[arg(long, value_name = "FILE|NAME")]
    shadow_policy: Option<String>,
}

/// Where the policies of a kernel come from.
#[derive(Debug)]
pub(crate) struct PolicySources {
    pub(crate) in_force: Source,
    /// A policy that is only tried.
    pub(crate) on_trial: Option<Source>,
}

impl PolicyArgs {
    /// The policies that are named, by paths that begin in the current folder.
    pub(crate) fn sources(&self, io: &Io<'_>) -> PolicySources {
        PolicySources::new(&self.policy, self.shadow_policy.as_ref(), io.folder, &io.own)
    }
}

impl PolicySources {
    pub(crate) fn new(
        in_force: &str,
        on_trial: Option<&String>,
        folder: &Path,
        own: &Arc<Own>,
    ) -> Self {
        let on_trial = on_trial.map(|it| Source::new(it, folder, own));
        Self { in_force: Source::new(in_force, folder, own), on_trial }
    }

    /// Reads the policies. One that is broken, or does not hold, is not served under.
    pub(crate) async fn load(&self, io: &mut Io<'_>) -> Result<Policies> {
        match Policies::load(self.in_force.clone(), self.on_trial.clone()).await {
            Ok(policies) => Ok(policies),
            Err((reference, Unusable::Broken(problems))) => Err(broken(io, &reference, &problems)),
            Err((_, Unusable::Unproved(unproved))) => {
                Err(Refused::new(unproved.to_string()).into())
            }
        }
    }
}

/// Tells everything that is wrong with a document, each with its place.
pub(crate) fn broken(io: &mut Io<'_>, reference: &str, problems: &[Problem]) -> anyhow::Error {
    for problem in problems {
        io.complain_at(problem);
    }
    let (name, number) = (shown(reference.as_ref()), text::count(problems.len(), "problem"));
    anyhow!("{name} cannot be used: {number}")
}
