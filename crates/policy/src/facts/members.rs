//! What the name of an argument says about its value.

use super::Action;
use super::names::Tool;

/// What a value is, as its name has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A path.
    Path,
    /// A path that is only read, though the tool writes others.
    PathRead,
    /// A place in the network, as a URL.
    Url,
    /// A place in the network, as a host.
    Host,
    /// A command line, or the first word of one.
    Command,
    /// The words behind a command.
    Arguments,
    /// A patch.
    Patch,
    /// Code.
    Code,
    /// The language of code.
    Language,
    /// A question for a database.
    Query,
    /// Text that is written or sent, and not acted upon.
    Content,
    /// Anything else.
    Other,
}

/// The last word of a name: `path` of `file_path`, `filePath` and `FILE-PATH`.
fn last_word(name: &str) -> &str {
    let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut start = name.len();
    let mut after_is_upper = None;
    for (place, c) in name.char_indices().rev() {
        if !c.is_alphanumeric() {
            break;
        }
        match (c.is_uppercase(), after_is_upper) {
            (false, Some(true)) => break,
            (true, Some(false)) => {
                start = place;
                break;
            }
            (upper, _) => after_is_upper = Some(upper),
        }
        start = place;
    }
    name.get(start..).unwrap_or(name)
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    // `path1`, `file2`
    let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
    word.len() <= 16 && words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "folders",
    "cwd",
    "workdir",
    "root",
    "roots",
    "pathname",
    "attachment",
    "attachments",
];
const PATHS_READ: &[&str] = &["cwd", "workdir", "root", "roots"];
const PATHS_OF_FILES: &[&str] = &[
    "source",
    "destination",
    "target",
    "from",
    "to",
    "src",
    "dst",
    "dest",
    "old",
    "new",
    "output",
    "input",
    "location",
    "sources",
    "name",
];
const URLS: &[&str] = &[
    "url", "urls", "uri", "uris", "href", "endpoint", "webhook", "link", "links", "remote", "proxy",
];
const HOSTS: &[&str] =
    &["host", "hosts", "hostname", "hostnames", "domain", "domains", "ip", "address", "server"];
const COMMANDS: &[&str] = &["command", "commands", "cmd", "cmds", "cmdline", "commandline"];
const COMMANDS_OF_SHELLS: &[&str] = &[
    "script",
    "input",
    "text",
    "line",
    "code",
    "program",
    "executable",
    "exec",
    "run",
    "shell",
    "stdin",
];
const ARGUMENTS: &[&str] = &["args", "argv", "arguments"];
const PATCHES: &[&str] = &["patch", "patches", "diff", "diffs"];
const PATCHES_OF_PATCHERS: &[&str] = &["input", "content", "text", "changes"];
const CODES: &[&str] = &["code"];
const CODES_OF_RUNNERS: &[&str] =
    &["script", "source", "snippet", "program", "expression", "input", "text", "function", "cell"];
const LANGUAGES: &[&str] = &["language", "lang", "runtime", "interpreter", "kernel"];
const QUERIES: &[&str] = &["sql", "query", "queries", "statement", "statements"];
const CONTENTS: &[&str] = &[
    "content",
    "contents",
    "text",
    "str",
    "string",
    "body",
    "message",
    "description",
    "title",
    "prompt",
    "comment",
    "summary",
    "edit",
];

/// What the value of a member is.
pub(crate) fn class_of(name: &str, tool: &Tool) -> Class {
    let word = last_word(name);
    let is = |words: &[&str]| is_one_of(word, words);
    if let Some(class) = of_action(tool, &is) {
        return class;
    }
    if is(PATHS) {
        let source = tool.copies && is_one_of(name, &["source_path", "source_file", "src_path"]);
        return if source || is(PATHS_READ) { Class::PathRead } else { Class::Path };
    }
    if is(URLS) {
        return Class::Url;
    }
    if is(HOSTS) {
        return Class::Host;
    }
    if is(COMMANDS) {
        return if tool.edits { Class::Other } else { Class::Command };
    }
    let classes = [
        (ARGUMENTS, Class::Arguments),
        (PATCHES, Class::Patch),
        (CODES, Class::Code),
        (LANGUAGES, Class::Language),
        (CONTENTS, Class::Content),
    ];
    classes.iter().find(|(words, _)| is(words)).map_or(Class::Other, |(_, class)| *class)
}

/// What a member is only because the tool does what it does.
fn of_action(tool: &Tool, is: &dyn Fn(&[&str]) -> bool) -> Option<Class> {
    match tool.action {
        Action::FileRead | Action::FileWrite => {
            if tool.copies && is(&["source", "src", "from", "sources"]) {
                return Some(Class::PathRead);
            }
            if is(PATHS_OF_FILES) || (tool.globs && is(&["pattern", "patterns", "glob"])) {
                return Some(Class::Path);
            }
            None
        }
        Action::Patch if is(PATCHES_OF_PATCHERS) => Some(Class::Patch),
        Action::Shell if is(COMMANDS_OF_SHELLS) => Some(Class::Command),
        Action::Code | Action::Browser if is(CODES_OF_RUNNERS) => Some(Class::Code),
        Action::Database if is(QUERIES) => Some(Class::Query),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::recognised;
    use super::*;

    #[test]
    fn members_are_known_by_their_last_word() {
        for (tool, name, class) in [
            ("x", "path", Class::Path),
            ("x", "filePath", Class::Path),
            ("x", "FILE-PATH", Class::Path),
            ("x", "relative_workspace_path", Class::Path),
            ("x", "profile", Class::Other),
            ("x", "nadir", Class::Other),
            ("x", "source", Class::Other),
            ("copy_file", "source", Class::PathRead),
            ("move_file", "source", Class::Path),
            ("x", "webhookURL", Class::Url),
            ("x", "curl", Class::Other),
            ("x", "hostname", Class::Host),
            ("x", "cmd", Class::Command),
            ("str_replace_editor", "command", Class::Other),
            ("bash", "script", Class::Command),
            ("x", "script", Class::Other),
            ("run_python", "script", Class::Code),
            ("apply_patch", "input", Class::Patch),
            ("write_file", "file_text", Class::Content),
            ("x", "", Class::Other),
        ] {
            assert_eq!(class_of(name, &recognised(tool)), class, "{tool} {name}");
        }
    }
}
