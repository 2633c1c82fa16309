//! Command lines, read as a shell would read them: without the quotes, escapes, variables and
//! wrappers that hide what is run.
//!
//! This is not a shell. It follows what can be followed without running anything, and keeps a mark
//! where something is only known when it runs. A text that no shell could read is an error.

mod expand;
mod inner;
mod named;
mod reader;
mod word;

use std::collections::BTreeMap;

use chio_kernel::{Spent, Work};

pub(crate) use inner::{code_of, is_shell};
pub(crate) use word::Word;

use super::Access;
use super::fold::folded;

/// How long a command line may be, in bytes.
const MAX_COMMAND: usize = 1 << 20;
/// How many commands are inspected.
const MAX_COMMANDS: usize = 4096;
/// What it costs to begin to read a text, in steps.
const READING: usize = 32;
/// What one source of a value costs, in steps: it takes memory.
const SOURCE: usize = 64;
/// How deep commands may be nested in each other.
const MAX_DEPTH: usize = 24;

/// Why a command line cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// A quote, a bracket or a substitution has no end.
    Unbalanced,
    /// It has too many parts, or they are nested too deep.
    TooMuch,
}

impl From<Spent> for Unreadable {
    fn from(_: Spent) -> Self {
        Self::TooMuch
    }
}

impl Unreadable {
    /// Why, without the command.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Unbalanced => "a quote or a substitution in it has no end",
            Self::TooMuch => "it is too long or nested too deep",
        }
    }
}

/// A command with its words, as it would be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// The words, the name of the command first.
    pub(crate) words: Vec<Word>,
    /// Where it reads from and writes to, and whether it writes.
    pub(crate) redirects: Vec<(bool, Word)>,
    /// The number of its pipeline.
    pub(crate) pipeline: usize,
    /// It runs in the background.
    pub(crate) background: bool,
    /// The commands whose output its words are made of.
    pub(crate) sources: Vec<String>,
    /// What it gets to read, where the line says it.
    pub(crate) fed: Option<String>,
}

impl Simple {
    /// The name of the command, without its folder, in lower case.
    pub(crate) fn name(&self) -> String {
        self.words.first().map(Word::command_name).unwrap_or_default()
    }

    /// The texts of the words behind the name.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    /// Whether one of the words behind the name is one of these.
    pub(crate) fn has_any(&self, wanted: &[&str]) -> bool {
        self.arguments().any(|text| wanted.contains(&text))
    }

    /// The targets of the redirects that write.
    pub(crate) fn written(&self) -> impl Iterator<Item = &str> {
        let writing = self.redirects.iter().filter(|(writes, _)| *writes);
        writing.map(|(_, target)| target.text.as_str())
    }

    /// How long it is, in bytes.
    pub(crate) fn size(&self) -> usize {
        let words = self.words.iter().chain(self.redirects.iter().map(|(_, target)| target));
        let words: usize = words.map(|word| word.text.len() + 8).sum();
        words + self.sources.len() * SOURCE + self.fed.as_ref().map_or(0, String::len)
    }

    /// The words with one space between them, and where it writes.
    pub(crate) fn line(&self) -> String {
        let mut line = self.name();
        for text in self.arguments() {
            line.push(' ');
            line.push_str(text);
        }
        for (writes, target) in &self.redirects {
            line.push_str(if *writes { " > " } else { " < " });
            line.push_str(&target.text);
        }
        line
    }
}

/// What a command writes by copying or moving it into a folder.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) into: String,
    /// The names that it has there.
    pub(crate) names: Vec<String>,
    /// They may be folders, written with all that is in them.
    pub(crate) whole: bool,
}

/// A command line that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// Every command, also those within others.
    pub(crate) commands: Vec<Simple>,
    /// The functions that it defines.
    pub(crate) functions: Vec<String>,
    /// The text as a reader sees it.
    pub(crate) seen: String,
}

impl Script {
    /// The paths that it names.
    pub(crate) fn paths(&self) -> Vec<(String, Access)> {
        let found = self.commands.iter().flat_map(|command| named::found(command, self));
        self.commands.iter().flat_map(named::paths).chain(found).collect()
    }

    /// The words that may name a file, whatever is done with them.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().flat_map(named::operands)
    }

    /// The folders that it changes to, in order.
    pub(crate) fn folders(&self) -> Vec<String> {
        self.commands.iter().flat_map(named::folders).collect()
    }

    /// The other names that it gives to files and folders: what each stands for, and the name.
    pub(crate) fn links(&self) -> Vec<(String, String)> {
        self.commands.iter().flat_map(named::links).collect()
    }

    /// What it writes by copying or moving it into folders.
    pub(crate) fn copied(&self) -> impl Iterator<Item = Copied> {
        self.commands.iter().filter_map(named::copied)
    }

    /// The folders that it empties whatever the names of the files are.
    pub(crate) fn emptied(&self) -> impl Iterator<Item = String> {
        self.commands.iter().flat_map(named::emptied)
    }

    /// The places in the network that it names.
    pub(crate) fn places(&self) -> Vec<String> {
        self.commands.iter().flat_map(named::places).collect()
    }

    /// The patches that it has among its words.
    pub(crate) fn patches(&self) -> impl Iterator<Item = &str> {
        let words = self.commands.iter().flat_map(|command| command.words.iter().skip(1));
        let fed = self.commands.iter().filter_map(|command| command.fed.as_deref());
        words
            .map(|word| word.text.as_str())
            .chain(fed)
            .filter(|text| text.contains("*** Begin Patch"))
    }

    /// The code that it hands to interpreters, with its language.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.commands.iter().filter_map(code_of)
    }

    /// Whether, in some pipeline, a command of the second kind stands behind one of the first.
    pub(crate) fn pipes(
        &self,
        from: impl Fn(&Simple) -> bool,
        into: impl Fn(&Simple) -> bool,
    ) -> bool {
        self.pipelines().any(|pipeline| {
            let first = pipeline.iter().position(|command| from(command));
            first.is_some_and(|first| pipeline.iter().skip(first + 1).any(|command| into(command)))
        })
    }

    /// The commands of each pipeline, in order.
    pub(crate) fn pipelines(&self) -> impl Iterator<Item = Vec<&Simple>> {
        let mut pipelines: BTreeMap<usize, Vec<&Simple>> = BTreeMap::new();
        for command in &self.commands {
            pipelines.entry(command.pipeline).or_default().push(command);
        }
        pipelines.into_values()
    }

    /// How long all commands are together, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.seen.len() + self.commands.iter().map(Simple::size).sum::<usize>()
    }
}

/// Reads a command line.
///
/// # Errors
/// When no shell could read it, or it exceeds the bounds.
pub(crate) fn read(text: &str, work: &Work) -> Result<Script, Unreadable> {
    if text.len() > MAX_COMMAND {
        return Err(Unreadable::TooMuch);
    }
    let mut script = reader::read(text, work)?;
    let seen = folded(text);
    // What looks like a command to a reader is judged like it.
    if seen != text
        && let Ok(more) = reader::read(&seen, work)
    {
        let first = script.commands.iter().map(|command| command.pipeline).max().unwrap_or(0) + 1;
        let shifted = more.commands.into_iter().map(|mut command| {
            command.pipeline += first;
            command
        });
        script.commands.extend(shifted);
        script.functions.extend(more.functions);
    }
    script.seen = seen.into_owned();
    Ok(script)
}

/// A word as it must be written so that a shell takes it as it is.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./=:@%+,".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
