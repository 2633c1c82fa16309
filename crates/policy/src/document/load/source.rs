//! Where a document comes from.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use chio_yaml::shown;
use chio_yaml::{MAX_BYTES, Place, Problem};

use crate::document::builtin::{self, Ruleset};

/// What built-in rulesets may be called with.
const PREFIXES: [&str; 2] = ["chio:", "hushspec:"];

/// Where a document comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A file, and its name in messages.
    File { path: PathBuf, shown: String },
    /// A ruleset that comes with the program.
    BuiltIn(&'static Ruleset),
    /// Text that the caller has read.
    Inline { file: String },
}

impl Source {
    /// What a reference means. Files are looked up in `base`; `folder` is the folder, below
    /// `base`, of the document that has the reference.
    pub(super) fn find(reference: &str, base: &Path, folder: &Path) -> Result<Self, String> {
        let built_in = PREFIXES.iter().find_map(|prefix| reference.strip_prefix(prefix));
        if let Some(name) = built_in {
            return builtin::find(name).map(Self::BuiltIn).ok_or_else(|| {
                format!("there is no built-in ruleset `{}`{}", shown(name), builtin::nearest(name))
            });
        }
        if reference.contains("://") {
            return Err("expected a file or a built-in ruleset, found a web address; \
                        save the document as a file and name that"
                .to_owned());
        }
        let relative = tidy(&folder.join(reference));
        let path = base.join(&relative);
        if !reference.contains(['/', '.']) && !path.is_file() {
            return builtin::find(reference).map(Self::BuiltIn).ok_or_else(|| {
                let (name, near) = (shown(reference), builtin::nearest(reference));
                format!("there is neither a file nor a built-in ruleset `{name}`{near}")
            });
        }
        let shown = relative.display().to_string();
        // `.` and the like are tidied away to nothing.
        let shown = if shown.is_empty() { reference.to_owned() } else { shown };
        Ok(Self::File { path, shown })
    }

    /// Its name in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::File { shown, .. } => shown.clone(),
            Self::BuiltIn(ruleset) => format!("chio:{}", ruleset.name),
            Self::Inline { file } => file.clone(),
        }
    }

    /// The file.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::BuiltIn(_) | Self::Inline { .. } => None,
        }
    }

    /// The folder that its references start from, below the base.
    pub(super) fn shown_folder(&self) -> PathBuf {
        match self {
            Self::File { shown, .. } => {
                Path::new(shown).parent().map(Path::to_owned).unwrap_or_default()
            }
            Self::BuiltIn(_) | Self::Inline { .. } => PathBuf::new(),
        }
    }

    /// Whether both are the same document.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { path: one, .. }, Self::File { path: other, .. }) => {
                one == other
                    || matches!((one.canonicalize(), other.canonicalize()),
                        (Ok(one), Ok(other)) if one == other)
            }
            (Self::BuiltIn(one), Self::BuiltIn(other)) => one.name == other.name,
            _ => false,
        }
    }

    /// The text.
    pub(super) fn read(&self) -> Result<String, Unread> {
        let path = match self {
            Self::File { path, .. } => path,
            Self::BuiltIn(ruleset) => return Ok(ruleset.text.to_owned()),
            Self::Inline { .. } => return Ok(String::new()),
        };
        let bytes = bytes_of(path).map_err(|message| Unread { at: None, message })?;
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default());
            let line = text.matches('\n').count() + 1;
            let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let message = "expected UTF-8 text, found bytes that are none".to_owned();
            Unread { at: Some((line, column)), message }
        })
    }
}

/// Why there is no text.
#[derive(Debug)]
pub(super) struct Unread {
    /// Line and column, where it is about what is in the file.
    pub(super) at: Option<(usize, usize)>,
    pub(super) message: String,
}

impl Unread {
    /// The problem, at the file itself.
    pub(super) fn into_problem(self, source: &Source) -> Problem {
        let (line, column) = self.at.unwrap_or((1, 1));
        let place = Place { file: source.shown().into(), line, column };
        Problem { place, message: self.message }
    }
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Without `.` and without names that `..` takes back, so that messages are short.
fn tidy(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::ErrorKind;
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "this file may not be read".to_owned(),
        kind => format!("this file cannot be opened: {kind}"),
    })?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err("expected a file, found a folder".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| format!("this file cannot be read: {}", error.kind()))?;
    if bytes.len() > MAX_BYTES {
        return Err(format!(
            "expected a document of at most {MAX_BYTES} bytes, found a larger one"
        ));
    }
    Ok(bytes)
}
