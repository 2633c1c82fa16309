//! The demo agent: its key, and the tokens that let it use the tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use chio_core::capability::{CapabilityToken, ChioScope, Operation, ToolGrant, WILDCARD};
use chio_core::crypto::{Keypair, PublicKey};
use chio_demo::SERVER_ID;
use chio_policy::capabilities::DefaultCapability;

use crate::admission::Anonymous;
use crate::files::Access;
use crate::io::Io;
use crate::runtime::Runtime;
use crate::text;
use crate::token_issuer::{is_fresh, issue};

/// How long the demo agent's token holds, unless a policy says.
const DEMO_TTL: Duration = Duration::from_secs(24 * 3600);

/// Calls to begin with, and their arguments as a shell takes them.
const EXAMPLES: [(&str, &str); 6] = [
    ("echo", " '{\"text\": \"hello\"}'"),
    ("now", ""),
    ("note_count", ""),
    ("note_get", " '{\"name\": \"todo\"}'"),
    ("count_to", " '{\"n\": 3}'"),
    ("paid", ""),
];

/// The files of the demo agent's tokens, and what each is for.
#[derive(Debug)]
pub(super) struct Tokens(Vec<(PathBuf, ChioScope)>);

impl Tokens {
    /// A tool that one of them is good for, and arguments.
    pub(super) fn example(&self) -> (&'static str, &'static str) {
        let granted = |scope: &ChioScope, tool: &str| {
            let is = |name: &str, wanted: &str| name == WILDCARD || name == wanted;
            scope.grants.iter().any(|it| is(&it.server_id, SERVER_ID) && is(&it.tool_name, tool))
        };
        let allowed = |tool: &str| self.0.iter().any(|(_, scope)| granted(scope, tool));
        // Whatever else the tokens are for; the first call then shows a denial.
        EXAMPLES.into_iter().find(|(tool, _)| allowed(tool)).unwrap_or(EXAMPLES[0])
    }

    /// A line about each.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(file, scope)| {
            let tools = scope.grants.iter().map(|it| format!("{}/{}", it.server_id, it.tool_name));
            format!("{}: {}", file.display(), tools.collect::<Vec<_>>().join(", "))
        })
    }
}

/// The demo agent, with what it may do.
#[derive(Debug)]
pub(super) struct Agent {
    key: PublicKey,
    pub(super) tokens: Tokens,
    /// The first of its tokens, where no authority here can issue another.
    only: Option<CapabilityToken>,
    is_renewed: bool,
}

impl Agent {
    /// A client that need not show anything is the demo agent.
    pub(super) fn anonymous(&self) -> Anonymous {
        match &self.only {
            _ if self.is_renewed => Anonymous::Key(self.key.clone()),
            Some(token) => Anonymous::Token(token.clone().into()),
            None => Anonymous::Refused,
        }
    }
}

const FIRST: &str = "token.json";

/// The demo agent with its tokens: those that are there, or new ones when they end soon.
pub(super) async fn ready(io: &mut Io<'_>, runtime: &Runtime, data: &Path) -> Result<Agent> {
    let folder = data.join("demo");
    let key = folder.join("agent.key");
    private_folder(&io.folder.join(&folder)).context("cannot make the demo agent's folder")?;
    let agent = if io.folder.join(&key).exists() {
        io.read_key(&key)?
    } else {
        let agent = Keypair::generate();
        io.write_key(&key, &agent, false)?;
        agent
    };
    let capabilities = runtime.policies.capabilities().now();
    let capabilities =
        if capabilities.is_empty() { vec![every_demo_tool()] } else { capabilities.to_vec() };
    let mut tokens = Vec::new();
    for (number, capability) in (1..).zip(capabilities) {
        let name = if number == 1 { FIRST.to_owned() } else { format!("token-{number}.json") };
        let file = folder.join(name);
        renew(io, runtime, &agent, &file, &capability).await?;
        tokens.push((file, capability.scope));
    }
    let first = folder.join(FIRST);
    let only = io.read_json::<CapabilityToken>(&first, "a capability token").ok();
    let (key, is_renewed) =
        (agent.public_key().clone(), runtime.store.authority().await?.is_some());
    Ok(Agent { key, tokens: Tokens(tokens), only, is_renewed })
}

/// Puts a new token into the file, unless the one in it will do.
async fn renew(
    io: &mut Io<'_>,
    runtime: &Runtime,
    agent: &Keypair,
    file: &Path,
    capability: &DefaultCapability,
) -> Result<()> {
    let store = &runtime.store;
    let authority = store.authority_public().await?;
    if io.folder.join(file).exists() {
        let token = io.read_json::<CapabilityToken>(file, "a capability token");
        let usable = |token: &CapabilityToken| {
            Some(&token.issuer) == authority.as_ref()
                && token.subject == *agent.public_key()
                && is_fresh(token, capability, io.now)
                && !runtime.kernel.is_revoked(token)
        };
        if token.is_ok_and(|token| usable(&token)) {
            return Ok(());
        }
    }
    let Some(authority) = store.authority().await? else {
        io.complain("note", "the authority's key is kept elsewhere: no token for the demo agent");
        return Ok(());
    };
    let token = issue(&authority, agent.public_key(), capability, io.now)?;
    store.shared().remember(&token).await?;
    io.write_file(file, text::json(&token)?.as_bytes(), Access::Private, true)
}

/// Makes a folder that only its owner can enter.
fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Leave to use every demo tool, and to hand that on.
pub(super) fn every_demo_tool() -> DefaultCapability {
    let operations = [Operation::Invoke, Operation::Delegate];
    let grant = ToolGrant::new(SERVER_ID, WILDCARD, &operations);
    let scope = ChioScope { grants: vec![grant], ..ChioScope::default() };
    DefaultCapability { scope, ttl: DEMO_TTL }
}
