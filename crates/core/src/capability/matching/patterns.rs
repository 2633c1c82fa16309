//! A cache of compiled patterns: compiling costs far more than matching.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex::Regex;

/// The most patterns in a cache. A full one is emptied: patterns come from tokens, which are few.
const CAPACITY: usize = 256;

/// Compiled patterns.
#[derive(Debug, Default)]
pub struct Patterns {
    compiled: Mutex<HashMap<String, Arc<Regex>>>,
}

impl Patterns {
    /// The compiled form of a pattern; none when it does not compile or is too large.
    pub(super) fn get(&self, pattern: &str) -> Option<Arc<Regex>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = compiled.get(pattern) {
            return Some(Arc::clone(regex));
        }
        // Compiled under the lock: two callers with one new pattern need it once.
        let regex = Arc::new(Regex::new(pattern).ok()?);
        if compiled.len() >= CAPACITY {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), Arc::clone(&regex));
        Some(regex)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, CAPACITY, Patterns};

    #[test]
    fn a_pattern_is_compiled_once_and_the_set_is_bounded() {
        let patterns = Patterns::default();
        let first = patterns.get("a+").unwrap();
        assert!(Arc::ptr_eq(&first, &patterns.get("a+").unwrap()));
        assert!(patterns.get("(").is_none());
        for number in 0..3 * CAPACITY {
            assert!(patterns.get(&format!("x{number}")).unwrap().is_match(&format!("x{number}")));
            assert!(patterns.compiled.lock().unwrap().len() <= CAPACITY);
        }
    }
}
