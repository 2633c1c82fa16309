//! What the name of an argument says about its value.

use super::names::Tool;
use super::{Action, has_word};

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
    /// A question, in the language of a database where the tool asks one.
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

/// `path` of `path1`.
fn without_number(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// What the value of a member is.
pub(crate) fn class_of(name: &str, tool: &Tool) -> Class {
    let word = without_number(last_word(name));
    // No known word is longer.
    if word.len() > 16 {
        return Class::Other;
    }
    let word = word.to_ascii_lowercase();
    if let Some(class) = class_by_action(&word, tool) {
        return class;
    }
    match word.as_str() {
        "cwd" | "workdir" | "wd" | "chdir" | "basedir" | "root" | "roots" => Class::PathRead,
        "path" | "paths" | "file" | "files" | "filename" | "filenames" | "filepath"
        | "filepaths" | "dir" | "dirs" | "directory" | "directories" | "folder" | "folders"
        | "pathname" | "attachment" | "attachments" => {
            let name = without_number(name);
            let sources = ["source_path", "source_file", "src_path"];
            let source = || sources.iter().any(|source| name.eq_ignore_ascii_case(source));
            if tool.copies && source() { Class::PathRead } else { Class::Path }
        }
        "name" | "names" if is_file_name(name) => Class::Path,
        "url" | "urls" | "uri" | "uris" | "href" | "endpoint" | "webhook" | "link" | "links"
        | "remote" | "proxy" => Class::Url,
        "host" | "hosts" | "hostname" | "hostnames" | "domain" | "domains" | "ip" | "address"
        | "server" => Class::Host,
        "command" | "commands" | "cmd" | "cmds" | "cmdline" | "commandline" if !tool.edits => {
            Class::Command
        }
        "args" | "argv" | "arguments" => Class::Arguments,
        "patch" | "patches" | "diff" | "diffs" => Class::Patch,
        "code" => Class::Code,
        "query" | "queries" | "question" => Class::Query,
        "language" | "lang" | "runtime" | "interpreter" | "kernel" => Class::Language,
        "content" | "contents" | "text" | "str" | "string" | "body" | "message" | "description"
        | "title" | "prompt" | "comment" | "summary" | "edit" => Class::Content,
        _ => Class::Other,
    }
}

/// Whether a member is called `fileName`, `file_name` or the like.
fn is_file_name(name: &str) -> bool {
    let letters = without_number(name).chars().filter(char::is_ascii_alphanumeric);
    let letters = letters.collect::<String>().to_ascii_lowercase();
    let letters = letters.trim_end_matches('s');
    ["filename", "pathname", "dirname", "foldername"].iter().any(|it| letters.ends_with(it))
}

/// Whether a member of this name says where a tool works, so that other paths may begin there.
pub(crate) fn is_folder(name: &str) -> bool {
    let word = without_number(last_word(name)).to_ascii_lowercase();
    let folders = "cwd workdir wd chdir root roots base basedir dir dirs directory directories folder folders";
    has_word(folders, &word)
}

/// What a member is only because the tool does what it does.
fn class_by_action(word: &str, tool: &Tool) -> Option<Class> {
    let class = match tool.action {
        Action::FileRead | Action::FileWrite => match word {
            "source" | "src" | "from" | "sources" if tool.copies => Class::PathRead,
            "pattern" | "patterns" | "glob" if tool.globs => Class::Path,
            "source" | "destination" | "target" | "from" | "to" | "src" | "dst" | "dest"
            | "old" | "new" | "output" | "input" | "location" | "sources" | "name" => Class::Path,
            _ => return None,
        },
        Action::Patch => match word {
            "input" | "content" | "text" | "changes" => Class::Patch,
            _ => return None,
        },
        Action::Shell => match word {
            "script" | "input" | "text" | "line" | "code" | "program" | "executable" | "exec"
            | "run" | "shell" | "stdin" => Class::Command,
            _ => return None,
        },
        Action::Code | Action::Browser => match word {
            "script" | "source" | "snippet" | "program" | "expression" | "input" | "text"
            | "function" | "cell" => Class::Code,
            _ => return None,
        },
        Action::Database => match word {
            "sql" | "query" | "queries" | "statement" | "statements" => Class::Query,
            _ => return None,
        },
        _ => return None,
    };
    Some(class)
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
            ("x", "fileName", Class::Path),
            ("x", "target_file_names", Class::Path),
            ("x", "first_name", Class::Other),
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
