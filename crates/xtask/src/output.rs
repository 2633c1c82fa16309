//! Lines for the reader: plain text, so that a log of them reads like a terminal.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes a line to standard output.
macro_rules! say {
    ($($line:tt)*) => { $crate::output::line(format_args!($($line)*)) };
}
pub(crate) use say;

/// See [`say`].
pub(crate) fn line(line: Arguments<'_>) {
    // A reader that has gone away (`| head`) is no reason to stop the work.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to standard error.
pub(crate) fn complain(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}
