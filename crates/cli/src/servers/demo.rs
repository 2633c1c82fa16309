//! The demo tools, in this process.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use chio_demo::{DemoOptions, DemoServer, SERVER_ID};
use chio_store::StoreUrl;

use super::{Connection, ServerContext, ServerKind, ToolServer};
use crate::health::Check;
use crate::store_args::data_of;

/// The folder of its notes, below the store's.
const NOTES: &str = "notes";

pub(super) const KIND: ServerKind = ServerKind {
    keys: &[],
    is: |section| {
        !section.has("command") && section.text("id").is_some_and(|it| it.text == SERVER_ID)
    },
    read: |_, paths| Some(server(paths.store)),
};

#[derive(Debug)]
struct Demo {
    /// In memory when absent.
    notes: Option<PathBuf>,
}

/// The demo tools, with their notes beside this store.
pub(crate) fn server(store: &StoreUrl) -> Arc<dyn ToolServer> {
    Arc::new(Demo { notes: data_of(store).map(|data| data.join(NOTES)) })
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
