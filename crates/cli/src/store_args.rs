//! Which store a command works on.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use chio_kernel::SystemClock;
use chio_kernel::store::StoreError;
use chio_store::{OpenStore, StoreUrl};

use crate::io::Io;
use crate::outcome::Refused;

/// Where state is kept when the operator does not say.
pub(crate) const DEFAULT_FOLDER: &str = ".chio";

/// Which store a command works on.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// The store: `sqlite:FOLDER` or `memory:` [default: sqlite:.chio]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The folder of the store; short for --store sqlite:DIR
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    data: Option<PathBuf>,
}

impl StoreArgs {
    /// Whether a store was named.
    pub(crate) const fn is_given(&self) -> bool {
        self.store.is_some() || self.data.is_some()
    }

    /// The store's address.
    pub(crate) fn url(&self, io: &Io<'_>) -> Result<StoreUrl> {
        let url = match (&self.store, &self.data) {
            (Some(url), _) => url.parse().context("cannot take --store")?,
            (None, Some(folder)) => StoreUrl::Sqlite(folder.clone()),
            (None, None) => StoreUrl::Sqlite(PathBuf::from(DEFAULT_FOLDER)),
        };
        Ok(match url {
            StoreUrl::Sqlite(folder) => StoreUrl::Sqlite(io.folder.join(folder)),
            url => url,
        })
    }

    /// Opens a store that must exist.
    pub(crate) fn open_existing(&self, io: &Io<'_>) -> Result<OpenStore> {
        let opened = OpenStore::open_existing(&self.url(io)?, Arc::new(SystemClock::default()));
        if self.is_given() {
            return Ok(opened?);
        }
        opened.map_err(|error| match error {
            StoreError::Refused(problem) => {
                anyhow!("{problem}: `chio up` makes one here, --data or --store names another")
            }
            other => other.into(),
        })
    }
}

/// Runs a command's questions to a store to their end.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(future)
}

/// What a store refuses was read and refused; what it cannot do was not run.
pub(crate) fn refused(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Refused(message) => Refused::new(message).into(),
        other => other.into(),
    }
}

/// The data directory of a store, where it has one.
pub(crate) fn data_of(store: &StoreUrl) -> Option<&Path> {
    match store {
        StoreUrl::Sqlite(folder) => Some(folder),
        StoreUrl::Memory => None,
    }
}
