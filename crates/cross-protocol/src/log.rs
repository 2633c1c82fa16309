//! Where edges write what an operator should know.

use std::sync::Arc;

/// Takes lines for the operator. Lines never hold arguments, results or tokens.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    /// A log that hands each line to `sink`.
    pub fn new(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Writes a line.
    pub fn line(&self, line: &str) {
        (self.0)(line);
    }
}

impl Default for Log {
    /// A log that drops every line.
    fn default() -> Self {
        Self::new(|_| ())
    }
}
