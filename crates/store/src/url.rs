//! Where a store is, as configuration and commands say it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chio_kernel::store::StoreError;

const MEMORY: &str = "memory:";
const SQLITE: &str = "sqlite:";

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// In this process, gone with it: `memory:`.
    Memory,
    /// In a folder that holds databases: `sqlite:FOLDER`.
    Sqlite(PathBuf),
}

impl StoreUrl {
    /// The same, with a relative path that begins in this folder.
    pub(crate) fn within(self, folder: &Path) -> Self {
        match self {
            Self::Memory => Self::Memory,
            Self::Sqlite(path) => Self::Sqlite(folder.join(path)),
        }
    }

    /// The folder that it is in, which is its data directory when none is named.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Sqlite(folder) => Some(folder),
        }
    }

    /// Why there is no store to open yet, if so.
    pub fn absence(&self) -> Option<&'static str> {
        match self {
            Self::Memory => Some("in memory: everything is gone when it ends"),
            Self::Sqlite(folder) if folder.try_exists().is_ok_and(|is_there| !is_there) => {
                Some("there is none yet; the first start makes it")
            }
            Self::Sqlite(_) => None,
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        if text == MEMORY {
            return Ok(Self::Memory);
        }
        let Some(folder) = text.strip_prefix(SQLITE) else {
            return Err(StoreError::Refused(format!(
                "expected `memory:` or `sqlite:FOLDER` as store, found `{text}`"
            )));
        };
        // `sqlite://data` would name a folder at the root, which the operator does not mean by it.
        if folder.is_empty() || folder.starts_with("//") {
            return Err(StoreError::Refused(format!(
                "expected a folder right after `sqlite:`, as in `sqlite:data`, found `{text}`"
            )));
        }
        Ok(Self::Sqlite(PathBuf::from(folder)))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str(MEMORY),
            Self::Sqlite(folder) => write!(f, "{SQLITE}{}", folder.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StoreUrl;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["memory:", "sqlite:data", "sqlite:../a b/c", "sqlite:/var/lib/chio"] {
            assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_was_expected() {
        for text in ["", "memory", "memory:x", "postgres://a", "data", "SQLITE:x"] {
            let message = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(message.contains("`memory:` or `sqlite:FOLDER`"), "{message}");
            assert!(message.contains(&format!("found `{text}`")), "{message}");
        }
        for text in ["sqlite:", "sqlite://data", "sqlite:///data"] {
            let message = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(message.contains("folder right after `sqlite:`"), "{message}");
        }
    }
}
