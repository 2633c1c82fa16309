//! Files in which secrets may stand.

use chio_yaml::Section;

use crate::facts::Facts;
use crate::facts::glob::{Globs, Reading, problem};

/// Globs of paths; none where a document names none.
#[derive(Debug, Default)]
pub(super) struct Skip(Option<Globs>);

impl Skip {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let mut globs = Vec::new();
        for item in section.texts("skip_paths") {
            match problem(item.text) {
                Some(why) => section.problem_at(
                    item.place,
                    &format!("expected a glob, found something else: {why}"),
                ),
                None => globs.push(item.text.to_owned()),
            }
        }
        if globs.is_empty() {
            return Self::default();
        }
        match Globs::new(&globs, Reading::Exact) {
            Ok(globs) => Self(Some(globs)),
            Err(why) => {
                section
                    .problem("skip_paths", &format!("expected globs, found something else: {why}"));
                Self::default()
            }
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a call is about such files alone.
    pub(super) fn covers(&self, facts: &Facts) -> bool {
        let Some(globs) = &self.0 else { return false };
        !facts.paths.is_empty() && facts.paths.iter().all(|path| globs.matches(&path.normal))
    }
}
