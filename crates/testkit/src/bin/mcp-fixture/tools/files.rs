//! Tools that touch real files: what a policy has to keep from harm.

use std::fs;
use std::path::Path;

use super::{Effects, Tool, required};
use crate::call::{Stop, text};

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("read_file", "Reads a text file, or all that are below a folder.", |call| {
        let path = Path::new(call.text("path")?);
        let content = if path.is_dir() { Ok(below(path)) } else { fs::read_to_string(path) };
        Ok(text(content.map_err(|error| Stop::Failed(format!("cannot read it: {error}")))?))
    })
    .takes(|| required(&[("path", "string")])),
    Tool::new("write_file", "Writes a text file.", |call| {
        let (path, content) = (call.text("path")?, call.text("content")?);
        let written = fs::write(path, content);
        written.map_err(|error| Stop::Failed(format!("cannot write it: {error}")))?;
        Ok(text(format!("{} bytes were written.", content.len())))
    })
    .takes(|| required(&[("path", "string"), ("content", "string")]))
    .with(Effects::Destroys),
];

/// The content of every text file below a folder.
fn below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let content = |path: std::path::PathBuf| {
        if path.is_dir() { below(&path) } else { fs::read_to_string(&path).unwrap_or_default() }
    };
    entries.map(content).collect::<Vec<_>>().join("\n")
}
