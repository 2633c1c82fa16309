//! Patches as they are written by hand and by models: unified diffs, `*** Begin Patch`, and blocks of search
//! and replace. What cannot be read for certain is an error, never a guess.

use std::borrow::Cow;

/// How many names a file may have in one patch: more than any tool writes.
const MAX_NAMES: usize = 64;

/// A patch that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Patch<'a> {
    /// What it does to each file.
    pub(crate) files: Vec<FileChange<'a>>,
}

/// What a patch does to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileChange<'a> {
    /// The names that it has before and after; also what a link points to.
    names: Vec<Cow<'a, str>>,
    /// The lines that it adds.
    pub(crate) added: Vec<&'a str>,
    /// How many lines it removes.
    pub(crate) deletions: usize,
    /// It becomes a link.
    is_link: bool,
}

impl FileChange<'_> {
    /// Every path that is touched.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let target = self.is_link.then(|| self.added.first().copied()).flatten();
        self.names.iter().map(|name| &**name).chain(target)
    }
}

/// Whether a text is a patch of one of the forms.
pub(crate) fn looks_like_patch(text: &str) -> bool {
    text.contains("*** Begin Patch")
        || text.contains("<<<<<<< SEARCH")
        || text.starts_with("--- ")
        || text.contains("\n--- ")
        || text.starts_with("diff --git ")
        || text.contains("\n@@ -")
}

/// Reads a patch.
///
/// # Errors
/// Says what is wrong, without a word of the patch.
pub(crate) fn read(text: &str) -> Result<Patch<'_>, &'static str> {
    if text.contains('\0') {
        return Err("the patch has a NUL character");
    }
    let patch = if text.trim_start().starts_with("*** Begin Patch") {
        read_marked(text)?
    } else if text.contains("<<<<<<< SEARCH") {
        read_blocks(text)?
    } else {
        Unified::default().read(text)?
    };
    if patch.files.is_empty() { Err("no change of a file was found in it") } else { Ok(patch) }
}

/// A parser of unified diffs.
#[derive(Default)]
struct Unified<'a> {
    patch: Patch<'a>,
    /// The lines of this hunk that are still to come, before and after the change.
    left: (usize, usize),
    /// This hunk does not say how many lines it has.
    uncounted: bool,
}

