//! What is looked for in the text itself: the commands of other shells, and code on the line.

use std::sync::LazyLock;

use regex::RegexSet;

use crate::facts::shell::Script;

const TEXTS: &[(&str, &str)] = &[
    (r"(?i)\biex\s*[(\$\x22'&]|\|\s*iex\b|\binvoke-expression\b", "runs text as a command"),
    (
        r"(?i)\b(powershell|pwsh)(\.exe)?\b.*\s-e(nc|ncodedcommand|c)?\s+[a-z0-9+/=]{8,}",
        "runs what was decoded",
    ),
    (
        r"(?i)\bdownloadstring\s*\(|\bdownloadfile\s*\(|\bstart-bitstransfer\b",
        "fetches in PowerShell",
    ),
    (
        r"(?i)\bremove-item\b.*\s-rec\w*.*([a-z]:\\|[a-z]:/|~|\$env:|/|\*)\s*('|\x22)?(\s|$|-)",
        "deletes a whole tree",
    ),
    (r"(?i)\b(del|erase)\b(\s+/[a-z])*\s+/[sq]\b.*([a-z]:\\|%|\*)", "deletes a whole tree"),
    (r"(?i)\b(rd|rmdir)\s+/s\b.*([a-z]:\\|%)", "deletes a whole tree"),
    (r"(?i)(^|[;&|]\s*|/c\s+)format(\.com)?\s+[a-z]:", "overwrites a device or a file system"),
    (
        r"(?i)\bvssadmin\b.*\bdelete\b|\bwbadmin\b.*\bdelete\b|\bbcdedit\b.*/set",
        "takes down defences",
    ),
    (
        r"(?i)\bset-mppreference\b.*-disable|\bnetsh\b.*\bfirewall\b.*\b(off|disable)\b|\bset-executionpolicy\b",
        "takes down defences",
    ),
    (
        r"(?i)\bcertutil\b.*-(urlcache|decode)|\bmshta\b\s+(https?|javascript|vbscript)|\bbitsadmin\b.*/transfer|\bregsvr32\b.*/i:",
        "runs what was fetched or decoded",
    ),
    (
        r"(?i)\breg(\.exe)?\s+(add|delete)\b.*\\(run|runonce|winlogon|policies)\b",
        "stays when the session ends",
    ),
    (
        r"\bHISTFILE=(/dev/null|\s|$|;)|\bHISTSIZE=0|\bHISTFILESIZE=0|\bunset\s+HISTFILE\b",
        "hides what was done",
    ),
    (r"\bsetuid\(\s*0", "takes or gives privileges"),
    (r"\bLD_PRELOAD=|\bLD_AUDIT=|\bDYLD_INSERT_LIBRARIES=", "loads code into every program"),
    (
        r#"\brmtree\(\s*['"](/|~|/home|/etc|/usr)/?['"]|\brm(dir)?Sync\(\s*['"](/|~|/home|/etc|/usr)/?['"]"#,
        "deletes a whole tree",
    ),
    (
        r"\bexec\(\s*(__import__\(['\x22]base64|base64\.|bytes\.fromhex|codecs\.decode)",
        "runs what was decoded",
    ),
];

static SET: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(TEXTS.iter().map(|(pattern, _)| pattern)).ok());

/// Whether the text itself is forbidden. Patterns that cannot be made forbid everything.
pub(super) fn forbidden(script: &Script) -> Option<&'static str> {
    let Some(set) = SET.as_ref() else { return Some("cannot be judged") };
    // Carets hide nothing from the shell of Windows.
    let plain = script.seen.replace('^', "");
    let lines = script.commands.iter().map(|command| command.line());
    let found = |text: &str| set.matches(text).iter().next();
    let first = found(&plain).or_else(|| lines.into_iter().find_map(|line| found(&line)))?;
    TEXTS.get(first).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_can_be_made() {
        assert!(SET.is_some());
    }
}
