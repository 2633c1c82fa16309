//! `chio capability delegate`: a holder hands a part of its token on.

use std::path::PathBuf;

use anyhow::{Result, bail};
use chio_core::capability::{
    Attenuation, CapabilityToken, Child, Delegation, DelegationError, DelegationReceipt, delegate,
};
use uuid::Uuid;

use super::scope::{self, Narrowing};
use super::{TOKEN, new_id};
use crate::date;
use crate::duration;
use crate::files::Out;
use crate::io::Io;
use crate::outcome::Refused;

const HELP: &str = "\
The holder of a token signs a link to the next holder. The result is a delegation receipt: it goes
to the issuer, who signs the next holder's token with `chio capability issue --delegation`. Who has
the issuer's key at hand does both at once with --issuer-key.

Without --scope the next holder receives the parent's scope, less what each --step takes away, and
without the leave to hand it on unless --keep-delegate is given. Steps are
  {\"type\": \"remove_tool\", \"server_id\": S, \"tool_name\": T}
  {\"type\": \"remove_operation\", \"server_id\": S, \"tool_name\": T, \"operation\": OP}
  {\"type\": \"add_constraint\", \"server_id\": S, \"tool_name\": T, \"constraint\": {..}}
  {\"type\": \"reduce_budget\", \"server_id\": S, \"tool_name\": T, \"max_invocations\": N}
  {\"type\": \"shorten_expiry\", \"new_expires_at\": UNIX_SECONDS}
and reduce_cost_per_invocation and reduce_total_cost with an amount.

Example:
  chio capability delegate --parent token.json --key agent.key --to sub-agent.key --ttl 10m \\
    --step '{\"type\": \"reduce_budget\", \"server_id\": \"files\", \"tool_name\": \"read_file\",
             \"max_invocations\": 3}' --out delegation.json";

/// Hand a part of a token on to another subject
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The token to hand on
    #[arg(long, value_name = "FILE")]
    parent: PathBuf,
    /// Key file of the token's subject, who signs the link
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Who receives: a public key, or a key file whose public key is meant
    #[arg(long, value_name = "KEY")]
    to: String,
    /// What they receive, as JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["step", "keep_delegate"])]
    scope: Option<PathBuf>,
    /// Take something away, as JSON; can be repeated
    #[arg(long, value_name = "JSON")]
    step: Vec<String>,
    /// Let the receiver hand it on in turn
    #[arg(long)]
    keep_delegate: bool,
    /// How long they have it: 30s, 15m, 8h, 7d or seconds [default: as long as the parent holds]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    ttl: Option<u64>,
    /// The first second in which they no longer have it
    #[arg(long, value_name = "TIME", value_parser = date::parse, conflicts_with = "ttl")]
    expires_at: Option<u64>,
    /// When it is handed on [default: now]
    #[arg(long, value_name = "TIME", value_parser = date::parse)]
    at: Option<u64>,
    /// Key file of the issuer: sign the receiver's token as well, and write that instead
    #[arg(long, value_name = "FILE")]
    issuer_key: Option<PathBuf>,
    /// Another issuer that the parent may come from; can be repeated
    #[arg(long, value_name = "KEY", requires = "issuer_key")]
    trusted_issuer: Vec<String>,
    #[command(flatten)]
    out: Out,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let parent: CapabilityToken = io.read_json(&args.parent, TOKEN)?;
    let signed_at = args.at.unwrap_or(io.now);
    let given = args.narrow(io, &parent, signed_at)?;
    let delegation = Delegation {
        delegatee: io.public_key("--to", &args.to)?,
        scope: given.scope.clone(),
        expires_at: given.expires_at,
        steps: given.steps,
        budget_share_bps: None,
        signed_at,
        nonce: Uuid::now_v7().into_bytes(),
    };
    let key = io.read_key(&args.key)?;
    let receipt = delegate(&parent, delegation, &key).map_err(Refused::from)?;
    let Some(issuer_key) = &args.issuer_key else {
        return args.write_receipt(io, &receipt);
    };
    let issuer = io.read_key(issuer_key)?;
    let trusted = io.public_keys("--trusted-issuer", &args.trusted_issuer)?;
    let (scope, id) = (given.scope, new_id());
    let child = Child { parent: &parent, receipt: &receipt, scope, id, issued_at: signed_at };
    let token = child.signed(&issuer, &trusted).map_err(Refused::from)?;
    args.out.write(io, &token, ("capability", &token.id))
}

impl Args {
    /// What is handed on, until when, and the steps to it.
    fn narrow(
        &self,
        io: &mut Io<'_>,
        parent: &CapabilityToken,
        signed_at: u64,
    ) -> Result<Narrowing> {
        let mut given = match &self.scope {
            Some(path) => {
                let scope = scope::read_file(io, path)?;
                Narrowing { scope, expires_at: parent.expires_at, steps: Vec::new() }
            }
            None => {
                let steps = scope::from_options("--step", &self.step)?;
                Narrowing::new(&parent.scope, parent.expires_at, steps)
                    .map_err(|error| Refused::from(DelegationError::from(error)))?
            }
        };
        if self.scope.is_none() && !self.keep_delegate {
            given.drop_delegate();
        }
        let asked = self.expires_at.or(self.ttl.map(|ttl| signed_at.saturating_add(ttl)));
        if let Some(expires_at) = asked.filter(|end| *end != given.expires_at) {
            // Said in the link, so that the delegator's signature covers it.
            if expires_at < given.expires_at {
                given.steps.push(Attenuation::ShortenExpiry { new_expires_at: expires_at });
            }
            given.expires_at = expires_at;
        }
        // A parent that has ended is another problem, with its own message.
        if given.expires_at <= signed_at && signed_at < parent.expires_at {
            bail!("expected an end after the hand-over, found one before it");
        }
        Ok(given)
    }

    fn write_receipt(&self, io: &mut Io<'_>, receipt: &DelegationReceipt) -> Result<()> {
        self.out.write(io, receipt, ("parent", &receipt.parent_capability_id))
    }
}