impl<'a> Unified<'a> {
    fn read(mut self, text: &'a str) -> Result<Patch<'a>, &'static str> {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if self.left != (0, 0) {
                self.counted_line(line)?;
                continue;
            }
            if let Some(rest) = line.strip_prefix("--- ") {
                let new = lines.next().and_then(|line| line.strip_prefix("+++ "));
                self.begin(rest, new.ok_or("a `---` line has no `+++` line after it")?)?;
            } else if let Some(rest) = line.strip_prefix("@@") {
                self.hunk(rest)?;
            } else if self.uncounted && line.starts_with(['+', '-', ' ', '\\']) {
                self.line(line);
            } else {
                self.header(line)?;
            }
        }
        if self.left == (0, 0) { Ok(self.patch) } else { Err("a hunk is shorter than it says") }
    }

    /// The two names of a file. Those of a `diff --git` line before it are the same file's.
    fn begin(&mut self, old: &'a str, new: &'a str) -> Result<(), &'static str> {
        self.uncounted = false;
        let fresh = match self.patch.files.last() {
            Some(file) => !file.added.is_empty() || file.deletions > 0 || file.names.is_empty(),
            None => true,
        };
        let names = [name(old), name(new)];
        let known =
            |file: &FileChange<'_>| names.iter().flatten().any(|name| file.names.contains(name));
        if fresh || !self.patch.files.last().is_some_and(known) {
            self.patch.files.push(FileChange::default());
        }
        names.into_iter().flatten().try_for_each(|name| self.name(name))
    }

    fn name(&mut self, name: Cow<'a, str>) -> Result<(), &'static str> {
        if let Some(file) = self.patch.files.last_mut()
            && !file.names.contains(&name)
        {
            if file.names.len() >= MAX_NAMES {
                return Err("a file has more names than any patch gives it");
            }
            file.names.push(name);
        }
        Ok(())
    }

    fn hunk(&mut self, rest: &str) -> Result<(), &'static str> {
        if self.patch.files.is_empty() {
            return Err("a hunk stands before the name of its file");
        }
        let ranges = rest.split("@@").next().unwrap_or_default().trim();
        if !ranges.starts_with('-') {
            self.uncounted = true;
            return Ok(());
        }
        let (old, new) = ranges.split_once(' ').ok_or("a hunk has no two ranges")?;
        let old =
            old.strip_prefix('-').and_then(count).ok_or("a hunk has no range of old lines")?;
        let new =
            new.strip_prefix('+').and_then(count).ok_or("a hunk has no range of new lines")?;
        self.left = (old, new);
        self.uncounted = false;
        Ok(())
    }

    fn counted_line(&mut self, line: &'a str) -> Result<(), &'static str> {
        let (old, new) = match line.bytes().next() {
            Some(b'+') => (0, 1),
            Some(b'-') => (1, 0),
            Some(b'\\') => (0, 0),
            // An empty line of context often loses its space.
            Some(b' ') | None => (1, 1),
            Some(_) => return Err("a line of a hunk does not begin with ` `, `+` or `-`"),
        };
        let too_many = "a hunk is longer than it says";
        self.left.0 = self.left.0.checked_sub(old).ok_or(too_many)?;
        self.left.1 = self.left.1.checked_sub(new).ok_or(too_many)?;
        self.line(line);
        Ok(())
    }

    fn line(&mut self, line: &'a str) {
        let Some(file) = self.patch.files.last_mut() else { return };
        if let Some(added) = line.strip_prefix('+') {
            file.added.push(added);
        } else if line.starts_with('-') {
            file.deletions += 1;
        }
    }

    /// A line outside hunks. Those of git name files too.
    fn header(&mut self, line: &'a str) -> Result<(), &'static str> {
        self.uncounted = false;
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.patch.files.push(FileChange::default());
            git_names(names).into_iter().flatten().try_for_each(|name| self.name(name))?;
        }
        for start in ["rename from ", "rename to ", "copy from ", "copy to "] {
            if let Some(rest) = line.strip_prefix(start) {
                self.name(unquoted(rest))?;
            }
        }
        if line.ends_with("mode 120000")
            && let Some(file) = self.patch.files.last_mut()
        {
            file.is_link = true;
        }
        if line.starts_with("GIT binary patch") {
            return Err("a binary patch cannot be looked into");
        }
        if line.starts_with("***************") || line.starts_with("*** ") {
            return Err("this form of diff is not known");
        }
        if line.starts_with('+') && !self.patch.files.is_empty() {
            return Err("a hunk is longer than it says");
        }
        Ok(())
    }
}

/// How many lines a range has: `12,3`, or one of `12`.
fn count(range: &str) -> Option<usize> {
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    start.parse::<usize>().ok()?;
    count.parse().ok().filter(|count| *count <= 10_000_000)
}

/// The name on a `---` or `+++` line, without its time and without git's `a/` and `b/`.
fn name(text: &str) -> Option<Cow<'_, str>> {
    let text = text.split('\t').next().unwrap_or(text);
    let name = unquoted(text.trim_end());
    if name == "/dev/null" || name.trim().is_empty() {
        return None;
    }
    Some(without_side(name))
}

fn without_side(name: Cow<'_, str>) -> Cow<'_, str> {
    fn stripped(name: &str) -> &str {
        name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name)
    }
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(stripped(name)),
        Cow::Owned(name) => Cow::Owned(stripped(&name).to_owned()),
    }
}

fn git_names(text: &str) -> [Option<Cow<'_, str>>; 2] {
    let split = text.find(" b/").or_else(|| text.find(" \"b/"));
    let Some(split) = split else { return [name(text), None] };
    let (old, new) =
        (text.get(..split).unwrap_or_default(), text.get(split + 1..).unwrap_or_default());
    [name(old), name(new)]
}

