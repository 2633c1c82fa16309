//! What the name of a tool says about what it does, in the ways that servers name their tools.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Access, Action, has_word};

/// What a tool's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tool {
    /// What it does.
    pub(crate) action: Action,
    /// The name is known so well that the tool cannot do without what its action is about.
    pub(crate) known: bool,
    /// What is done to the paths that it names.
    pub(crate) access: Access,
    /// It copies: what it copies from is only read.
    pub(crate) copies: bool,
    /// It has sub-commands of its own, which are no command lines.
    pub(crate) edits: bool,
    /// Its patterns are paths.
    pub(crate) globs: bool,
    /// The language of the code that it runs.
    pub(crate) language: Option<&'static str>,
}

/// Whether this is the kernel's name for a look into a server's resources, not a tool's.
pub(crate) fn reads_library(name: &str) -> bool {
    use chio_kernel::ReadKind as Kind;
    let kinds =
        [Kind::Resource, Kind::Subscribe, Kind::Unsubscribe, Kind::Prompt, Kind::Completion];
    kinds.iter().any(|kind| kind.name() == name)
}

/// What the name of a tool says: `read_file`, `fs.readFile`, `mcp__files__read_file`.
pub(crate) fn recognised(name: &str) -> Tool {
    let (words, last) = snake(name);
    let own = words.get(last..).unwrap_or(&words);
    let own = own.trim_end_matches("_tool").trim_end_matches("_v2").trim_end_matches("_async");
    let known = known_name(own).or_else(|| known_ending(&words));
    let action = known.unwrap_or_else(|| by_words(&words));
    let has = |wanted: &[&str]| words.split('_').any(|word| wanted.contains(&word));
    let writes = says(&words, Access::Write);
    let access = match action {
        Action::Patch => Access::Patch,
        Action::FileRead => Access::Read,
        Action::FileWrite => Access::Write,
        // What is not known to only read may write.
        Action::Other if writes || !says(&words, Access::Read) => Access::Write,
        _ if writes => Access::Write,
        _ => Access::Read,
    };
    Tool {
        action,
        known: known.is_some(),
        access,
        copies: has(&["copy", "cp"]),
        edits: action == Action::FileWrite && has(&["edit", "editor", "str"]),
        globs: has(&["glob"]),
        language: LANGUAGES.iter().find(|(words, _)| has(words)).map(|(_, language)| *language),
    }
}

/// Whether the name of a tool says that it takes away, or moves elsewhere, what it names.
pub(crate) fn removes(name: &str) -> bool {
    let (words, _) = snake(name);
    words.split('_').any(|word| has_word("delete remove move rename mv rm rmdir destroy", word))
}

/// The words of a name in lower case with `_` between them, and where its own name begins behind
/// the names of servers and packages.
fn snake(name: &str) -> (String, usize) {
    let mut out = String::with_capacity(name.len() + 4);
    let mut last = 0;
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_alphanumeric() {
            let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
            let begins = c.is_uppercase()
                && (before.is_lowercase() || (before.is_uppercase() && next_is_lower));
            if begins && !out.is_empty() && !out.ends_with('_') {
                out.push('_');
            }
            out.extend(c.to_lowercase());
        } else {
            if !out.is_empty() && !out.ends_with('_') {
                out.push('_');
            }
            if matches!(c, '.' | '/' | ':') || (c == '_' && before == '_') {
                last = out.len();
            }
        }
        before = c;
    }
    while out.ends_with('_') {
        out.pop();
    }
    if last >= out.len() {
        last = 0;
    }
    (out, last)
}

const LANGUAGES: &[(&[&str], &str)] = &[
    (&["python", "ipython", "jupyter"], "python"),
    (&["javascript", "js", "node", "browser", "puppeteer", "playwright"], "javascript"),
    (&["typescript"], "typescript"),
    (&["ruby"], "ruby"),
];

