//! What is worked out once for each tool, in a bounded cache.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

/// How many tools are remembered.
pub(crate) const MAX_TOOLS: usize = 4096;

/// Values by server, then by tool.
#[derive(Debug)]
pub(crate) struct ToolCache<T>(RwLock<HashMap<String, HashMap<String, Arc<T>>>>);

impl<T> ToolCache<T> {
    pub(crate) fn new() -> Self {
        Self(RwLock::default())
    }

    /// The value of a tool: the one that is cached if it is current, else a new one.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get_or_make<E>(
        &self,
        server: &str,
        tool: &str,
        is_current: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        {
            let tools = self.0.read();
            let cached = tools.get(server).and_then(|tools| tools.get(tool));
            if let Some(cached) = cached.filter(|cached| is_current(cached)) {
                return Ok(Arc::clone(cached));
            }
        }
        let made = Arc::new(make()?);
        let mut tools = self.0.write();
        // Tools come and go with their servers; to forget all of them now and then is enough.
        if tools.values().map(HashMap::len).sum::<usize>() >= MAX_TOOLS {
            tools.clear();
        }
        tools.entry(server.to_owned()).or_default().insert(tool.to_owned(), Arc::clone(&made));
        Ok(made)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.read().values().map(HashMap::len).sum()
    }
}
