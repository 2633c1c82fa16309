//! Working folders: what the relative paths of a call may mean, and the names that a command line
//! gives to folders before it uses them.

use std::collections::HashSet;

use chio_kernel::Work;

use super::PathFact;
use super::path;

/// How many folders a call may name.
const MAX_FOLDERS: usize = 64;
/// How many paths a call may name in all, against all of its folders.
const MAX_PATHS: usize = 4096;

/// The folders that a call names.
#[derive(Debug, Default)]
pub(super) struct Folders {
    /// Those of arguments such as `cwd`.
    pub(super) given: Vec<String>,
    /// Those that a command line changes to, in order.
    pub(super) entered: Vec<String>,
    /// Other names that a command line gives to something: the name, and what it stands for.
    pub(super) links: Vec<(String, String)>,
}

impl Folders {
    /// What paths may mean besides what they say: below each of the folders, and behind the other
    /// names. None when that is more than can be looked at.
    pub(super) fn meant(
        &self,
        paths: &[PathFact],
        folders: &[String],
        work: &Work,
    ) -> Option<Vec<PathFact>> {
        if folders.is_empty() && self.links.is_empty() {
            return Some(Vec::new());
        }
        let mut known: HashSet<PathFact> = paths.iter().cloned().collect();
        let mut meant: Vec<PathFact> = Vec::new();
        let mut add = |meant: &mut Vec<PathFact>, fact: &PathFact, text: &str| {
            // It is read in several forms.
            work.charge_each(text.len(), 8).ok()?;
            for normal in path::forms(text).unwrap_or_default() {
                let fact = PathFact { access: fact.access, text: fact.text.clone(), normal };
                if known.insert(fact.clone()) {
                    meant.push(fact);
                }
            }
            (meant.len() <= MAX_PATHS).then_some(())
        };
        for folder in folders {
            for fact in paths.iter().filter(|fact| is_relative(&fact.normal)) {
                add(&mut meant, fact, &format!("{folder}/{}", fact.normal))?;
            }
        }
        // Twice, for a name that stands for another one.
        let rounds = if self.links.is_empty() { 0 } else { 2 };
        for _ in 0..rounds {
            let known: Vec<PathFact> = paths.iter().chain(&meant).cloned().collect();
            for (name, target) in &self.links {
                work.charge_each(known.len(), 1).ok()?;
                for fact in &known {
                    let rest = fact.normal.strip_prefix(name.as_str());
                    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
                    if let Some(rest) = rest {
                        add(&mut meant, fact, &format!("{target}{rest}"))?;
                    }
                }
            }
        }
        Some(meant)
    }

    /// Every folder that a relative path may begin in. None when there are too many.
    pub(super) fn all(&self) -> Option<Vec<String>> {
        let mut all: Vec<String> = self.given.clone();
        for entered in &self.entered {
            let below: Vec<String> = if is_relative(entered) {
                all.iter().map(|folder| format!("{folder}/{entered}")).collect()
            } else {
                Vec::new()
            };
            for folder in below.into_iter().chain([entered.clone()]) {
                if !all.contains(&folder) {
                    all.push(folder);
                }
            }
            if all.len() > MAX_FOLDERS {
                return None;
            }
        }
        Some(all)
    }

    /// Notes that a command gives a name to something: to this, or in a folder of this name.
    pub(super) fn link(&mut self, target: &str, name: &str) {
        let base = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        for name in [name.to_owned(), format!("{}/{base}", name.trim_end_matches('/'))] {
            for form in path::forms(&name).unwrap_or_default() {
                if self.links.len() < MAX_FOLDERS && !target.is_empty() {
                    self.links.push((form, target.to_owned()));
                }
            }
        }
    }
}

fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '~', '$']) && path.as_bytes().get(1) != Some(&b':')
}
