//! What code imports, found by patterns.

use std::sync::LazyLock;

use regex::Regex;

/// The ways to import, each with the module or modules as its first group.
static IMPORTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"(?m)(?:^|[;:]|\bexec\(\s*['\x22])\s*import\s+([\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+(?:\s+as\s+\w+)?)*)",
        r"(?m)(?:^|[;:])\s*from\s+([\w.]+)\s+import\b",
        r#"\b(?:require|import|__import__|import_module|find_spec)\s*\(\s*['"`]([^'"`]+)['"`]"#,
        r#"\bimport\s+(?:[\w*{},\s$]+\s+from\s+)?['"]([^'"]+)['"]"#,
        r#"(?m)^\s*require(?:_relative)?\s+['"]([^'"]+)['"]"#,
        r"(?m)^\s*use\s+([A-Z][\w:]*)",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

static NETWORK_CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\bfetch\s*\(|\bXMLHttpRequest\b|\bnew\s+WebSocket\b|\bnavigator\.sendBeacon\b|\burlopen\s*\(|\bTcpStream::connect\b|\bfsockopen\s*\(|\bcurl_init\s*\(|/dev/tcp/",
    )
    .ok()
});

/// The modules that code imports.
pub(super) fn of(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for pattern in IMPORTS.iter() {
        for captures in pattern.captures_iter(code) {
            let Some(group) = captures.get(1) else { continue };
            // `import x from 'y'` imports `y`.
            let after = code.get(group.end()..).unwrap_or_default().trim_start();
            if after.starts_with("from ") {
                continue;
            }
            let names = group.as_str().split(',').map(str::trim);
            found.extend(names.filter_map(|name| name.split_whitespace().next()));
        }
    }
    found
}

/// Whether code uses the network without importing anything. A pattern that cannot be made counts
/// as yes.
pub(super) fn calls_network(code: &str) -> bool {
    NETWORK_CALLS.as_ref().is_none_or(|pattern| pattern.is_match(code))
}

/// The usual name of a language.
pub(super) fn usual_name(language: &str) -> &str {
    match language {
        "py" | "python3" | "ipython" => "python",
        "js" | "node" | "nodejs" => "javascript",
        "ts" => "typescript",
        "rb" => "ruby",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_of_several_languages_are_found() {
        for (code, expected) in [
            ("import os", "os"),
            ("import os.path as p, sys", "os.path sys"),
            ("x = 1; import os", "os"),
            ("from a.b import c", "a.b"),
            ("__import__('os')", "os"),
            ("importlib.import_module(\"os\")", "os"),
            ("const a = require('fs')", "fs"),
            ("import a from 'fs'", "fs"),
            ("await import(`net`)", "net"),
            ("require 'socket'", "socket"),
            ("use Socket;", "Socket"),
            ("print('important')", ""),
        ] {
            assert_eq!(of(code).join(" "), expected, "{code}");
        }
    }

    #[test]
    fn the_patterns_can_be_made() {
        assert_eq!(IMPORTS.len(), 6);
        assert!(NETWORK_CALLS.is_some());
        assert!(calls_network("fetch('x')") && !calls_network("prefetch = 1"));
    }
}
