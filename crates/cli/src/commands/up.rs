//! `chio up`: the product on its embedded defaults.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use chio_core::capability::{CapabilityToken, ChioScope, Operation, ToolGrant, Validity, WILDCARD};
use chio_core::crypto::{Keypair, PublicKey};
use chio_core::signed::Signed;
use chio_kernel::SystemClock;
use chio_native_edge::Endpoint;
use chio_store::{OpenStore, StoreUrl};
use uuid::Uuid;

use super::native::SOCKET;
use crate::files::Access;
use crate::io::Io;
use crate::outcome::Outcome;
use crate::serving::{Served, Setup, listen, notes_folder, run_server, shutdown_on_signal};
use crate::store_args::DEFAULT_FOLDER;
use crate::text;
use crate::trust::TrustArgs;

/// How long the demo agent's token holds.
const DEMO_TTL: u64 = 24 * 3600;

const HELP: &str = "\
Starts a kernel with the demo tools. State is kept in .chio: the authority that issues tokens, the
kernel's key, the receipt log, and a demo agent with a token for the demo tools. Leave it running
and call it from another terminal; the commands to do so are printed. Calls that need approval wait
until `chio approvals` answers them.

Example:
  chio up --data /tmp/chio-demo";

/// Run a kernel with demo tools, state in .chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Keep state in this folder
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    #[command(flatten)]
    trust: TrustArgs,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<Outcome> {
    let folder = io.folder.join(&args.data);
    let url = StoreUrl::Sqlite(folder.clone());
    let trust = args.trust.read(io, Vec::new())?;
    run_server(async {
        let shutdown = shutdown_on_signal()?;
        let store = OpenStore::open(&url, Arc::new(SystemClock::default()))?;
        // The door is tried before a kernel starts, so that one that is refused leaves no trace.
        let listener = listen(&Endpoint::Unix(folder.join(SOCKET))).await?;
        let served = Served::start(Setup {
            store,
            notes: notes_folder(&url),
            kernel_key: None,
            trust,
            deadline: None,
        })
        .await?;
        let token = demo_token(io, &served, &args.data).await?;
        welcome(io, args, &served, &token)?;
        io.flush()?;
        let (service, until) = (served.native(None), shutdown.clone());
        served.serve(listener.serve(service, shutdown), &until).await?;
        io.say("ended: everything that ran is in the log")
    })?;
    Ok(Outcome::Well)
}

fn welcome(io: &mut Io<'_>, args: &Args, served: &Served, token: &Path) -> Result<()> {
    let data = args.data.display();
    io.field("kernel", served.kernel.public_key())?;
    io.field("state", &data)?;
    io.field("native", format_args!("unix:{}", args.data.join(SOCKET).display()))?;
    for manifest in served.kernel.manifests() {
        let tools: Vec<&str> = manifest.tools.iter().map(|tool| tool.name.as_str()).collect();
        io.field("tools", format_args!("{}: {}", manifest.server_id, tools.join(", ")))?;
    }
    let is_default = args.data == Path::new(DEFAULT_FOLDER);
    let (unix, place) = if is_default {
        (String::new(), String::new())
    } else {
        let socket = args.data.join(SOCKET);
        (format!(" --unix {}", quoted(&socket)), format!(" --data {}", quoted(&args.data)))
    };
    let token = quoted(token);
    io.say("")?;
    io.say("In another terminal:")?;
    for line in [
        format!("  chio native call{unix} --token {token} demo echo '{{\"text\": \"hello\"}}'"),
        format!("  chio receipt list{place}"),
        format!("  chio log audit{place}"),
    ] {
        io.say(line)?;
    }
    io.say("")?;
    io.say("Ctrl-C ends it.")
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The demo agent's token: the one that is there, or a new one when it ends soon.
async fn demo_token(io: &mut Io<'_>, served: &Served, data: &Path) -> Result<PathBuf> {
    let store = &served.store;
    let folder = data.join("demo");
    let (key, file) = (folder.join("agent.key"), folder.join("token.json"));
    private_folder(&io.folder.join(&folder)).context("cannot make the demo agent's folder")?;
    let agent = if io.folder.join(&key).exists() {
        io.read_key(&key)?
    } else {
        let agent = Keypair::generate();
        io.write_key(&key, &agent, false)?;
        agent
    };
    let authority = store.authority_public()?;
    if io.folder.join(&file).exists() {
        let token = io.read_json::<CapabilityToken>(&file, "a capability token");
        let usable = |token: &CapabilityToken| {
            Some(&token.issuer) == authority.as_ref()
                && token.expires_at > io.now + DEMO_TTL / 4
                && !served.kernel.is_revoked(token)
        };
        if token.is_ok_and(|token| usable(&token)) {
            return Ok(file);
        }
    }
    let Some(authority) = store.authority()? else {
        io.complain("note", "the authority's key is kept elsewhere: no token for the demo agent");
        return Ok(file);
    };
    let token = issue(&authority, agent.public_key(), io.now)?;
    store.shared().remember(&token).await?;
    io.write_file(&file, text::json(&token)?.as_bytes(), Access::Private, true)?;
    Ok(file)
}

/// Makes a folder that only its owner can enter.
fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Leave to use every demo tool, and to hand that on.
fn issue(authority: &Keypair, agent: &PublicKey, now: u64) -> Result<CapabilityToken> {
    let operations = [Operation::Invoke, Operation::Delegate];
    let grant = ToolGrant::new(chio_demo::SERVER_ID, WILDCARD, &operations);
    let scope = ChioScope { grants: vec![grant], ..ChioScope::default() };
    let validity = Validity { issued_at: now, expires_at: now + DEMO_TTL };
    let (id, issuer) = (format!("cap-{}", Uuid::now_v7()), authority.public_key().clone());
    let draft = CapabilityToken::draft(id, issuer, agent.clone(), scope, validity);
    Ok(draft.signed(authority)?)
}
