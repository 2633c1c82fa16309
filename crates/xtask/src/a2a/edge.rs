//! The edge in front of the demo tools and the one tool of the MCP fixture that speaks of A2A.

use std::fs;

use anyhow::{Context, Result};

use crate::suites::Rig;
use crate::suites::chio::Chio;
use crate::suites::folder::Folder;

/// What is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skills {
    /// The demo tools, and `tck`.
    Several,
    /// Only `tck`, so that a message need not say whom it is for.
    One,
}

/// Who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Every client.
    Anyone,
    /// A client that shows the token that was made for the purpose.
    Token,
}

/// Starts `chio serve` as a configuration says, under the policy that users begin with.
pub(super) fn serve<'a>(
    rig: &'a Rig,
    folder: &'a Folder,
    (skills, door): (Skills, Door),
) -> Result<Chio<'a>> {
    let fixture = folder.link(&rig.fixture)?;
    let demo = if skills == Skills::Several { "  - id: demo\n" } else { "" };
    let anonymous = if door == Door::Anyone { ", anonymous: default" } else { "" };
    let config = format!(
        "store: data
servers:
{demo}  - id: fixture
    command: [{fixture:?}, --only, tck]
listeners:
  http: {{listen: \"127.0.0.1:0\"{anonymous}}}
edges:
  mcp: {{}}
  a2a: {{}}
"
    );
    fs::write(folder.path("chio.yaml"), config).context("no configuration")?;
    Chio::start(rig, folder, ["serve"])
}

/// The token that was made for [`Door::Token`].
pub(super) fn token(folder: &Folder) -> Result<String> {
    let token = fs::read_to_string(folder.path("data/mcp.token")).context("no token")?;
    Ok(token.trim().to_owned())
}

/// Where the cards say that it is.
pub(super) fn url(chio: &Chio<'_>) -> String {
    format!("http://127.0.0.1:{}", chio.port())
}
