//! Commands that run what comes from elsewhere, or open a shell to a remote party.

use std::collections::{HashMap, HashSet};

use crate::facts::shell::{Script, Simple, Word, code_of, is_shell};

/// Programs that fetch.
const FETCHERS: &[&str] = &[
    "curl", "wget", "fetch", "http", "https", "xh", "aria2c", "lynx", "w3m", "nc", "ncat",
    "netcat", "socat", "dig", "nslookup", "host", "ftp", "tftp", "scp", "sftp", "gsutil",
    "certutil", "iwr",
];
/// Programs that decode, or turn text around.
const DECODERS: &[&str] = &[
    "base64", "base32", "basenc", "xxd", "openssl", "uudecode", "rev", "tr", "gpg", "hexdump",
    "od", "gunzip", "zcat", "bzcat", "xzcat", "unxz", "bunzip2", "gzip", "xz",
];

fn is_source(name: &str) -> bool {
    FETCHERS.contains(&name) || DECODERS.contains(&name)
}

fn interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    is_shell(name)
        || matches!(plain, "python" | "perl" | "ruby" | "node" | "php" | "lua" | "pypy" | "iex")
}

/// Runs what was fetched or decoded.
pub(super) fn run(script: &Script) -> Option<&'static str> {
    let piped = script.pipes(|command| is_source(&command.name()), reads_program);
    let found = piped || script.commands.iter().any(runs_output) || runs_download(script);
    found.then_some("runs what was fetched or decoded")
}

/// Whether an interpreter takes its program from what it reads.
fn reads_program(command: &Simple) -> bool {
    let name = command.name();
    if !interpreter(&name) {
        return matches!(name.as_str(), "source" | ".") && command.arguments().any(is_input);
    }
    if is_shell(&name) && command.has_any(&["-s"]) {
        return true;
    }
    !command.has_any(&["-c", "-m", "-e", "-r", "-p", "-ne", "-pe", "-E"])
        && command.arguments().all(|text| text.starts_with('-') || is_input(text))
}

