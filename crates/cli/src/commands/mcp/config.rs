//! `chio mcp config`: what a client has to be told to start a server through Chio.

mod client;
mod merge;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::client::Client;
use crate::edge_args::VersionArgs;
use crate::files::shown;
use crate::io::Io;
use crate::policies::is_built_in;
use crate::store_args::DEFAULT_FOLDER;
use crate::{program, server_name};

const HELP: &str = "\
Prints the configuration of an MCP client that starts COMMAND through `chio mcp serve`. This program,
the data directory, a policy file, and every path of COMMAND are named whole, because clients start in
folders of their own. Where the configuration belongs is told on standard error; a client that has
other servers already gets the member that stands inside.

With --write, the configuration is put into the client's own file, or into the one that is named:
everything else there stays as it is written, comments too. A server of the same name that was started
directly is started through Chio from then on; --undo puts it back, and takes out what was added.

Examples:
  chio mcp config --client cursor -- npx -y @modelcontextprotocol/server-filesystem .
  chio mcp config --client codex --write -- uvx mcp-server-git
  chio mcp config --client codex --undo -- uvx mcp-server-git
  chio mcp config --client vscode --policy policy.yaml -- ./server.py > .vscode/mcp.json";

/// Print the configuration of a client that starts a server through Chio
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Whose configuration
    #[arg(long, value_enum)]
    client: Client,
    /// What the client calls the server [default: by the command]
    #[arg(long, value_parser = server_name::check)]
    name: Option<String>,
    /// The data directory
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    /// The policy that judges calls: a file, or a built-in one [default: default]
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
    /// Put it into this file [default without a value: the client's own]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    write: Option<Option<PathBuf>>,
    /// Take it out of this file again [default without a value: the client's own]
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "write")]
    undo: Option<Option<PathBuf>>,
    /// Print JSON about what was changed
    #[arg(long)]
    json: bool,
    /// The command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Result<()> {
    let command = &args.command;
    let name = match &args.name {
        Some(name) => name.clone(),
        None if command.is_empty() => {
            bail!("expected the COMMAND that starts the server after `--`")
        }
        None => server_name::of_command(command),
    };
    if let Some(file) = &args.undo {
        let done = merge::undo(io, args.client, &args.file(io, file.as_deref())?, &name)?;
        return done.tell(io, args.json);
    }
    if command.is_empty() {
        bail!("expected the COMMAND that starts the server after `--`");
    }
    let server = args.server(io, &name)?;
    match &args.write {
        Some(file) => {
            let file = args.file(io, file.as_deref())?;
            merge::write(io, args.client, &file, (&name, &server))?.tell(io, args.json)
        }
        None => {
            io.bytes(args.client.document(&name, &server)?.as_bytes())?;
            io.complain("belongs into", args.client.belongs());
            Ok(())
        }
    }
}

impl Args {
    /// How the client starts the server.
    fn server(&self, io: &Io<'_>, name: &str) -> Result<Value> {
        let mut words = vec!["mcp".to_owned(), "serve".to_owned()];
        words.extend(["--data".to_owned(), text_of(&whole(io, &self.data)?)?]);
        if let Some(policy) = &self.policy {
            let policy = if is_built_in(policy) && !io.folder.join(policy).exists() {
                policy.clone()
            } else {
                text_of(&whole(io, Path::new(policy))?)?
            };
            words.extend(["--policy".to_owned(), policy]);
        }
        for version in self.version.named() {
            words.extend(["--protocol-version".to_owned(), version.clone()]);
        }
        if self.name.is_some() {
            words.extend(["--server-id".to_owned(), name.to_owned()]);
        }
        words.push("--".to_owned());
        for word in &self.command {
            words.push(whole_word(io, word)?);
        }
        Ok(json!({"command": text_of(&program::path()?)?, "args": words}))
    }

    /// The file that is changed.
    fn file(&self, io: &Io<'_>, named: Option<&Path>) -> Result<PathBuf> {
        match named {
            Some(file) => Ok(io.folder.join(file)),
            None => self.client.file(io).with_context(|| {
                format!("expected the file with --write or --undo: {}", self.client.belongs())
            }),
        }
    }
}

/// A word of a command with its path from the root on, where it is a path: one that begins in this
/// folder, or names what is there. So is the value of an option.
fn whole_word(io: &Io<'_>, word: &str) -> Result<String> {
    if let Some((option, value)) = word.split_once('=')
        && option.starts_with('-')
    {
        return Ok(format!("{option}={}", whole_word(io, value)?));
    }
    let begins_here =
        matches!(word, "." | "..") || word.starts_with("./") || word.starts_with("../");
    let is_there = || word.contains(['/', '.']) && io.folder.join(word).exists();
    let is_path = !word.starts_with(['-', '/']) && (begins_here || is_there());
    if is_path { text_of(&whole(io, Path::new(word))?) } else { Ok(word.to_owned()) }
}

/// A path from the root on.
fn whole(io: &Io<'_>, path: &Path) -> Result<PathBuf> {
    let path = io.folder.join(path);
    std::path::absolute(&path).with_context(|| format!("cannot tell where {} is", shown(&path)))
}

fn text_of(path: &Path) -> Result<String> {
    let text = path.to_str().context("expected a path of Unicode letters, found another")?;
    Ok(text.to_owned())
}
