//! Commands within commands: what `env`, `xargs`, `sh -c`, `eval`, `find -exec` and the like run.

use super::expand::output_of;
use super::reader::{MAX_INSERTED, Reader, State};
use super::word::Word;
use super::{Simple, Unreadable};
use crate::facts::glob::matches_name;

/// How many commands within commands are followed.
const MAX_FOLLOWED: usize = 1024;

/// How many files are remembered with what was written into them.
const MAX_WRITTEN: usize = 64;

/// A command that another one runs.
enum Inner {
    /// A command, as these words.
    Words(Vec<Word>),
    /// A text that is a command line of its own.
    Text(String),
    /// Such a text, and what its `$0`, `$1` and so on stand for.
    Given(String, Vec<String>),
}

/// Whether a language, or a command, is a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "ash"
            | "fish"
            | "csh"
            | "tcsh"
            | "mksh"
            | "rbash"
            | "shell"
            | "pwsh"
            | "powershell"
            | "console"
            | "shellscript"
    )
}

/// The programs that a name with `*` or `?` is compared with.
const HIDDEN: &[&str] = &[
    "rm", "dd", "sh", "bash", "nc", "ncat", "mkfs", "shred", "chmod", "chown", "curl", "wget",
    "sudo", "su", "cat", "shutdown", "reboot", "kill", "python", "python3", "perl", "base64",
    "crontab",
];

/// Adds every command that is within another.
pub(super) fn follow(state: &mut State<'_>) -> Result<(), Unreadable> {
    let mut at = 0;
    let mut followed = 0;
    // What commands have put into files, by the names of these.
    let mut written: Vec<(String, String)> = Vec::new();
    while let Some(command) = state.script.commands.get(at).cloned() {
        // It is copied, and looked through for what it prints, writes and runs.
        state.work.charge_each(command.size(), 4)?;
        let before = previous(state, at);
        at += 1;
        let kept = runs_written(&command, &written).map(Inner::Text);
        note_written(&command, before.as_deref(), &mut written);
        for inner in inner_of(&command, before.as_deref(), state)?.into_iter().chain(kept) {
            followed += 1;
            if followed > MAX_FOLLOWED {
                return Err(Unreadable::TooMuch);
            }
            match inner {
                Inner::Words(words) if words.is_empty() => {}
                Inner::Words(words) => {
                    let inner = Simple { words, ..command.clone() };
                    state.work.charge_each(inner.size(), 1)?;
                    state.add(inner)?;
                }
                Inner::Text(text) => {
                    // What cannot be read here is no command line, or is only known when it runs.
                    let depth = 1 + followed / 64;
                    Reader::new(&text, state, depth)?.list(None)?;
                }
                Inner::Given(text, given) => {
                    let outer = std::mem::replace(&mut state.given, given);
                    Reader::new(&text, state, 1 + followed / 64)?.list(None)?;
                    state.given = outer;
                }
            }
        }
    }
    Ok(())
}

