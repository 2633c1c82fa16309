//! The paths and the places that a command names, as far as its words show it.

use super::word::Word;
use super::{Copied, Script, Simple};
use crate::facts::{Access, destination, has_word};

/// Commands whose words are text.
const TALKERS: &[&str] =
    &["echo", "printf", "true", "test", "[", "alias", "export", "expr", "seq", "jq"];
/// Commands whose first word is a pattern or a program.
const PATTERNS: &[&str] =
    &["grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "perl", "jq", "yq"];
/// Commands whose words are files, also without a `/`.
const READERS: &str = "cat head tail less more tac nl od xxd hexdump strings base64 source . vim vi nano view bat \
    sort cut paste wc file stat diff cmp tar zip gzip scp rsync ls openssl gpg md5sum sha256sum \
    code open xargs cd pushd grep rg awk sed du tree find rev dd";
/// Commands that change the files that they name.
const WRITERS: &[&str] = &[
    "rm", "mv", "cp", "ln", "tee", "touch", "mkdir", "rmdir", "chmod", "chown", "chgrp",
    "truncate", "shred", "install", "unlink", "patch",
];
/// What `find` is told of the names of files.
const FINDS: &str = "-name -iname -path -ipath -wholename -iwholename";
/// Commands that connect to their first plain word.
const CALLERS: &str = "curl wget nc ncat netcat telnet ping ssh ftp sftp http https httpie xh dig nslookup host \
    nmap socat aria2c lynx w3m traceroute";

/// The paths of a command and what is done to them.
pub(super) fn paths(command: &Simple) -> Vec<(String, Access)> {
    let mut found: Vec<(String, Access)> = Vec::new();
    for (writes, target) in &command.redirects {
        let access = if *writes { Access::Write } else { Access::Read };
        if !matches!(target.text.as_str(), "/dev/null" | "/dev/stdout" | "/dev/stderr") {
            push(&mut found, target, &target.text, access);
        }
    }
    let name = command.name();
    let name = name.as_str();
    // A program that is started by its path is read.
    if let Some(first) = command.words.first()
        && first.text.contains('/')
        && !is_usual_program(&first.text)
    {
        push(&mut found, first, &first.text, Access::Read);
    }
    if TALKERS.contains(&name) {
        return found;
    }
    let writes = WRITERS.contains(&name)
        || (name == "sed" && command.arguments().any(|text| text.starts_with("-i")));
    let access = if writes { Access::Write } else { Access::Read };
    let bare_names = writes || has_word(READERS, name);
    let mut words = command.words.iter().skip(1).peekable();
    let mut pattern =
        PATTERNS.contains(&name) && !command.arguments().any(|text| text == "-e" || text == "-f");
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if is_message_flag(name, text) {
            words.next();
        } else if text.starts_with('-') {
            flag_value(text).into_iter().for_each(|value| push(&mut found, word, value, access));
        } else if std::mem::take(&mut pattern) {
        } else {
            let value = operand(text);
            if looks_like_path(value)
                || destination::is_file(value)
                || (bare_names && is_bare_name(value))
            {
                push(&mut found, word, value, access);
            }
        }
    }
    found
}

fn push(found: &mut Vec<(String, Access)>, word: &Word, text: &str, access: Access) {
    if let Some(wide) = word.widened().filter(|_| text == word.text) {
        found.push((wide, access));
    }
    if access == Access::Write
        && let Some(pattern) = word.as_pattern().filter(|_| text == word.text)
    {
        found.push((pattern, access));
    }
    if text.contains("$(…)") || text.contains("<(…)") {
        return;
    }
    found.push((text.to_owned(), access));
    // What is unknown in the middle of a name may be nothing.
    if let Some(bare) = word.bare.as_deref().filter(|bare| bare.len() > 1 && !text.starts_with('$'))
    {
        found.push((operand(bare).to_owned(), access));
    }
}

/// The words that may name a file, whatever the command does with them.
pub(super) fn operands(command: &Simple) -> Vec<&str> {
    let name = command.name();
    let mut found: Vec<&str> = command.redirects.iter().map(|(_, word)| &*word.text).collect();
    if matches!(name.as_str(), "echo" | "printf" | "export" | "alias" | "test" | "[") {
        return found;
    }
    found.extend(command.words.first().map(|word| &*word.text).filter(|text| text.contains('/')));
    let mut words = command.arguments();
    while let Some(text) = words.next() {
        if is_message_flag(&name, text) {
            words.next();
        } else {
            found.push(text);
        }
    }
    found
}

