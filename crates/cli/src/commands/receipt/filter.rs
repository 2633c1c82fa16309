//! Which receipts of a store a command is about.

use anyhow::Result;
use chio_kernel::store::{ReceiptOutcome, ReceiptQuery};

use crate::io::Io;
use crate::{date, duration};

/// Which receipts are meant: those for which all of these hold.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Filter {
    /// Of calls under this token
    #[arg(long, value_name = "ID")]
    capability: Option<String>,
    /// Of calls by this subject: its public key, its key file, or the name of the principal
    #[arg(long, value_name = "KEY|NAME")]
    subject: Option<String>,
    /// Of calls to this server
    #[arg(long)]
    server: Option<String>,
    /// Of calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Of calls that ended so: `deny` never ran, `failed` ran and its server answered with an error
    #[arg(long, value_enum)]
    outcome: Option<OutcomeName>,
    /// From this time on, or from this long ago (30s, 15m, 8h, 7d) on
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    since: Option<When>,
    /// Up to this time, or up to this long ago
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    until: Option<When>,
    /// That cost at least this many minor units
    #[arg(long, value_name = "UNITS")]
    min_cost: Option<u64>,
    /// That cost at most this many minor units
    #[arg(long, value_name = "UNITS")]
    max_cost: Option<u64>,
    /// That cost something in this currency
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Of this trace
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
}

/// How a call ended, as it is written on the command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum OutcomeName {
    Allow,
    Deny,
    Failed,
    Cancelled,
    Incomplete,
}

/// A moment: so long ago, or by its name.
#[derive(Debug, Clone, Copy)]
enum When {
    Ago(u64),
    At(u64),
}

impl When {
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a time such as 2026-09-24T12:00:00Z or 2026-09-24, how long \
                                ago, such as 30s, 15m, 8h or 7d, or Unix seconds";
        match text.parse() {
            Ok(seconds) => Ok(Self::At(seconds)),
            Err(_) => match duration::parse(text) {
                Ok(span) => Ok(Self::Ago(span)),
                Err(_) => date::parse(text).map(Self::At).map_err(|_| EXPECTED.to_owned()),
            },
        }
    }

    const fn seconds(self, now: u64) -> u64 {
        match self {
            Self::Ago(span) => now.saturating_sub(span),
            Self::At(second) => second,
        }
    }
}

impl Filter {
    /// The query for these.
    pub(crate) fn query(&self, io: &mut Io<'_>, limit: usize) -> Result<ReceiptQuery> {
        let (subject, principal) = match &self.subject {
            Some(text) if io.is_public_key(text) => {
                (Some(io.public_key("--subject", text)?.to_hex()), None)
            }
            name => (None, name.clone()),
        };
        let outcome = self.outcome.map(|outcome| match outcome {
            OutcomeName::Allow => ReceiptOutcome::Allow,
            OutcomeName::Deny => ReceiptOutcome::Deny,
            OutcomeName::Failed => ReceiptOutcome::Failed,
            OutcomeName::Cancelled => ReceiptOutcome::Cancelled,
            OutcomeName::Incomplete => ReceiptOutcome::Incomplete,
        });
        Ok(ReceiptQuery {
            capability_id: self.capability.clone(),
            subject,
            principal,
            tool_server: self.server.clone(),
            tool_name: self.tool.clone(),
            outcome,
            since: self.since.map(|when| when.seconds(io.now)),
            until: self.until.map(|when| when.seconds(io.now)),
            min_cost: self.min_cost,
            max_cost: self.max_cost,
            currency: self.currency.clone(),
            trace_id: self.trace.clone(),
            cursor: None,
            newest_first: true,
            limit,
        })
    }
}
