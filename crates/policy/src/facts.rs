//! What a call does, derived from its tool and its arguments: once for all guards.
//!
//! A tool is recognised by its name and by the members that its arguments have. Arguments of a
//! recognised action that cannot be read are [`Facts::malformed`]: then the guards of that action
//! deny, since it is unknown what would happen.

mod code;
mod destination;
pub(crate) mod fold;
mod folders;
pub(crate) mod glob;
mod members;
mod names;
pub(crate) mod patch;
mod path;
pub(crate) mod shell;
mod walk;

use chio_kernel::{GuardInput, Spent, Work};
use serde_json::Value;

use members::Class;
use walk::Walk;

/// What kind of thing a call does.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// Reads files or lists folders.
    FileRead,
    /// Writes, moves or deletes files.
    FileWrite,
    /// Applies a patch.
    Patch,
    /// Runs a command line.
    Shell,
    /// Runs code of a programming language.
    Code,
    /// Connects somewhere.
    Network,
    /// Drives a browser.
    Browser,
    /// Asks a database.
    Database,
    /// Anything else.
    #[default]
    Other,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// It is read or listed.
    Read,
    /// It is written, moved or deleted.
    Write,
    /// A patch is applied to it.
    Patch,
}

/// A path that a call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathFact {
    /// What is done to it.
    pub access: Access,
    /// As it was written.
    pub text: String,
    /// In one form: decoded, with `/` between names, and without `.`, `..` and doubled `/`. The home
    /// folder is `~`. A text that may mean several paths has a fact for each.
    pub normal: String,
}

/// A place in the network that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationFact {
    /// As it was written.
    pub text: String,
    /// The host in one form: lower case, without a final dot, addresses as they are parsed by
    /// browsers, IPv6 without brackets; `None` when the host is unknown.
    pub host: Option<String>,
    /// The port, if it is given or follows from the scheme.
    pub port: Option<u16>,
    /// The scheme, in lower case.
    pub scheme: Option<String>,
}

/// What a call does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What kind of thing.
    pub action: Action,
    /// The paths that it names.
    pub paths: Vec<PathFact>,
    /// The places that it names.
    pub destinations: Vec<DestinationFact>,
    /// The command lines that it has run.
    pub commands: Vec<String>,
    /// The patches that it applies.
    pub patches: Vec<String>,
    /// The code that it has run, and its language if that is known.
    pub code: Vec<(Option<String>, String)>,
    /// Why the arguments of this action cannot be read. Never an argument's value.
    pub malformed: Option<String>,
    /// The folders that relative paths may begin in, besides that of the tool server.
    pub(crate) folders: Vec<String>,
    /// Texts that may be paths to the tool, though nothing says so.
    pub(crate) named: Vec<String>,
    /// Readers of URLs take a destination for different places.
    pub(crate) is_ambiguous: bool,
    /// There is more in the arguments than was looked at.
    pub(crate) is_incomplete: bool,
    /// The command lines, read; in the order of `commands`.
    pub(crate) scripts: Vec<Result<shell::Script, shell::Unreadable>>,
}

/// Whether a list of words, which is text with blanks between them, has this word.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Whether a tool takes away, or moves elsewhere, what it names with all that is in it.
pub(crate) fn removes(tool_name: &str) -> bool {
    names::removes(tool_name)
}
pub(crate) use path::percent_decoded;

/// Every form that a path may be meant as; none where it cannot be read.
pub(crate) fn normal_paths(text: &str) -> Vec<String> {
    path::forms(text).unwrap_or_default()
}

impl Facts {
    /// What a call of this tool with these arguments does.
    ///
    /// # Errors
    /// When it takes more work than there is.
    pub fn of(tool_name: &str, arguments: &Value, work: &Work) -> Result<Self, Spent> {
        Self::of_request(tool_name, arguments, None, work)
    }

    /// As [`Facts::of`], with what the request says besides its arguments: a server may heed it.
    fn of_request(
        tool_name: &str,
        arguments: &Value,
        meta: Option<&Value>,
        work: &Work,
    ) -> Result<Self, Spent> {
        let tool = names::recognised(tool_name);
        let mut walk = Walk::new(tool, work);
        walk.value(Class::Other, arguments, 0);
        if let Some(meta) = meta {
            walk.value(Class::Other, meta, 0);
        }
        if names::reads_library(tool_name) {
            walk.only_networks();
        }
        let facts = walk.finished(arguments);
        if work.is_spent() { Err(Spent) } else { Ok(facts) }
    }

    /// Whether there is nothing in it that could be a path, a place or a command.
    pub(crate) const fn names_nothing(&self) -> bool {
        let lists = self.paths.is_empty() && self.named.is_empty() && self.patches.is_empty();
        let places = self.destinations.is_empty() && self.commands.is_empty();
        lists && places && !self.is_incomplete
    }

    /// What the call that a guard is asked about does.
    ///
    /// # Errors
    /// When it takes more work than the call may cause, or the guards of another crate have put
    /// something else in their place.
    pub fn of_call<'a>(input: &GuardInput<'a>) -> Result<&'a Self, String> {
        let make = || Self::of_request(input.tool_name, input.arguments, input.meta, input.work);
        let made = input.memo.get_or_make(make).map_err(|spent| spent.to_string())?;
        made.ok_or_else(|| "what the call does was worked out otherwise".to_owned())
    }
}

#[cfg(test)]
mod tests;
