//! `chio capability issue`: a signed token, fresh or at the end of a delegation.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chio_core::capability::{CapabilityToken, Child, ChioScope, DelegationReceipt, Validity};
use chio_core::crypto::Keypair;
use chio_core::registry::ErrorCode;
use chio_core::signed::Signed;

use super::scope::{self, Narrowing};
use super::{TOKEN, import, new_id};
use crate::date;
use crate::duration;
use crate::files::Out;
use crate::io::Io;
use crate::outcome::Refused;
use crate::store_args::{StoreArgs, block_on};

/// How long a token holds when the operator does not say.
const DEFAULT_TTL: u64 = 3600;

const HELP: &str = "\
Constraints are {\"type\": TYPE, \"value\": VALUE}, of type path_prefix, domain_exact, domain_glob,
regex_match, max_length, max_args_size, audience_allowlist and others. A scope is
  {\"grants\": [{\"server_id\": S, \"tool_name\": T, \"operations\": [\"invoke\"]}]}
with resource_grants and prompt_grants beside the grants. Members that a scope does not have are
refused: a misspelt limit would be none.

A token that was handed on is made in two parts: its holder runs `chio capability delegate`, and the
issuer runs this command with --delegation and --parent. Subject and end come from the delegation;
the scope too, when its steps say it all, and otherwise from --scope.

Without --key, the authority of the store signs, and the token is known to the kernels there from
then on; so it is with --key and a store.

Examples:
  chio capability issue --subject agent.key --grant demo/echo --out token.json
  chio capability issue --key authority.key --subject agent.key \\
    --grant files/read_file:invoke,delegate --max-invocations 10 \\
    --constraint '{\"type\": \"path_prefix\", \"value\": \"/workspace\"}' --ttl 8h --out token.json
  chio capability issue --key authority.key --delegation delegation.json --parent token.json";

/// Sign a capability token
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Key file of the issuer, who signs [default: the authority of the store]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// Who may use the token: a public key, or a key file whose public key is meant
    #[arg(
        long,
        value_name = "KEY",
        required_unless_present = "delegation",
        conflicts_with = "delegation"
    )]
    subject: Option<String>,
    #[command(flatten)]
    scope: scope::Options,
    /// How long the token holds: 30s, 15m, 8h, 7d or seconds [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "delegation")]
    ttl: Option<u64>,
    /// The first second in which the token holds [default: now]
    #[arg(long, value_name = "TIME", value_parser = date::parse)]
    at: Option<u64>,
    /// The name by which the token can be revoked [default: cap- and a UUID]
    #[arg(long)]
    id: Option<String>,
    /// Sign the token at the end of this delegation, as `chio capability delegate` made it
    #[arg(long, value_name = "FILE", requires = "parent")]
    delegation: Option<PathBuf>,
    /// The token that was handed on
    #[arg(long, value_name = "FILE", requires = "delegation")]
    parent: Option<PathBuf>,
    /// Another issuer that a parent may come from; can be repeated
    #[arg(long, value_name = "KEY", requires = "delegation")]
    trusted_issuer: Vec<String>,
    /// Let the child hand on what its parent can hand on
    #[arg(long, requires = "delegation", conflicts_with_all = ["scope", "grant"])]
    keep_delegate: bool,
    #[command(flatten)]
    out: Out,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let token = match (&args.delegation, &args.parent) {
        (Some(delegation), Some(parent)) => args.child(io, delegation, parent)?,
        _ => args.root(io)?,
    };
    // Known before it is issued, so that whatever is made of it is accepted.
    if args.key.is_none() || args.store.is_given() {
        block_on(async {
            let store = args.store.open_existing(io).await?.shared();
            import::remember(&store, &token).await
        })?;
    }
    args.out.write(io, &token, ("capability", &token.id))
}

impl Args {
    /// The key that signs.
    fn signer(&self, io: &mut Io<'_>) -> Result<Keypair> {
        if let Some(path) = &self.key {
            return io.read_key(path);
        }
        block_on(async {
            let store = self.store.open_existing(io).await.context(
                "expected --key, or a store whose authority signs (`chio up` makes one in .chio)",
            )?;
            store.authority().await?.context("the store has no authority key: pass --key")
        })
    }

    /// A token that was not handed on.
    fn root(&self, io: &mut Io<'_>) -> Result<CapabilityToken> {
        let Some(scope) = self.scope.read(io)? else {
            bail!("expected --grant or --scope to say what the token allows, found neither");
        };
        let key = self.signer(io)?;
        let subject = self.subject.as_deref().context("expected --subject")?;
        let subject = io.public_key("--subject", subject)?;
        let issued_at = self.at.unwrap_or(io.now);
        let expires_at = issued_at.saturating_add(self.ttl.unwrap_or(DEFAULT_TTL));
        let (issuer, validity) = (key.public_key().clone(), Validity { issued_at, expires_at });
        let token = CapabilityToken::draft(self.id()?, issuer, subject, scope, validity);
        Ok(token.signed(&key).map_err(Refused::from)?)
    }

    /// The token at the end of a delegation.
    fn child(&self, io: &mut Io<'_>, delegation: &Path, parent: &Path) -> Result<CapabilityToken> {
        let receipt: DelegationReceipt = io.read_json(delegation, "a delegation receipt")?;
        let parent: CapabilityToken = io.read_json(parent, TOKEN)?;
        let scope = match self.scope.read(io)? {
            Some(scope) => scope,
            None => self.declared_scope(&parent, &receipt)?,
        };
        let trusted = io.public_keys("--trusted-issuer", &self.trusted_issuer)?;
        let key = self.signer(io)?;
        let issued_at = self.at.unwrap_or(io.now);
        let child = Child { parent: &parent, receipt: &receipt, scope, id: self.id()?, issued_at };
        Ok(child.signed(&key, &trusted).map_err(Refused::from)?)
    }

    /// The scope that the steps of a delegation lead to.
    ///
    /// A link does not carry the child's scope. Steps that speak of tools describe it; without
    /// any, to assume the whole of the parent's would be to give more than was meant.
    fn declared_scope(
        &self,
        parent: &CapabilityToken,
        receipt: &DelegationReceipt,
    ) -> Result<ChioScope, Refused> {
        let refuse = |problem: &str| {
            let message = format!("{problem}: pass what was handed on with --scope");
            Refused::with_code(message, ErrorCode::CapabilityDenied)
        };
        let steps = &receipt.link.attenuations;
        if !steps.iter().any(|step| step.kind() != "shorten_expiry") {
            return Err(refuse("the delegation does not say what the child may do"));
        }
        let narrowed = Narrowing::new(&parent.scope, parent.expires_at, steps.clone());
        let mut narrowed = narrowed.map_err(|error| refuse(&error.to_string()))?;
        if !self.keep_delegate {
            narrowed.drop_delegate();
        }
        Ok(narrowed.scope)
    }

    fn id(&self) -> Result<String> {
        match &self.id {
            Some(id) if id.trim().is_empty() => bail!("expected a name for --id, found a blank"),
            Some(id) => Ok(id.clone()),
            None => Ok(new_id()),
        }
    }
}
