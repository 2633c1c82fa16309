//! Tools that touch real files: what a policy has to keep from harm.

use std::fs;

use super::{Effects, Tool, required};
use crate::call::{Stop, text};

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("read_file", "Reads a text file.", |call| {
        let content = fs::read_to_string(call.text("path")?);
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