fn is_input(text: &str) -> bool {
    matches!(text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Whether a command runs the output of such programs: `eval "$(curl …)"`, `sh <(curl …)`.
fn runs_output(command: &Simple) -> bool {
    if !command.sources.iter().any(|name| is_source(name)) {
        return false;
    }
    let name = command.name();
    let stands_for_output = |word: &Word| word.text.contains("$(…)") || word.text.contains("<(…)");
    if command.words.first().is_some_and(stands_for_output) {
        return true;
    }
    if matches!(name.as_str(), "eval" | "source" | "." | "exec" | "trap") {
        return true;
    }
    if !interpreter(&name) {
        return false;
    }
    let mut words = command.words.iter().skip(1);
    words.find(|word| !word.text.starts_with('-')).is_some_and(stands_for_output)
        || command.fed.as_deref().is_some_and(|fed| fed.contains("$(…)"))
}

/// Whether a file that was fetched is run later in the same line.
fn runs_download(script: &Script) -> bool {
    let mut fetched: HashSet<String> = HashSet::new();
    for command in &script.commands {
        let name = command.name();
        let base = |text: &str| text.rsplit('/').next().unwrap_or(text).to_owned();
        if is_source(&name) {
            fetched.extend(targets_of_fetch(command).map(base));
            continue;
        }
        if fetched.is_empty() {
            continue;
        }
        let program = command.words.first().map(|word| base(&word.text)).unwrap_or_default();
        let runs = interpreter(&name) || matches!(name.as_str(), "source" | ".");
        let script = command.arguments().find(|text| !text.starts_with('-')).map(base);
        let is_fetched = |text: &String| !text.is_empty() && fetched.contains(text);
        if is_fetched(&program) || (runs && script.as_ref().is_some_and(is_fetched)) {
            return true;
        }
    }
    false
}

fn targets_of_fetch(command: &Simple) -> impl Iterator<Item = &str> {
    let mut after_flag = false;
    let words = command.arguments().filter(move |text| {
        let named = std::mem::replace(&mut after_flag, matches!(*text, "-o" | "-O" | "--output"));
        (named && !text.starts_with('-')) || text.contains("://")
    });
    words.chain(command.written())
}

/// Opens a shell to a remote party, or sends away what the environment holds.
pub(super) fn remote_shells(script: &Script) -> Option<&'static str> {
    let commands = script.commands.iter();
    if commands.clone().any(connects_shell) || script.pipelines().any(|it| pipes_shell(&it)) {
        return Some("hands a shell to somebody elsewhere");
    }
    let environment = |command: &Simple| {
        let name = command.name();
        (name == "env" && command.words.len() == 1) || name == "printenv"
    };
    let sends = script.pipes(environment, |it| FETCHERS.contains(&it.name().as_str()));
    sends.then_some("sends away what the environment holds")
}

fn connects_shell(command: &Simple) -> bool {
    let name = command.name();
    let words =
        || command.arguments().chain(command.redirects.iter().map(|(_, word)| word.text.as_str()));
    let device = |text: &str| {
        text.contains("/dev/tcp/") || text.contains("/dev/udp/") || text.contains("/inet/tcp")
    };
    if name != "echo" && name != "grep" && words().any(device) {
        return true;
    }
    match name.as_str() {
        "nc" | "ncat" | "netcat" => command.arguments().any(|text| {
            let cluster = text.starts_with('-') && !text.starts_with("--");
            (cluster && text.contains(['e', 'c']))
                || matches!(text, "--exec" | "--sh-exec" | "--lua-exec")
        }),
        "socat" => command.arguments().any(|text| {
            let upper = text.to_uppercase();
            upper.contains("EXEC:") || upper.contains("SYSTEM:") || upper.contains("SHELL:")
        }),
        _ => code_of(command).is_some_and(|(_, code)| is_remote_shell(code)),
    }
}

fn is_remote_shell(code: &str) -> bool {
    let lower = code.to_lowercase();
    let has = |parts: &str| parts.split(' ').any(|part| lower.contains(part));
    let connects = has("socket fsockopen net.connect createconnection /inet/tcp");
    let runs =
        has("dup2 subprocess pty /bin/sh /bin/bash exec spawn os.system popen cmd.exe proc_open");
    let decodes = has("b64decode base64_decode atob( fromhex decode_base64");
    let evaluates = has("exec( eval(") || lower.contains("eval ");
    (connects && runs) || (decodes && evaluates)
}

/// A shell between programs that connect: `cat f | sh -i | nc h p > f`.
fn pipes_shell(pipeline: &[&Simple]) -> bool {
    let connects = |command: &&Simple| {
        let name = command.name();
        matches!(name.as_str(), "nc" | "ncat" | "netcat" | "telnet" | "socat")
            || (name == "openssl" && command.has_any(&["s_client"]))
    };
    pipeline.iter().any(|command| is_shell(&command.name()) && !is_script(command))
        && pipeline.iter().any(connects)
}

fn is_script(command: &Simple) -> bool {
    command.arguments().any(|text| !text.starts_with('-'))
}

/// Starts itself over and over.
pub(super) fn fork_bombs(script: &Script) -> Option<&'static str> {
    let functions: HashSet<String> =
        script.functions.iter().map(|function| function.to_lowercase()).collect();
    // How often each function is called, and whether in the background.
    let mut calls: HashMap<String, (usize, bool)> = HashMap::new();
    let mut piped = false;
    for pipeline in script.pipelines().filter(|_| !functions.is_empty()) {
        let mut here = HashSet::new();
        for command in pipeline {
            let name = command.name();
            if functions.contains(&name) {
                let (count, background) = calls.entry(name.clone()).or_default();
                *count += 1;
                *background |= command.background;
                piped |= !here.insert(name);
            }
        }
    }
    let bomb = piped || calls.values().any(|(count, background)| *background && *count > 1);
    let code = script.commands.iter().filter_map(code_of).any(|(_, code)| {
        let lower = code.to_lowercase();
        lower.contains("fork") && (lower.contains("while") || lower.contains("loop"))
    });
    (bomb || code).then_some("starts itself over and over")
}
