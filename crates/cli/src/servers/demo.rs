//! The demo tools, in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use chio_demo::{DemoOptions, DemoServer, SERVER_ID};

use super::{Connection, ServerContext, ServerKind, ToolServer};
use crate::health::Check;

/// The folder of its notes, below the data directory.
const NOTES: &str = "notes";

pub(super) const KIND: ServerKind = ServerKind {
    keys: &[],
    is: |section| {
        !section.has("command") && section.text("id").is_some_and(|it| it.text == SERVER_ID)
    },
    read: |_, paths| Some(server(paths.data)),
};

#[derive(Debug)]
struct Demo {
    /// In memory when absent.
    notes: Option<PathBuf>,
}

/// The demo tools, with their notes in this data directory.
pub(crate) fn server(data: Option<&Path>) -> Arc<dyn ToolServer> {
    Arc::new(Demo { notes: data.map(|data| data.join(NOTES)) })
}

#[async_trait]
impl ToolServer for Demo {
    fn id(&self) -> &str {
        SERVER_ID
    }

    async fn start(&self, context: ServerContext) -> Result<Connection> {
        let ServerContext { public_key, clock, .. } = context;
        let demo = DemoServer::new(DemoOptions { public_key, clock, notes: self.notes.clone() });
        Ok(Box::new(demo.context("cannot keep the demo server's notes")?))
    }

    async fn check(&self) -> Check {
        Check::fine(format!("server {SERVER_ID}"), "the demo tools, which are built in")
    }
}
