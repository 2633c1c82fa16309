//! The options that every command has that serves what its own options name.

use anyhow::Result;
use chio_store::Location;

use crate::adoption::AdoptArgs;
use crate::io::Io;
use crate::logging::LogArgs;
use crate::policy_args::PolicyArgs;
use crate::runtime::Plan;
use crate::trust::TrustArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    adopt: AdoptArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    trust: TrustArgs,
}

impl ServeArgs {
    /// Starts the log.
    pub(crate) fn start_log(&self) {
        self.log.start();
    }

    /// A plan that serves nothing yet.
    pub(crate) fn plan<'a>(
        &self,
        io: &mut Io<'_>,
        location: Location,
        choose_address: &'a str,
    ) -> Result<Plan<'a>> {
        let (adopt, kernel) = (self.adopt.adopt, self.trust.read(io)?);
        Ok(Plan { adopt, kernel, ..Plan::new(location, self.policy.sources(io), choose_address) })
    }
}