fn base(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// Notes what a command writes into a file, where the line says it.
fn note_written(command: &Simple, piped: Option<&str>, written: &mut Vec<(String, String)>) {
    let text = match command.name().as_str() {
        "tee" => piped.map(str::to_owned),
        _ => output_of(command),
    };
    let Some(text) = text else { return };
    let is_tee = command.name() == "tee";
    let tees = command.arguments().filter(|_| is_tee);
    let room = MAX_WRITTEN.saturating_sub(written.len());
    for target in command.written().chain(tees).take(room) {
        written.push((base(target).to_owned(), text.clone()));
    }
}

/// The text of a file that was written before and is run here.
fn runs_written(command: &Simple, written: &[(String, String)]) -> Option<String> {
    let name = command.name();
    let runs = is_shell(&name) || matches!(name.as_str(), "source" | ".");
    let first = command.words.first()?;
    let script = command.arguments().find(|text| !text.starts_with('-')).filter(|_| runs);
    let wanted = script.unwrap_or(&first.text);
    let lines =
        written.iter().filter(|(file, _)| file == base(wanted)).map(|(_, text)| text.as_str());
    let lines: Vec<&str> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What the command before this one in its pipeline prints.
fn previous(state: &State<'_>, at: usize) -> Option<String> {
    let commands = &state.script.commands;
    let own = commands.get(at)?;
    let before = commands.get(..at)?.iter().rev();
    let command = before
        .take(8)
        .find(|other| other.pipeline == own.pipeline && output_of(other).is_some())?;
    output_of(command)
}

fn inner_of(
    command: &Simple,
    piped: Option<&str>,
    state: &State<'_>,
) -> Result<Vec<Inner>, Unreadable> {
    let name = command.name();
    let Some((first, rest)) = command.words.split_first() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    if first.globs {
        state.work.charge_each(command.size(), HIDDEN.len())?;
        let fits = HIDDEN.iter().filter(|hidden| matches_name(&name, hidden));
        found.extend(fits.map(|hidden| {
            let words = [Word::plain(hidden)].into_iter().chain(rest.iter().cloned());
            Inner::Words(words.collect())
        }));
        return Ok(found);
    }
    if is_shell(&name) {
        found.extend(shell_text(rest));
        let reads = !rest.iter().any(|word| !word.text.starts_with('-'));
        found.extend(command.fed.clone().map(Inner::Text));
        found.extend(piped.filter(|_| reads).map(|text| Inner::Text(text.to_owned())));
        return Ok(found);
    }
    if matches!(name.as_str(), "source" | ".") {
        found.extend(command.fed.clone().map(Inner::Text));
    }
    found.extend(match name.as_str() {
        "xargs" | "parallel" => piped_words(rest, piped)?,
        "find" | "fd" | "fdfind" => executed(rest, state)?,
        name => wrapped(name, rest),
    });
    Ok(found)
}

/// The text behind `-c`.
fn shell_text(rest: &[Word]) -> Option<Inner> {
    let flag = rest.iter().position(|word| {
        let text = word.text.to_ascii_lowercase();
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|flags| flags.len() <= 8 && flags.contains('c'))
    })?;
    let mut after = rest.iter().skip(flag + 1);
    let text = after.find(|word| !word.text.starts_with(['-', '+']))?;
    let given = after.map(|word| word.text.clone()).collect();
    Some(Inner::Given(text.text.clone(), given))
}

fn wrapped(name: &str, rest: &[Word]) -> Vec<Inner> {
    let words =
        |with_value: &[&str], skip: usize| vec![Inner::Words(behind(rest, with_value, skip))];
    let joined = |from: usize| vec![Inner::Text(joined_text(rest.get(from..).unwrap_or_default()))];
    match name {
        "command" | "exec" | "builtin" | "nohup" | "setsid" | "busybox" | "toybox"
        | "catchsegv" => {
            let asks = rest.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V"));
            if asks { Vec::new() } else { words(&["-a"], 0) }
        }
        "env" => match rest.iter().position(|word| word.text == "-S") {
            Some(flag) => joined(flag + 1),
            None => words(&["-u", "-C", "--unset", "--chdir"], 0),
        },
        "sudo" | "doas" => words(&["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-U", "-D"], 0),
        "nice" | "ionice" | "chrt" => words(&["-n", "-c", "-p"], 0),
        "timeout" | "gtimeout" => words(&["-s", "-k", "--signal"], 1),
        "stdbuf" | "unshare" | "nsenter" | "strace" | "ltrace" | "firejail" | "npx" | "bunx" => {
            words(&["-o", "-e", "-t", "-i", "-p", "--target", "--package"], 0)
        }
        "chroot" | "flock" | "runuser" | "taskset" => words(&["-u", "-c"], 1),
        "eval" => joined(0),
        "watch" => {
            vec![Inner::Text(joined_text(&behind(rest, &["-n", "-d", "--interval"], 0)))]
        }
        "trap" | "alias" => {
            let texts = rest.iter().map(|word| word.text.as_str());
            let value =
                |text: &str| text.split_once('=').map_or(text, |(_, value)| value).to_owned();
            texts.filter(|text| text.contains(' ')).map(|text| Inner::Text(value(text))).collect()
        }
        "su" | "script" => shell_text(rest).into_iter().collect(),
        "ssh" => {
            let words =
                behind(rest, &["-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-E"], 1);
            vec![Inner::Text(joined_text(&words))]
        }
        "docker" | "podman" | "kubectl" | "nerdctl" => contained(rest),
        "cmd" => joined(1),
        "expect" | "less" | "more" | "man" | "tmux" | "screen" | "vim" | "vi" | "nvim" | "ed"
        | "git" | "tar" | "rsync" | "make" => hidden(rest),
        _ => Vec::new(),
    }
}

fn joined_text(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The words behind the flags, and behind `skip` others. A flag of `with_value` takes the word
/// after it.
fn behind(rest: &[Word], with_value: &[&str], mut skip: usize) -> Vec<Word> {
    let mut words = rest.iter();
    while let Some(word) = words.clone().next() {
        let text = word.text.as_str();
        let assigns =
            text.split_once('=').is_some_and(|(name, _)| super::reader::is_variable(name));
        if text == "--" {
            words.next();
            return words.cloned().collect();
        } else if text.starts_with('-') && text.len() > 1 {
            words.next();
            if with_value.contains(&text) {
                words.next();
            }
        } else if assigns {
            words.next();
        } else if skip > 0 {
            words.next();
            skip -= 1;
        } else {
            break;
        }
    }
    words.cloned().collect()
}

/// What `xargs` runs: its words, with what it is given behind them or in the place of `{}`.
fn piped_words(rest: &[Word], piped: Option<&str>) -> Result<Vec<Inner>, Unreadable> {
    let mut words = behind(rest, &["-I", "-n", "-P", "-d", "-L", "-a", "-s", "-E", "-j"], 0);
    let given: Vec<&str> = piped.map(|text| text.split_whitespace().collect()).unwrap_or_default();
    if let Some(place) =
        words.iter_mut().find(|word| word.text.contains("{}")).filter(|_| !given.is_empty())
    {
        let given = given.join(" ");
        if place.text.matches("{}").count().saturating_mul(given.len()) > MAX_INSERTED {
            return Err(Unreadable::TooMuch);
        }
        place.text = place.text.replace("{}", &given);
    } else {
        words.extend(given.into_iter().map(Word::plain));
    }
    Ok(vec![Inner::Words(words)])
}

/// What `find -exec` runs; with `-delete` it deletes where it looks.
fn executed(rest: &[Word], state: &State<'_>) -> Result<Vec<Inner>, Unreadable> {
    let mut found = Vec::new();
    let is_exec =
        |text: &str| matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "--exec");
    for (place, _) in rest.iter().enumerate().filter(|(_, word)| is_exec(&word.text)) {
        let inner = rest.iter().skip(place + 1);
        let inner = inner.take_while(|word| !matches!(word.text.as_str(), ";" | "+"));
        let inner: Vec<Word> = inner.cloned().collect();
        state.work.charge(inner.iter().map(|word| word.text.len() as u64 + 8).sum())?;
        found.push(Inner::Words(inner));
    }
    Ok(found)
}

/// What runs in a container.
fn contained(rest: &[Word]) -> Vec<Inner> {
    let Some(verb) = rest.iter().position(|word| matches!(word.text.as_str(), "exec" | "run"))
    else {
        return Vec::new();
    };
    let after = rest.get(verb + 1..).unwrap_or_default();
    if let Some(marker) = after.iter().position(|word| word.text == "--") {
        return vec![Inner::Words(after.iter().skip(marker + 1).cloned().collect())];
    }
    let with_value = "-v -e -p -w -u --name --network --entrypoint -n -c --mount -l";
    let with_value: Vec<&str> = with_value.split(' ').collect();
    vec![Inner::Words(behind(after, &with_value, 1))]
}

/// Commands that programs take among their words: `:!cmd`, `alias.x=!cmd`, `exec=cmd`.
fn hidden(rest: &[Word]) -> Vec<Inner> {
    let senders = ["send-keys", "new-session", "new-window", "stuff", "new"];
    let sends = rest.iter().any(|word| senders.contains(&word.text.as_str()));
    let of_word = |word: &Word| {
        let text = word.text.as_str();
        let marks =
            [":!", "=!", "exec=", "--to-command=", "--rsh=", "core.sshCommand=", "core.pager="];
        let found = marks.iter().find_map(|mark| text.split_once(mark).map(|(_, command)| command));
        let found = found.or_else(|| text.trim_start_matches(['+', ':']).strip_prefix('!'));
        let found = found.or_else(|| text.trim_start().strip_prefix("spawn "));
        let sent = sends && text.contains(' ');
        found.or(sent.then_some(text)).map(|text| Inner::Text(text.to_owned()))
    };
    rest.iter().filter_map(of_word).collect()
}

/// The code that a command hands to an interpreter, and its language.
pub(crate) fn code_of(command: &Simple) -> Option<(&'static str, &str)> {
    let name = command.name();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (language, flags): (&str, &[&str]) = match plain {
        "python" | "pypy" | "ipython" => ("python", &["-c"]),
        "perl" => ("perl", &["-e", "-E", "-ne", "-pe", "-ple", "-nle"]),
        "ruby" => ("ruby", &["-e"]),
        "node" | "nodejs" | "bun" | "deno" => ("javascript", &["-e", "--eval", "-p", "eval"]),
        "php" => ("php", &["-r"]),
        "lua" => ("lua", &["-e"]),
        "osascript" => ("applescript", &["-e"]),
        "awk" | "gawk" | "mawk" => {
            return command.arguments().find(|text| text.contains('{')).map(|text| ("awk", text));
        }
        _ => return None,
    };
    let mut arguments = command.arguments();
    let inline = arguments.find(|text| flags.contains(text)).and_then(|_| arguments.next());
    inline.or(command.fed.as_deref()).map(|code| (language, code))
}
