//! Commands that destroy: whole trees, devices, traces.

use crate::facts::glob::matches_name;
use crate::facts::has_word;
use crate::facts::shell::{Script, Simple};

/// Deletes a whole tree.
pub(super) fn whole_trees(script: &Script) -> Option<&'static str> {
    let bad = |command: &Simple| match command.name().as_str() {
        "rm" | "srm" => sweeps_with_rm(command),
        "find" | "fd" | "fdfind" => sweeps_with_find(command),
        "mv" => {
            let words: Vec<&str> = command.arguments().collect();
            matches!(words.split_last(), Some((&"/dev/null", from)) if !from.is_empty())
        }
        "rsync" => {
            command.arguments().any(|text| text.starts_with("--delete"))
                && command.arguments().last().is_some_and(is_sweeping)
        }
        "shred" | "wipe" | "truncate" => targets(command).any(is_sweeping),
        // A name that is only known when it runs, with the words of `rm`.
        name if name.starts_with('$') => {
            sweeps_with_rm(command) && has_flag(command, 'f', "--force")
        }
        _ => false,
    };
    let lists = |command: &Simple| {
        let name = command.name();
        // Behind its first flag, `find` has conditions.
        let mut roots = targets(command).take(if name == "ls" { usize::MAX } else { 1 });
        matches!(name.as_str(), "find" | "ls" | "fd") && roots.any(is_sweeping_root)
    };
    let piped = script.pipes(lists, |it| matches!(it.name().as_str(), "rm" | "shred"));
    (piped || script.commands.iter().any(bad)).then_some("deletes a whole tree")
}

fn sweeps_with_rm(command: &Simple) -> bool {
    if command.arguments().any(|text| text.starts_with("--no-preserve")) {
        return true;
    }
    let recursive = has_flag(command, 'r', "--recursive") || has_flag(command, 'R', "--recursive");
    // What is only known when it runs may turn out to be nothing.
    let bare = command.words.iter().skip(1).filter(|word| word.text.starts_with(['/', '~']));
    let mut bare = bare.filter_map(|word| word.bare.as_deref());
    recursive && (targets(command).any(is_sweeping) || bare.any(is_sweeping))
}

fn sweeps_with_find(command: &Simple) -> bool {
    let deletes = command.arguments().any(|text| {
        text == "-delete" || matches!(text.rsplit('/').next(), Some("rm" | "shred" | "unlink"))
    });
    let filters = ["-name", "-iname", "-path", "-regex", "-mtime", "-empty", "-size", "-newer"];
    let filtered = command.has_any(&filters);
    let mut roots = command.arguments().take_while(|text| !text.starts_with('-'));
    let anywhere = |root: &str| is_sweeping(root) && (!filtered || !matches!(root, "." | "./"));
    deletes && roots.any(anywhere)
}

