//! How this program is called.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::text;

/// Its name on the PATH.
const NAME: &str = "chio";

/// Where this program is.
pub(crate) fn path() -> Result<PathBuf> {
    env::current_exe().context("cannot tell where this program is")
}

/// What to type to call this very program: its name where the PATH leads to it, else where it is.
pub(crate) fn typed() -> String {
    let (Ok(own), Ok(here)) = (path(), env::current_dir()) else { return NAME.to_owned() };
    let named = on_path(NAME).is_some_and(|found| is_same(&found, &own));
    if named {
        return NAME.to_owned();
    }
    let near = own.strip_prefix(&here).unwrap_or(&own);
    text::quoted(&near.display().to_string())
}

/// The program of this name: one with a folder in it as it is, another as the PATH has it.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    const RUN: u32 = 0o111;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & RUN != 0)
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
