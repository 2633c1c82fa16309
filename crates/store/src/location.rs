//! Where a store is and which data directory goes with it.

use std::path::{Path, PathBuf};

use chio_kernel::store::StoreResult;

use crate::StoreUrl;
use crate::data_directory::DataDirectory;
use crate::keys::Keys as _;

/// A store, and the data directory with its keys and everything else that belongs to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    store: StoreUrl,
    data: Option<PathBuf>,
}

impl Location {
    /// What was named, and for the rest: a data directory alone has a SQLite store in it, a store
    /// alone the data directory of its URL, and without either both are in `default`.
    pub fn new(store: Option<StoreUrl>, data: Option<PathBuf>, default: &Path) -> Self {
        let folder = || data.clone().unwrap_or_else(|| default.to_owned());
        let store = store.unwrap_or_else(|| StoreUrl::Sqlite(folder()));
        let data = data.or_else(|| store.folder().map(Path::to_owned));
        Self { store, data }
    }

    /// The same, with relative paths that begin in this folder.
    #[must_use]
    pub fn within(self, folder: &Path) -> Self {
        Self { store: self.store.within(folder), data: self.data.map(|data| folder.join(data)) }
    }

    /// The store.
    pub const fn store(&self) -> &StoreUrl {
        &self.store
    }

    /// Refuses keys that are left of a store where there is none any more. Reads files.
    ///
    /// # Errors
    /// When there are such keys, or the data directory cannot be read.
    pub fn check_unused(&self) -> StoreResult<()> {
        let data = self.data.as_ref().filter(|_| self.store != StoreUrl::Memory);
        data.map_or(Ok(()), |data| DataDirectory::at(data)?.check_unused())
    }

    /// The data directory; a store in memory can do without.
    pub fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }
}

impl From<&StoreUrl> for Location {
    fn from(store: &StoreUrl) -> Self {
        Self { store: store.clone(), data: store.folder().map(Path::to_owned) }
    }
}

impl From<&Self> for Location {
    fn from(location: &Self) -> Self {
        location.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Location;

    #[test]
    fn what_is_not_named_follows_from_what_is() {
        for (store, data, expected_store, expected_data) in [
            (None, None, "sqlite:/w/.chio", Some("/w/.chio")),
            (None, Some("d"), "sqlite:/w/d", Some("/w/d")),
            (Some("sqlite:s"), None, "sqlite:/w/s", Some("/w/s")),
            (Some("sqlite:/s"), Some("d"), "sqlite:/s", Some("/w/d")),
            (Some("memory:"), None, "memory:", None),
            (Some("memory:"), Some("d"), "memory:", Some("/w/d")),
        ] {
            let url = store.map(|store| store.parse().unwrap());
            let location = Location::new(url, data.map(PathBuf::from), Path::new(".chio"));
            let location = location.within(Path::new("/w"));
            assert_eq!(location.store().to_string(), expected_store, "{store:?} {data:?}");
            assert_eq!(location.data(), expected_data.map(Path::new), "{store:?} {data:?}");
        }
    }
}