/// What a word says is done to files.
fn access_of(word: &str) -> Option<Access> {
    match word {
        "read" | "get" | "list" | "view" | "show" | "cat" | "stat" | "info" | "search" | "find"
        | "grep" | "glob" | "tree" | "open" | "load" | "fetch" | "describe" | "count" | "head"
        | "tail" | "diff" | "check" | "query" | "validate" | "lint" | "analyze" | "inspect"
        | "status" | "ls" | "log" | "blame" | "summarize" | "parse" | "index" | "lookup"
        | "exists" | "hash" | "scan" => Some(Access::Read),
        "write" | "create" | "delete" | "remove" | "edit" | "append" | "save" | "move"
        | "rename" | "copy" | "make" | "mkdir" | "update" | "insert" | "replace" | "modify"
        | "put" | "upload" | "download" | "touch" | "truncate" | "rm" | "mv" | "cp" | "set"
        | "unzip" | "extract" | "overwrite" | "chmod" | "chown" | "format" | "symlink" | "link"
        | "destroy" | "restore" | "checkout" | "clone" | "init" | "commit" | "apply" | "fix" => {
            Some(Access::Write)
        }
        _ => None,
    }
}

/// Names that stand for themselves: one word is enough where it is the tool's own name.
fn known_name(own: &str) -> Option<Action> {
    Some(match own {
        "bash" | "sh" | "zsh" | "shell" | "powershell" | "exec" | "cmd" | "local_shell"
        | "terminal" => Action::Shell,
        "fetch" | "curl" | "wget" | "http" => Action::Network,
        "python" | "javascript" | "code_interpreter" | "ipython" => Action::Code,
        "patch" => Action::Patch,
        "sql" => Action::Database,
        _ => return None,
    })
}

/// Names of two words and more, also behind the name of a server.
fn known_ending(words: &str) -> Option<Action> {
    let mut starts = [0].into_iter().chain(words.match_indices('_').map(|(at, _)| at + 1));
    starts.find_map(|start| KNOWN.get(words.get(start..)?).copied())
}

static KNOWN: LazyLock<HashMap<&str, Action>> = LazyLock::new(|| {
    let known = [
        (Action::Patch, "apply_patch apply_diff patch_file git_apply apply_unified_diff"),
        (
            Action::FileRead,
            "read_file read_text_file read_media_file read_multiple_files read_files \
             view_file open_file cat_file get_file_info file_info stat_file list_directory \
             list_directory_with_sizes directory_tree read_directory file_read read_text \
             read_file_contents head_file tail_file",
        ),
        (
            Action::FileWrite,
            "write_file create_file delete_file remove_file edit_file append_file \
             append_to_file save_file move_file rename_file copy_file write_to_file \
             create_directory make_directory delete_directory remove_directory \
             str_replace_editor str_replace_based_edit str_replace_based_edit_tool \
             replace_in_file file_write overwrite_file insert_edit_into_file raw_file_write \
             raw_file_delete write_text_file multi_edit",
        ),
        (
            Action::Shell,
            "execute_command run_command run_shell_command run_terminal_cmd \
             run_terminal_command shell_exec shell_command execute_shell execute_bash \
             run_bash run_shell exec_command run_in_terminal execute_shell_command run_cmd \
             bash_command start_process execute_terminal terminal_execute run_powershell \
             execute_powershell ssh_exec ssh_execute run_commands",
        ),
        (
            Action::Network,
            "http_request fetch_url http_get http_post http_put http_delete web_fetch \
             url_fetch get_url make_request send_webhook fetch_html fetch_json \
             fetch_markdown download_url scrape_url crawl_url",
        ),
        (
            Action::Browser,
            "browser_navigate puppeteer_navigate playwright_navigate browser_open_url",
        ),
        (
            Action::Code,
            "execute_code run_code run_python execute_python python_exec exec_python \
             run_javascript execute_javascript run_js run_python_code python_repl \
             execute_cell run_script_code run_typescript run_node",
        ),
        (Action::Database, "execute_sql run_sql sql_query execute_sql_query"),
    ];
    let known = known.iter();
    known.flat_map(|(action, names)| names.split(' ').map(|name| (name, *action))).collect()
});