/// A name that git has put in quotes, because of its letters.
fn unquoted(text: &str) -> Cow<'_, str> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner else { return Cow::Borrowed(text) };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, next) = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', next @ ..]) => {
                (((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'), next)
            }
            (b'\\', [b't', next @ ..]) => (b'\t', next),
            (b'\\', [b'n', next @ ..]) => (b'\n', next),
            (b'\\', [other, next @ ..]) => (*other, next),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = next;
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// The form with `*** Begin Patch`.
fn read_marked(text: &str) -> Result<Patch<'_>, &'static str> {
    let mut patch = Patch::default();
    let mut lines = text.trim().lines();
    lines.next();
    for line in lines {
        if let Some(mark) = line.strip_prefix("*** ") {
            let mark = mark.trim_end();
            if mark == "End Patch" {
                return Ok(patch);
            }
            let (what, name) = mark.split_once(": ").unwrap_or((mark, ""));
            match (what, patch.files.last_mut()) {
                ("Add File" | "Update File" | "Delete File", _) if !name.trim().is_empty() => {
                    let names = vec![Cow::Borrowed(name.trim())];
                    patch.files.push(FileChange { names, ..FileChange::default() });
                }
                ("Move to", Some(file)) => file.names.push(Cow::Borrowed(name.trim())),
                ("End of File", Some(_)) => {}
                _ => return Err("a line that begins with `***` is not known"),
            }
            continue;
        }
        let file = patch.files.last_mut().ok_or("a change stands before the name of its file")?;
        match line.bytes().next() {
            Some(b'+') => file.added.push(line.get(1..).unwrap_or_default()),
            Some(b'-') => file.deletions += 1,
            Some(b' ' | b'@') | None => {}
            Some(_) => return Err("a line does not begin with ` `, `+`, `-` or `@@`"),
        }
    }
    Err("there is no `*** End Patch`")
}

/// The form with blocks of search and replace; another argument names the file.
fn read_blocks(text: &str) -> Result<Patch<'_>, &'static str> {
    let mut file = FileChange::default();
    let mut part = 0;
    for line in text.lines() {
        match line.trim_end() {
            "<<<<<<< SEARCH" if part == 0 => part = 1,
            "=======" if part == 1 => part = 2,
            ">>>>>>> REPLACE" if part == 2 => part = 0,
            "<<<<<<< SEARCH" | ">>>>>>> REPLACE" => {
                return Err("blocks of search and replace are mixed up");
            }
            _ if part == 1 => file.deletions += 1,
            _ if part == 2 => file.added.push(line),
            _ => {}
        }
    }
    if part != 0 {
        return Err("a block of search and replace has no end");
    }
    Ok(Patch { files: vec![file] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match read(text) {
            Ok(patch) => {
                let one = |file: &FileChange<'_>| {
                    let paths: Vec<&str> = file.paths().collect();
                    format!("{} +{} -{}", paths.join(" "), file.added.len(), file.deletions)
                };
                patch.files.iter().map(one).collect::<Vec<_>>().join("; ")
            }
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn patches_are_read_in_every_form() {
        for (text, expected) in [
            ("--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@ fn\n a\n-b\n+c\n", "x.rs +1 -1"),
            ("--- /dev/null\n+++ b/new.txt\t2024-01-01\n@@ -0,0 +1 @@\n+hi\n", "new.txt +1 -0"),
            (
                "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
                "x y +1 -1",
            ),
            (
                "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/shadow\n\\ No newline at end of file\n",
                "l /etc/shadow +1 -0",
            ),
            (
                "--- \"a/\\303\\274.txt\"\n+++ \"b/\\303\\274.txt\"\n@@ -1 +1 @@\n-a\n+b\n",
                "ü.txt +1 -1",
            ),
            ("--- a/x\n+++ b/x\n@@\n-a\n+b\n--- a/y\n+++ b/y\n@@\n+c\n", "x +1 -1; y +1 -0"),
            ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n a\n", "x +1 -1"),
            (
                "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f\n-x\n+y\n*** Add File: c\n+z\n*** End Patch",
                "a.py b.py +1 -1; c +1 -0",
            ),
            ("<<<<<<< SEARCH\na\n=======\nb\nc\n>>>>>>> REPLACE\n", " +2 -1"),
            ("", "error: no change of a file was found in it"),
            ("hello", "error: no change of a file was found in it"),
            ("--- a/x\nhello", "error: a `---` line has no `+++` line after it"),
            ("--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n a\n", "error: a hunk is shorter than it says"),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n", "error: a hunk is longer than it says"),
            ("--- a/x\n+++ b/x\n@@ -a +1 @@\n", "error: a hunk has no range of old lines"),
            ("@@ -1 +1 @@\n-a\n+b\n", "error: a hunk stands before the name of its file"),
            (
                "diff --git a/x b/x\nGIT binary patch\nliteral 0\n",
                "error: a binary patch cannot be looked into",
            ),
            ("*** Begin Patch\n*** Update File: a\n+x\n", "error: there is no `*** End Patch`"),
            (
                "*** Begin Patch\n+x\n*** End Patch",
                "error: a change stands before the name of its file",
            ),
            (
                "*** Begin Patch\n*** Frob: a\n*** End Patch",
                "error: a line that begins with `***` is not known",
            ),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
