//! Where the tour takes place: a folder, and the commands that run in it.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use uuid::Uuid;

use crate::commands::CommandLine;
use crate::files::Access;
use crate::io::Io;
use crate::look::Look;
use crate::outcome;
use crate::text;

/// Columns of running text.
const WIDTH: usize = 80;

/// A folder and a reader. The folder goes when the stage goes, unless it is to be kept.
pub(super) struct Stage<'s, 'i> {
    io: &'s mut Io<'i>,
    folder: PathBuf,
    keep: bool,
}

impl<'s, 'i> Stage<'s, 'i> {
    /// Opens a stage in this folder, or in a fresh one.
    pub(super) fn open(io: &'s mut Io<'i>, dir: Option<&Path>, keep: bool) -> Result<Self> {
        let folder = match dir {
            Some(dir) => {
                let folder = io.folder.join(dir);
                fs::create_dir_all(&folder)
                    .and_then(|()| fs::read_dir(&folder))
                    .with_context(|| format!("cannot use the folder `{}`", dir.display()))
                    .and_then(|mut entries| match entries.next() {
                        None => Ok(folder),
                        Some(_) => bail!("expected an empty folder, found files in it"),
                    })?
            }
            None => fresh_folder()?,
        };
        let stage = Self { io, folder, keep: keep || dir.is_some() };
        stage.io.say("A tour of Chio: signed capabilities say who may call which tool, signed")?;
        stage.io.say("receipts say what was decided. Each command below is run as it is shown.")?;
        Ok(stage)
    }

    /// Begins a chapter.
    pub(super) fn chapter(&mut self, title: &str, text: &str) -> Result<()> {
        self.line("")?;
        self.line(&format!("== {title}"))?;
        self.tell(text)
    }

    /// Writes running text.
    pub(super) fn tell(&mut self, text: &str) -> Result<()> {
        self.line("")?;
        text::wrapped(text, WIDTH).iter().try_for_each(|line| self.line(line))
    }

    /// Writes a line as it is.
    pub(super) fn line(&mut self, line: &str) -> Result<()> {
        self.io.say(line)
    }

    /// Shows a command and runs it; it must succeed.
    pub(super) fn run(&mut self, line: &str) -> Result<()> {
        self.run_expecting(0, line)
    }

    /// Shows a command and runs it; it must end with this exit code.
    pub(super) fn run_expecting(&mut self, expected: u8, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        self.line("")?;
        for line in as_typed(&words) {
            self.line(&line)?;
        }
        let command = CommandLine::read(std::iter::once(&"chio").chain(&words))?;
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut io = Io {
            input: None,
            output: &mut output,
            errors: &mut errors,
            folder: &self.folder,
            now: self.io.now,
            own: Arc::clone(&self.io.own),
            look: Look::default(),
        };
        let result = command.run(&mut io);
        let code = outcome::finish(result, &mut io);
        for text in [output, errors] {
            for line in String::from_utf8_lossy(&text).lines() {
                self.line(&format!("  {line}"))?;
            }
        }
        if code != expected {
            bail!("the tour went wrong: expected exit code {expected}, found {code}");
        }
        if expected != 0 { self.line(&format!("  (exit code {code})")) } else { Ok(()) }
    }

    /// Copies a file with one text in place of another, and shows how to.
    pub(super) fn replace(&mut self, from: &str, to: &str, old: &str, new: &str) -> Result<()> {
        self.line("")?;
        self.line(&format!("$ sed 's/{old}/{new}/' {from} > {to}"))?;
        let text = fs::read_to_string(self.folder.join(from))?;
        if !text.contains(old) {
            bail!("the tour went wrong: expected `{old}` in `{from}`");
        }
        self.write(to, text.replacen(old, new, 1).as_bytes())
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        self.with(|io| io.write_file(Path::new(name), content, Access::Ordinary, false))
    }

    /// Does something in the folder.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Io<'_>) -> Result<T>) -> Result<T> {
        act(&mut Io {
            input: None,
            output: &mut std::io::sink(),
            errors: &mut std::io::sink(),
            folder: &self.folder,
            now: self.io.now,
            own: Arc::clone(&self.io.own),
            look: Look::default(),
        })
    }

    /// Says what becomes of the folder.
    pub(super) fn close(&mut self) -> Result<()> {
        self.line("")?;
        if self.keep {
            self.line(&format!("The files of this tour are in {}", self.folder.display()))
        } else {
            self.line("The files of this tour are removed; `chio tour --dir tour` keeps them.")
        }
    }
}

impl Drop for Stage<'_, '_> {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Makes a folder that only its owner can look into.
fn fresh_folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("chio-tour-{}", Uuid::now_v7()));
    fs::DirBuilder::new().mode(0o700).create(&folder).with_context(|| {
        let folder = folder.display();
        format!("cannot make the folder `{folder}`: name one with --dir")
    })?;
    Ok(folder)
}

/// A command as one would type it, on as many lines as it takes.
fn as_typed(words: &[&str]) -> Vec<String> {
    let mut lines = vec!["$ chio".to_owned()];
    for (index, word) in words.iter().enumerate() {
        let value = words.get(index + 1).filter(|next| !next.starts_with("--"));
        // An option stays on one line with its value.
        let room = quoted(word).len() + value.map_or(0, |value| quoted(value).len() + 1);
        let Some(line) = lines.last_mut() else { break };
        if word.starts_with("--") && line.len() + 1 + room > WIDTH - 2 {
            line.push_str(" \\");
            lines.push(format!("    {}", quoted(word)));
        } else {
            line.push(' ');
            line.push_str(&quoted(word));
        }
    }
    lines
}

/// A word as a shell needs it.
fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./:,=".contains(c);
    if word.chars().all(bare) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::as_typed;

    #[test]
    fn commands_are_broken_before_an_option_and_quoted_for_a_shell() {
        assert_eq!(as_typed(&["key", "new"]), ["$ chio key new"]);
        let long = "x".repeat(64);
        let lines = as_typed(&["a", "--b", "{c}", "--d", &long, "--e"]);
        assert_eq!(lines, ["$ chio a --b '{c}' \\", &format!("    --d {long} --e")]);
    }
}