fn has_flag(command: &Simple, letter: char, long: &str) -> bool {
    command.arguments().any(|text| {
        text == long || (text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    })
}

/// The words that are no flags.
pub(super) fn targets(command: &Simple) -> impl Iterator<Item = &str> {
    command.arguments().filter(|text| !text.starts_with('-'))
}

fn is_sweeping_root(target: &str) -> bool {
    is_sweeping(target) && !target.starts_with(['.', '*'])
}

/// Folders of the system, protected at every level.
const SYSTEM: &[&str] = &[
    "etc",
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "boot",
    "dev",
    "proc",
    "sys",
    "system",
    "library",
    "windows",
    "applications",
];
/// Folders protected at their first level.
const SHARED: &[&str] =
    &["home", "users", "root", "var", "opt", "srv", "mnt", "media", "volumes", "data"];

/// Whether a path is a whole tree: the root, a home, the working folder, a folder of the system.
pub(super) fn is_sweeping(target: &str) -> bool {
    let forms = crate::facts::normal_paths(target);
    forms.iter().any(|path| is_sweeping_path(path))
}

fn is_sweeping_path(path: &str) -> bool {
    let path = path.to_lowercase();
    let drive = matches!(path.as_bytes(), [_, b':', b'/', ..]);
    let inner = if drive { path.get(2..).unwrap_or_default() } else { &path };
    let wild = |c: char| matches!(c, '*' | '.' | '?' | '!' | '[' | ']');
    let is_wild = |name: &str| !name.is_empty() && name.chars().all(wild);
    let Some(below) = inner.strip_prefix('/') else {
        let mut names = path.split('/').skip_while(|name| *name == "..");
        return match (names.next(), names.next(), names.next()) {
            // `..`, `.`, `*`, and so on up.
            (None, ..) => true,
            (Some(first), None, _) => is_wild(first) || first.starts_with('~') || is_home(first),
            (Some(first), Some(second), None) => {
                is_wild(second) && (first == "." || first.starts_with('~') || is_home(first))
            }
            _ => false,
        };
    };
    let names: Vec<&str> = below.split('/').filter(|name| !name.is_empty()).collect();
    match names.as_slice() {
        [] => true,
        [first] => {
            is_wild(first) || SYSTEM.iter().chain(SHARED).any(|known| matches_name(first, known))
        }
        [first, ..] if SYSTEM.contains(first) => {
            !path.starts_with("/usr/local/") && !path.starts_with("/dev/shm/")
        }
        ["home" | "users", _] | ["var", "lib" | "log" | "spool" | "mail" | "backups"] => true,
        [first, second] => SHARED.contains(first) && is_wild(second),
        ["home" | "users", _, last] | ["var", "lib" | "log", last] => is_wild(last),
        _ => false,
    }
}

fn is_home(name: &str) -> bool {
    matches!(name, "$home" | "${home}" | "%userprofile%" | "$userprofile")
}

/// Overwrites a device or a file system.
pub(super) fn devices(script: &Script) -> Option<&'static str> {
    let bad = |command: &Simple| {
        let name = command.name();
        let formats = name.starts_with("mkfs")
            || matches!(name.as_str(), "mke2fs" | "wipefs" | "blkdiscard" | "mkswap");
        let editors =
            "fdisk sfdisk parted sgdisk shred cryptsetup cp mv tee hdparm badblocks cat dd";
        let edits = has_word(editors, &name);
        let writes = command.written().any(is_disk);
        let names_disk = |text: &str| match name.as_str() {
            "dd" => text.strip_prefix("of=").is_some_and(is_disk),
            "cat" => false,
            "fdisk" | "parted" => is_disk(text) && !command.has_any(&["-l"]),
            _ => is_disk(text),
        };
        let erases = name == "diskutil"
            && command.arguments().any(|text| text.to_lowercase().starts_with("erase"));
        writes || formats || erases || (edits && command.arguments().any(names_disk))
    };
    script.commands.iter().any(bad).then_some("overwrites a device or a file system")
}

fn is_disk(text: &str) -> bool {
    let forms = crate::facts::normal_paths(text);
    let starts = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "loop", "mem",
        "kmem",
    ];
    forms.iter().filter_map(|path| path.strip_prefix("/dev/")).any(|device| {
        starts.iter().any(|start| device.starts_with(start)) || device.contains(['*', '?'])
    })
}

/// Hides what was done.
pub(super) fn traces(script: &Script) -> Option<&'static str> {
    let bad = |command: &Simple| {
        let name = command.name();
        let has = |wanted: &[&str]| command.has_any(wanted);
        let clears = match name.as_str() {
            "history" => has(&["-c", "-d", "-cw"]),
            "journalctl" => {
                command.arguments().any(|text| text.starts_with("--vacuum") || text == "--flush")
            }
            "wevtutil" => has(&["cl", "clear-log"]),
            "dmesg" => has(&["-C", "-c", "--clear"]),
            "set" => has(&["+o"]) && has(&["history"]),
            "unset" => has(&["HISTFILE"]),
            "auditctl" => has(&["-e", "-D"]),
            _ => false,
        };
        let deletes = matches!(
            name.as_str(),
            "rm" | "shred" | "truncate" | "unlink" | "ln" | "tee" | "cp" | "mv"
        );
        let words = command.arguments().filter(|_| deletes);
        clears || command.written().chain(words).any(is_trace)
    };
    script.commands.iter().any(bad).then_some("hides what was done")
}

fn is_trace(text: &str) -> bool {
    let forms = crate::facts::normal_paths(text);
    forms.iter().any(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let history = name.starts_with('.') && name.ends_with("_history") || name == "fish_history";
        history || path.starts_with("/var/log/") || path.ends_with("/.lesshst")
    })
}