/// What the words of a name suggest.
fn by_words(words: &str) -> Action {
    let has = |wanted: &[&str]| words.split('_').any(|word| wanted.contains(&word));
    if has(&["browser", "puppeteer", "playwright", "webpage"]) {
        return Action::Browser;
    }
    if has(&["bash", "shell", "terminal", "powershell"])
        || (has(&["run", "exec", "execute"]) && has(&["command", "commands", "cmd", "process"]))
    {
        return Action::Shell;
    }
    if has(&["python", "javascript", "code", "repl", "jupyter"])
        && has(&["run", "exec", "execute", "eval", "evaluate", "repl"])
    {
        return Action::Code;
    }
    if has(&["sql", "database", "db", "postgres", "mysql", "sqlite"]) || words == "query" {
        return Action::Database;
    }
    if has(&["http", "url", "webhook", "web"]) && !has(&["search"]) {
        return Action::Network;
    }
    by_file_words(words)
}

/// Whether a word of a name says that files are read or written.
fn says(words: &str, access: Access) -> bool {
    words.split('_').any(|word| access_of(word) == Some(access))
}

fn by_file_words(words: &str) -> Action {
    let alone = ["read", "write", "edit", "glob", "grep", "ls", "view", "cat", "mkdir", "rm"];
    let last = words.rsplit('_').next().unwrap_or_default();
    let of_files = words.split('_').any(is_file_word) || alone.contains(&words);
    if !of_files && (words.len() <= 6 || !alone.contains(&last)) {
        return Action::Other;
    }
    if says(words, Access::Write) {
        return Action::FileWrite;
    }
    if says(words, Access::Read) { Action::FileRead } else { Action::Other }
}

fn is_file_word(word: &str) -> bool {
    let files = ["file", "files", "dir", "folder", "folders", "fs", "notebook", "path"];
    files.contains(&word) || ["directory", "directories", "filesystem"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_recognised_however_they_are_spelled() {
        for (name, action, known) in [
            ("read_file", Action::FileRead, true),
            ("filesystem__read_file", Action::FileRead, true),
            ("fs.readFile", Action::FileRead, true),
            ("mcp__files__readTextFile", Action::FileRead, true),
            ("FS.READ_FILE", Action::FileRead, true),
            ("listFiles", Action::FileRead, false),
            ("Edit", Action::FileWrite, false),
            ("str_replace_based_edit_tool", Action::FileWrite, true),
            ("moveFile", Action::FileWrite, true),
            ("apply_patch", Action::Patch, true),
            ("Bash", Action::Shell, true),
            ("container.exec", Action::Shell, true),
            ("desktop-commander:start_process", Action::Shell, true),
            ("my_terminal", Action::Shell, false),
            ("fetch", Action::Network, true),
            ("git_fetch", Action::Other, false),
            ("HTTPRequest", Action::Network, true),
            ("browser_click", Action::Browser, false),
            ("puppeteer_navigate", Action::Browser, true),
            ("python", Action::Code, true),
            ("executeCode", Action::Code, true),
            ("query", Action::Database, false),
            ("execute_sql", Action::Database, true),
            ("get_weather", Action::Other, false),
            ("web_search", Action::Other, false),
            ("", Action::Other, false),
            ("___", Action::Other, false),
        ] {
            let tool = recognised(name);
            assert_eq!((tool.action, tool.known), (action, known), "{name}");
        }
    }

    #[test]
    fn a_tool_that_may_write_is_taken_to_write() {
        assert_eq!(recognised("get_thing").access, Access::Read);
        assert_eq!(recognised("frobnicate").access, Access::Write);
        assert_eq!(recognised("list_and_delete").access, Access::Write);
    }
}