/// The folders that a command changes to, for itself or for those after it. One that is only known
/// when it runs may be any.
pub(super) fn folders(command: &Simple) -> Vec<String> {
    let name = command.name();
    let mut words = command.words.iter().skip(1);
    let mut found = Vec::new();
    if matches!(name.as_str(), "cd" | "chdir" | "pushd" | "set-location" | "sl") {
        let target = words.find(|word| !word.text.starts_with('-') || word.bare.is_some());
        found.push(target.map_or_else(|| "~".to_owned(), Word::as_folder));
        return found;
    }
    let flags = match name.as_str() {
        "tar" | "bsdtar" | "make" | "gmake" => "-C --directory --cd",
        "git" => "-C --work-tree --git-dir",
        "env" => "-C --chdir",
        "sudo" | "doas" => "-D --chdir",
        "ninja" | "cargo" | "meson" | "go" | "pnpm" | "terraform" => "-C -chdir --dir",
        "npm" => "--prefix -C",
        "find" | "fd" => {
            // What `-execdir` runs and `{}` stands for is below the folders that are searched.
            let roots = words.take_while(|word| !word.text.starts_with(['-', '(', '!']));
            return roots.map(Word::as_folder).collect();
        }
        "unzip" => "-d",
        "systemd-run" => "--working-directory",
        "docker" | "podman" => "-w --workdir",
        _ => return found,
    };
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if has_word(flags, text) {
            found.extend(words.next().map(Word::as_folder));
        } else if let Some((flag, value)) = text.split_once('=').filter(|_| text.starts_with('-')) {
            found.extend(has_word(flags, flag).then(|| value.to_owned()));
        } else if let Some(value) = text.strip_prefix("-C").filter(|_| has_word(flags, "-C")) {
            found.push(value.to_owned());
        }
    }
    found
}

/// The other names that a command gives to files and folders: what each stands for, and the name.
pub(super) fn links(command: &Simple) -> Vec<(String, String)> {
    let takes = "ln cp mv rsync mount install mklink";
    if !has_word(takes, &command.name()) {
        return Vec::new();
    }
    let plain: Vec<&str> = command.arguments().filter(|text| !text.starts_with('-')).collect();
    match plain.as_slice() {
        [] => Vec::new(),
        [target] => vec![((*target).to_owned(), ".".to_owned())],
        [targets @ .., name] => {
            targets.iter().map(|target| ((*target).to_owned(), (*name).to_owned())).collect()
        }
    }
}

/// What a command writes by copying or moving it into a folder.
pub(super) fn copied(command: &Simple) -> Option<Copied> {
    let name = command.name();
    if !has_word("cp mv ln install rsync scp", &name) {
        return None;
    }
    let (mut plain, mut into, mut whole) = (Vec::new(), None, has_word("mv rsync", &name));
    let mut words = command.words.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if matches!(text, "-t" | "--target-directory") {
            into = words.next().map(Word::as_folder);
        } else if let Some(folder) = text.strip_prefix("--target-directory=") {
            into = Some(folder.to_owned());
        } else if text.starts_with('-') && text.len() > 1 {
            let letters = !text.starts_with("--") && text.contains(['r', 'R', 'a']);
            whole |= letters || matches!(text, "--recursive" | "--archive");
        } else {
            plain.push(word);
        }
    }
    let into = into.or_else(|| plain.pop().map(Word::as_folder))?;
    let base = |source: &Word| {
        let text = source.bare.as_deref().unwrap_or(&source.text);
        let base = text.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        // All that is in a folder, at any depth.
        let all = (name == "rsync" && text.ends_with('/')) || matches!(base, "." | "..");
        if all { "**".to_owned() } else { base.to_owned() }
    };
    let names = plain.into_iter().map(base).filter(|base| !base.is_empty()).collect();
    Some(Copied { into, names, whole })
}

/// The folders that a command empties whatever the names of the files are.
pub(super) fn emptied(command: &Simple) -> Vec<String> {
    let deletes = command.name() == "find" && command.has_any(&["-delete"]);
    if !deletes || command.arguments().any(|text| has_word(FINDS, text)) {
        return Vec::new();
    }
    let roots = folders(command);
    if roots.is_empty() { vec![".".to_owned()] } else { roots }
}

/// What `find` finds for another command: files of these names, anywhere below where it looks.
pub(super) fn found(command: &Simple, script: &Script) -> Vec<(String, Access)> {
    if command.name() != "find" {
        return Vec::new();
    }
    let acts = ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fls"];
    let handed = |other: &Simple| {
        other.sources.iter().any(|source| source == "find")
            || (other.pipeline == command.pipeline && has_word("xargs parallel", &other.name()))
    };
    if !command.has_any(&acts) && !script.commands.iter().any(handed) {
        return Vec::new();
    }
    let mut roots = folders(command);
    if roots.is_empty() {
        roots.push(".".to_owned());
    }
    let mut names = Vec::new();
    let mut words = command.arguments();
    while let Some(text) = words.next() {
        if has_word(FINDS, text) {
            names.extend(words.next());
        }
    }
    let below = |root: &String, name: &str| format!("{}/**/{name}", root.trim_end_matches('/'));
    let paths = roots.iter().flat_map(|root| names.iter().map(|name| below(root, name)));
    let access = if command.has_any(&["-delete"]) { Access::Write } else { Access::Read };
    paths.map(|path| (path, access)).collect()
}

