//! Tests that cannot run here say so: `cargo xtask test` lists them by name.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Names the file to which a test that cannot run appends a line `name: reason`.
const SKIPS: &str = "CHIO_TEST_SKIPS";

/// Notes a test that could not run, where the runner asked for it.
///
/// # Panics
/// When the note cannot be written.
pub fn skip(name: &str, reason: &str) {
    if let Some(path) = std::env::var_os(SKIPS) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a file");
        // One write, so that the lines of two tests do not mix.
        file.write_all(format!("{name}: {reason}\n").as_bytes()).expect("a note");
    }
}
