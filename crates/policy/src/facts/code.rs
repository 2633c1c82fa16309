//! String literals in code, found without parsing the language.

/// How many literals are inspected.
const MAX_LITERALS: usize = 256;
/// How much code is inspected, in bytes.
const MAX_CODE: usize = 256 * 1024;

/// A text in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Literal<'a> {
    /// The text.
    pub(crate) text: &'a str,
    /// It is passed to something that runs commands.
    pub(crate) runs: bool,
}

/// The calls that run a command line.
const RUNNERS: &[&str] = &[
    "os.system(",
    "os.execute(",
    "system(",
    "popen(",
    "exec(",
    "execSync(",
    "spawn(",
    "spawnSync(",
    "shell_exec(",
    "passthru(",
    "subprocess.run(",
    "subprocess.call(",
    "check_output(",
    "check_call(",
    "Popen(",
    "getoutput(",
    "execvp(",
    "execl(",
    "%x(",
    "Command::new(",
    "proc_open(",
];

/// The texts in quotes of some code, in order.
pub(crate) fn literals(code: &str) -> Vec<Literal<'_>> {
    let mut found = Vec::new();
    let mut rest = code.get(..MAX_CODE).unwrap_or(code);
    while let Some(start) = rest.find(['\'', '"', '`']) {
        let (Some(before), Some(after)) = (rest.get(..start), rest.get(start..)) else { break };
        let mut chars = after.chars();
        let Some(quote) = chars.next() else { break };
        let inner = chars.as_str();
        let Some(end) = closing(inner, quote) else { break };
        let text = inner.get(..end).unwrap_or_default();
        let call = before.trim_end_matches(['r', 'b', 'f', 'u', '[', ' ', '\n', '\t']);
        let runs = RUNNERS.iter().any(|runner| call.ends_with(runner));
        if !text.is_empty() {
            found.push(Literal { text, runs });
        }
        if found.len() >= MAX_LITERALS {
            break;
        }
        rest = inner.get(end + 1..).unwrap_or_default();
    }
    found
}

fn closing(inner: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (place, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(place),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_quotes_are_found_and_who_runs_them() {
        let code =
            "import os\nos.system('rm -rf /')\nopen(\"/etc/x\\\"y\")\nsubprocess.run([\"ls\"])";
        let found: Vec<(&str, bool)> =
            literals(code).iter().map(|found| (found.text, found.runs)).collect();
        assert_eq!(found, [("rm -rf /", true), ("/etc/x\\\"y", false), ("ls", true)]);
        assert_eq!(literals("it's"), []);
        assert_eq!(literals(""), []);
    }
}