fn is_usual_program(text: &str) -> bool {
    ["/bin/", "/usr/", "/sbin/", "/opt/"].iter().any(|start| text.starts_with(start))
        && !text.contains("..")
}

/// Flags whose value is a message, not a path.
fn is_message_flag(name: &str, text: &str) -> bool {
    let flags = match name {
        "git" | "gh" | "svn" | "hg" => "-m --message -b --body -t --title --grep -S -G",
        "curl" => "-H -X -A -e -u -w --header --request",
        "find" => "-name -iname -path -not -regex -type",
        _ => return false,
    };
    has_word(flags, text)
}

/// The path in a flag: `--file=/x`, `-f/x`, `-I../x`.
fn flag_value(text: &str) -> Option<&str> {
    if let Some((_, value)) = text.split_once('=') {
        return Some(value).filter(|it| looks_like_path(it) || destination::is_file(it));
    }
    let value = text.get(2..).filter(|_| !text.starts_with("--"))?;
    value.starts_with(['/', '~', '.']).then_some(value)
}

/// The path in a word: of `@file`, `if=/x`, `host:/x`.
fn operand(text: &str) -> &str {
    let text = text.strip_prefix('@').unwrap_or(text);
    let value = text.split_once('=').filter(|(name, _)| super::reader::is_variable(name));
    let text = value.map_or(text, |(_, value)| value);
    text.strip_prefix('@').unwrap_or(text)
}

fn looks_like_path(text: &str) -> bool {
    if text.contains("://") || text.contains('\n') {
        return false;
    }
    text.contains('/') && !text.contains(' ')
        || text.starts_with("~/")
        || text.starts_with("/")
        || text == "~"
        || (text.starts_with('.') && text.len() > 1 && !text.contains(' '))
        || text.starts_with("$HOME")
}

fn is_bare_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 256
        && !text.contains([' ', '\n', ':', '{', '('])
        && !text.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'+')
}

/// The places of a command.
pub(super) fn places(command: &Simple) -> Vec<String> {
    let name = command.name();
    let talks = TALKERS.contains(&name.as_str());
    let calls = has_word(CALLERS, &name);
    let mut found = Vec::new();
    let targets = command.redirects.iter().map(|(_, word)| word.text.as_str());
    for text in command.arguments().chain(targets) {
        let device = text.strip_prefix("/dev/tcp/").or_else(|| text.strip_prefix("/dev/udp/"));
        if let Some(rest) = device {
            found.push(rest.replacen('/', ":", 1));
        }
    }
    if talks {
        return found;
    }
    let mut words = command.arguments();
    while let Some(text) = words.next() {
        if calls && takes_value(&name, text) {
            let value = words.next();
            found.extend(
                value.filter(|_| matches!(text, "-x" | "--proxy" | "--url")).map(str::to_owned),
            );
            continue;
        }
        let value = text
            .split_once('=')
            .filter(|_| text.starts_with("--"))
            .map_or(text, |(_, value)| value);
        let one_word = !value.contains([' ', '\n']);
        if one_word && value.contains("://") && !destination::is_file(value) {
            found.push(value.to_owned());
        } else if !text.starts_with('-')
            && one_word
            && (calls || is_copy(&name, text))
            && destination::looks_like_host(text)
        {
            found.push(text.to_owned());
        }
    }
    found
}

/// `user@host:path`, as these take it.
fn is_copy(name: &str, text: &str) -> bool {
    matches!(name, "git" | "scp" | "rsync" | "sftp") && text.contains('@') && text.contains(':')
}

/// Flags that take the word after them, which is no destination.
fn takes_value(name: &str, text: &str) -> bool {
    let flags = match name {
        "curl" | "http" | "https" | "xh" => {
            "-o -d -H -X -u -F -T -e -A -b -c -w -K -m -E -x --proxy --url --data --data-raw \
             --data-binary --header --request --output --user --form --cacert --cert --key \
             --max-time --connect-timeout --retry --data-urlencode --user-agent"
        }
        "wget" => "-O -o -P -U -t -T --header -i",
        "ssh" | "sftp" => "-i -l -o -F -L -R -D -E -p",
        "nc" | "ncat" | "netcat" => "-p -s -w -e -c",
        "ping" | "traceroute" => "-c -i -W -w -m",
        "dig" | "nslookup" => return text.starts_with('@'),
        _ => return false,
    };
    has_word(flags, text)
}
