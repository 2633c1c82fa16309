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
use crate::text::quoted;

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

/// The options by which a command finds a store in any folder; none for one in memory, which no
/// other process has.
pub(crate) fn options_anywhere(location: &Location) -> Option<String> {
    let (folder, data) = (location.store().folder()?, location.data()?);
    let shown = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        quoted(&path.display().to_string())
    };
    let data = format!("--data {}", shown(data));
    if location.data() == Some(folder) {
        return Some(data);
    }
    Some(format!("--store sqlite:{} {data}", shown(folder)))
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use chio_store::Location;

    use super::options_anywhere;

    #[test]
    fn a_command_finds_the_store_in_any_folder() {
        for (store, data, expected) in [
            (None, None, Some("--data /w/.chio")),
            (None, Some("my data"), Some("--data '/w/my data'")),
            (Some("sqlite:s"), None, Some("--data /w/s")),
            (Some("sqlite:/s"), Some("d"), Some("--store sqlite:/s --data /w/d")),
            (Some("memory:"), None, None),
            (Some("memory:"), Some("d"), None),
        ] {
            let url = store.map(|store| store.parse().unwrap());
            let location = Location::new(url, data.map(PathBuf::from), Path::new(".chio"));
            let options = options_anywhere(&location.within(Path::new("/w")));
            assert_eq!(options.as_deref(), expected, "{store:?} {data:?}");
        }
    }
}
