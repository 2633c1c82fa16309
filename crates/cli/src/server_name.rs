//! What a server is called when the operator does not say: by the command that starts it.

/// Programs that run others, and the words between them and what they run.
const RUNNERS: &[(&str, &[&str])] = &[
    ("npx", &[]),
    ("bunx", &[]),
    ("uvx", &[]),
    ("pipx", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("yarn", &["dlx"]),
    ("npm", &["exec", "run"]),
    ("bun", &["run", "x"]),
    ("uv", &["run", "tool"]),
    ("deno", &["run"]),
    ("docker", &["run"]),
    ("podman", &["run"]),
    ("cargo", &["run"]),
    ("node", &[]),
    ("tsx", &[]),
    ("python", &[]),
    ("python3", &[]),
    ("env", &[]),
    ("sh", &[]),
    ("bash", &[]),
];
/// Options of runners that take the next word with them.
const WITH_VALUE: &[&str] = &[
    "-p",
    "--package",
    "--from",
    "--with",
    "--directory",
    "-e",
    "--env",
    "-v",
    "--volume",
    "--mount",
    "--name",
    "--network",
    "-w",
    "--workdir",
    "--bin",
];
/// Files and folders that say nothing about what they are part of.
const NAMELESS: &[&str] =
    &["index", "main", "server", "cli", "mcp", "dist", "build", "src", "bin", "out", "lib", "."];
/// What says only that it is a server.
const BEFORE: &[&str] = &["mcp-", "server-"];
const BEHIND: &[&str] = &["-mcp", "-server", "-stdio"];
/// Endings of programs.
const ENDINGS: &[&str] = &[".js", ".mjs", ".cjs", ".ts", ".py", ".exe", ".cmd", ".sh"];
/// The longest name.
const MOST: usize = 40;
/// Where a command says nothing.
const NOTHING: &str = "server";

/// The name of a server that this command starts.
pub(crate) fn of_command(command: &[String]) -> String {
    let found = command.iter().map(String::as_str).collect::<Vec<_>>();
    cleaned(naming_word(&found).unwrap_or_default())
}

/// The word of a command that says what is run.
fn naming_word<'a>(command: &[&'a str]) -> Option<&'a str> {
    let (program, rest) = command.split_first()?;
    let name = named_part(program);
    let Some((_, between)) = RUNNERS.iter().find(|(runner, _)| *runner == name) else {
        return Some(program);
    };
    let mut words = rest.iter().copied();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') && !between.contains(&word) && !word.contains('=') {
            return Some(word);
        }
    }
    Some(program)
}

/// The last part of a path or of a package's name that says something.
fn named_part(word: &str) -> &str {
    let parts = word.rsplit(['/', '\\']).map(stem).filter(|part| !part.is_empty());
    parts
        .clone()
        .find(|part| !NAMELESS.contains(part))
        .or_else(|| parts.clone().next())
        .unwrap_or_default()
}

/// A file's name without its ending, a package's without its version, an image's without its tag.
fn stem(part: &str) -> &str {
    let part = match part.char_indices().find(|(at, c)| *at > 0 && matches!(c, '@' | ':')) {
        Some((at, _)) => part.get(..at).unwrap_or(part),
        None => part,
    };
    ENDINGS.iter().find_map(|ending| part.strip_suffix(ending)).unwrap_or(part)
}

/// A name as grants and tools can have it.
fn cleaned(word: &str) -> String {
    let part = named_part(word).trim_start_matches('@').to_lowercase();
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let letters: String = part.chars().map(letter).collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    let mut name = words.join("-");
    let strip = |name: &str| {
        let before = BEFORE.iter().find_map(|it| name.strip_prefix(it));
        before.or_else(|| BEHIND.iter().find_map(|it| name.strip_suffix(it))).map(str::to_owned)
    };
    while let Some(shorter) = strip(&name).filter(|shorter| !shorter.is_empty()) {
        name = shorter;
    }
    let name: String = name.chars().take(MOST).collect();
    if name.is_empty() { NOTHING.to_owned() } else { name }
}

/// Whether a name can stand in grants and before the names of tools.
pub(crate) fn check(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err("expected 1 to 64 letters, digits, `-` and `_`".to_owned());
    }
    if name.contains("__") {
        return Err("expected no `__`, which stands between a server and its tool".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{check, of_command};

    #[test]
    fn a_server_is_named_by_the_command_that_starts_it() {
        for (command, expected) in [
            ("npx -y @modelcontextprotocol/server-filesystem /tmp", "filesystem"),
            ("npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .", "filesystem"),
            ("npx --package @playwright/mcp playwright-mcp", "playwright"),
            ("npx @playwright/mcp@latest --headless", "playwright"),
            ("uvx mcp-server-git --repository .", "git"),
            ("uv --directory /x run mcp_server_time", "time"),
            ("python -m mcp_server_fetch", "fetch"),
            ("node /opt/server-everything/dist/index.js stdio", "everything"),
            ("docker run -i --rm -e KEY=1 ghcr.io/github/github-mcp-server:v1", "github"),
            ("/usr/local/bin/mcp-fixture --page-size 3", "fixture"),
            ("./weather.py", "weather"),
            ("env A=1 notes", "notes"),
            ("npx", "npx"),
            ("server", "server"),
            ("./日本", "server"),
            ("", "server"),
        ] {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            assert_eq!(of_command(&words), expected, "{command}");
            assert!(check(expected).is_ok(), "{expected}");
        }
    }

    #[test]
    fn a_name_cannot_be_taken_for_a_server_and_its_tool() {
        for (name, fits) in [
            ("files", true),
            ("my-files-2_a", true),
            ("a.b", false),
            ("", false),
            ("a__b", false),
            ("a b", false),
            ("a/b", false),
        ] {
            assert_eq!(check(name).is_ok(), fits, "{name}");
        }
    }
}
