//! The files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders of things that are made, not written. Hidden ones are left out as well.
const MADE: [&str; 2] = ["target", "node_modules"];

/// A text file, by its path from the root.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Where cargo builds; it takes a relative folder from where it runs, which for our steps is the root.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target)
}

/// A binary that was built with the tests.
pub(crate) fn built(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

/// The text files with a wanted path, in order, at or below those of `places` that exist.
pub(crate) fn texts(
    root: &Path,
    places: &[&str],
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Text>> {
    let mut paths = Vec::new();
    for place in places {
        collect(root, &root.join(place), &mut paths)?;
    }
    paths.sort();
    paths.retain(|path| wanted(path));
    let mut texts = Vec::new();
    for path in paths {
        let bytes = fs::read(root.join(&path)).with_context(|| format!("cannot read `{path}`"))?;
        // What is not UTF-8 is not text.
        if let Ok(content) = String::from_utf8(bytes) {
            texts.push(Text { path, content });
        }
    }
    Ok(texts)
}

fn collect(root: &Path, place: &Path, paths: &mut Vec<String>) -> Result<()> {
    if place.is_file() {
        let path = place.strip_prefix(root)?.to_string_lossy().into_owned();
        paths.push(path);
        return Ok(());
    }
    if !place.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(place).with_context(|| format!("cannot list {place:?}"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let made = name.starts_with('.') || MADE.contains(&name.as_str());
        if !made && !entry.file_type()?.is_symlink() {
            collect(root, &entry.path(), paths)?;
        }
    }
    Ok(())
}

/// Whether a path is that of a test: in a folder `tests`, or named `tests.rs`.
#[cfg(test)]
pub(crate) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}
