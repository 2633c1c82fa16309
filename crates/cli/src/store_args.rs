//! Which store, and which data directory, a command works on.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use chio_kernel::SystemClock;
use chio_kernel::mark::Regression;
use chio_kernel::store::StoreError;
use chio_store::{Location, OpenStore, StoreUrl};

use crate::io::Io;
use crate::outcome::Refused;

/// Where state is kept when the operator does not say.
pub(crate) use chio_policy::own::DEFAULT_FOLDER;

/// Which store a command works on.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct StoreArgs {
    /// The store: `sqlite:FOLDER` or `memory:` [default: in the data directory]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The data directory, with keys, sockets and tokens [default: the folder of --store, or .chio]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl StoreArgs {
    /// Whether a store was named.
    pub(crate) const fn is_given(&self) -> bool {
        self.store.is_some() || self.data.is_some()
    }

    /// Where the store and its data directory are.
    pub(crate) fn location(&self, io: &Io<'_>) -> Result<Location> {
        let url = self.store.as_ref().map(|url| url.parse::<StoreUrl>()).transpose();
        let url = url.context("cannot take --store")?;
        Ok(Location::new(url, self.data.clone(), Path::new(DEFAULT_FOLDER)).within(io.folder))
    }

    /// Opens a store that must exist.
    pub(crate) async fn open_existing(&self, io: &Io<'_>) -> Result<OpenStore> {
        let clock = Arc::new(SystemClock::default());
        let opened = OpenStore::open_existing(self.location(io)?, clock).await;
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

/// Says which marks could not be raised.
pub(crate) fn complain_of_marks(io: &mut Io<'_>, unreadable: &[Regression]) {
    for unread in unreadable {
        io.complain(
            "warning",
            format_args!("{unread}; it stays as it is, and kernels do not start"),
        );
    }
}

/// What a store refuses was read and refused; what it cannot do was not run.
pub(crate) fn refused(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Refused(message) => Refused::new(message).into(),
        other => other.into(),
    }
}
