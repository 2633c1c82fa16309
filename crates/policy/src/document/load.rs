//! A policy with everything that it extends, as one document.

mod merge;
mod shape;
mod source;

use std::path::{Path, PathBuf};

use chio_yaml::{Node, Place, Problem, Problems, parse};

pub use shape::TOP_KEYS;
use source::Source;

/// How many documents may extend one another in a row.
pub const MAX_EXTENDS: usize = 8;

/// A policy with everything that it extends.
#[derive(Debug, Clone)]
pub struct Document {
    /// The effective document.
    pub root: Node,
    /// Every file that was read, so that the caller can watch them for changes.
    pub files: Vec<PathBuf>,
    /// The folder of the document itself; none for built-in ones.
    pub folder: Option<PathBuf>,
    /// The document's own name.
    pub name: Option<String>,
    /// What is allowed, but might surprise: what a document removes from the one it extends.
    pub notes: Vec<Problem>,
}

/// Reads a policy: a file, which is looked up in `base`, or a built-in ruleset such as `default` or
/// `chio:default`. A name with neither `/` nor `.` is a file only where there is such a file.
///
/// # Errors
/// Everything that is wrong with it, and with what it extends.
pub fn load(reference: &str, base: &Path) -> Result<Document, Vec<Problem>> {
    let place = Place { file: reference.into(), line: 1, column: 1 };
    let fail = |message| vec![Problem { place, message }];
    let source = Source::find(reference, base, Path::new("")).map_err(fail)?;
    let text = source.read().map_err(|unread| vec![unread.into_problem(&source)])?;
    Loading { base }.layer(&source, &text, &mut Vec::new())
}

/// Reads a policy from text; files that it names are looked up in `base`.
///
/// # Errors
/// Everything that is wrong with it, and with what it extends.
pub fn of_text(text: &str, file: &str, base: &Path) -> Result<Document, Vec<Problem>> {
    of_node(parse(text, file)?, base)
}

/// Makes a policy of a document that was parsed already; files that it names are looked up in
/// `base`.
///
/// # Errors
/// Everything that is wrong with it, and with what it extends.
pub fn of_node(root: Node, base: &Path) -> Result<Document, Vec<Problem>> {
    let source = Source::Inline { file: root.place.file.to_string() };
    let mut chain = vec![source.clone()];
    let mut document = Loading { base }.extended(root, &source, &mut chain)?;
    document.folder = Some(base.to_owned());
    Ok(document)
}

/// One reading of a document and of what it extends.
struct Loading<'a> {
    base: &'a Path,
}

impl Loading<'_> {
    fn layer(
        &self,
        source: &Source,
        text: &str,
        chain: &mut Vec<Source>,
    ) -> Result<Document, Vec<Problem>> {
        let root = parse(text, &source.shown())?;
        chain.push(source.clone());
        let mut document = self.extended(root, source, chain)?;
        document.files.extend(source.path().map(Path::to_owned));
        document.folder = source.path().map(source::folder_of);
        if source.path().is_none() {
            // What the program's own rulesets do to each other is on purpose.
            document.notes.clear();
        }
        Ok(document)
    }

    /// The document over the one that it extends.
    fn extended(
        &self,
        root: Node,
        source: &Source,
        chain: &mut Vec<Source>,
    ) -> Result<Document, Vec<Problem>> {
        let problems = Problems::default();
        let head = shape::check(&root, &problems);
        let below = match head.extends {
            Some((reference, place)) => self.below(reference, place, source, chain, &problems),
            None => None,
        };
        let (name, strategy) = (head.name, head.strategy);
        let (root, files, notes) = match below {
            None => (root, Vec::new(), Vec::new()),
            Some(Ok(below)) => {
                let mut notes = below.notes;
                let root = merge::merge(below.root, root, strategy, &mut notes);
                (root, below.files, notes)
            }
            Some(Err(mut wrong)) => {
                wrong.extend(problems.into_sorted());
                return Err(wrong);
            }
        };
        chain.pop();
        if chain.is_empty() {
            shape::check_enforced(&root, &problems);
        }
        if problems.is_empty() {
            return Ok(Document { root, files, folder: None, name, notes });
        }
        Err(problems.into_sorted())
    }

    /// The document that one extends; none after a problem with the reference itself.
    fn below(
        &self,
        reference: &str,
        place: &Place,
        source: &Source,
        chain: &mut Vec<Source>,
        problems: &Problems,
    ) -> Option<Result<Document, Vec<Problem>>> {
        let found = Source::find(reference, self.base, &source.shown_folder());
        let next = match found {
            Ok(next) => next,
            Err(message) => {
                problems.add(place, format!("`extends`: {message}"));
                return None;
            }
        };
        if let Some(from) = chain.iter().position(|earlier| earlier.is_same(&next)) {
            let names = chain.iter().skip(from).chain([&next]).map(Source::shown);
            let names = names.collect::<Vec<_>>().join(" → ");
            problems.add(place, format!("`extends`: this goes in a circle: {names}"));
            return None;
        }
        if chain.len() > MAX_EXTENDS {
            let message = format!(
                "`extends`: expected at most {MAX_EXTENDS} documents that extend one another, found more"
            );
            problems.add(place, message);
            return None;
        }
        match next.read() {
            Ok(text) => Some(self.layer(&next, &text, chain)),
            Err(unread) if unread.at.is_some() => Some(Err(vec![unread.into_problem(&next)])),
            Err(unread) => {
                let (name, message) = (next.shown(), unread.message);
                problems.add(place, format!("`extends`: `{name}`: {message}"));
                None
            }
        }
    }
}
