//! Commands that take privileges, make accounts, or stay when the session ends.

use super::deletes::{is_sweeping, targets};
use crate::facts::shell::{Script, Simple};
use crate::facts::{has_word, normal_paths};

/// Takes or gives privileges.
pub(super) fn privileges(script: &Script) -> Option<&'static str> {
    let bad = |command: &Simple| {
        match command.name().as_str() {
            "sudo" | "su" | "doas" | "pkexec" | "run0" | "runas" | "gosu" | "setcap"
            | "sudoedit" => true,
            "chmod" => sets_user(command) || opens_tree(command),
            "install" => command.arguments().any(is_special_mode),
            "chown" | "chgrp" => {
                targets(command).skip(1).any(is_sweeping)
                    && command.arguments().any(|text| text.starts_with('-') && text.contains('R'))
            }
            // The agent being judged does not answer for its judges.
            "chio" => command.has_any(&["approvals", "capability", "kernel", "key"]),
            "nsenter" => command.has_any(&["1", "-t1", "--target=1"]),
            "docker" | "podman" | "nerdctl" => {
                command.has_any(&["--privileged", "--pid=host"])
                    || command.arguments().any(|text| {
                        text.starts_with("/:")
                            || text.contains("=/:")
                            || text.contains("docker.sock")
                    })
            }
            _ => false,
        }
    };
    script.commands.iter().any(bad).then_some("takes or gives privileges")
}

/// A mode with the bits that run a program as its owner.
fn is_special_mode(text: &str) -> bool {
    let digits = text.strip_prefix("--mode=").or_else(|| text.strip_prefix("-m")).unwrap_or(text);
    digits.len() == 4
        && digits.starts_with(['2', '3', '4', '5', '6', '7'])
        && digits.bytes().all(|b| b.is_ascii_digit())
}

fn sets_user(command: &Simple) -> bool {
    command.arguments().any(|text| {
        let symbolic = text.split_once(['+', '=']).is_some_and(|(who, what)| {
            who.chars().all(|c| "ugoa".contains(c))
                && what.chars().all(|c| "rwxXst".contains(c))
                && what.contains('s')
        });
        symbolic || is_special_mode(text)
    })
}

fn opens_tree(command: &Simple) -> bool {
    command.has_any(&["777", "0777", "666", "a+rwx", "ugo+rwx", "o+w", "a+w", "+w", "a=rwx"])
        && targets(command).skip(1).any(|target| is_sweeping(target) && target != ".")
}

/// What runs at the next start, at the next login or at some time.
const STARTED: &[&str] = &[
    "/etc/cron",
    "/var/spool/cron",
    "/etc/systemd/",
    "/etc/init.d/",
    "/etc/rc",
    "/etc/profile",
    "/etc/bash",
    "/etc/ld.so.preload",
    "/etc/xdg/autostart",
    "/etc/zsh",
    "/lib/systemd/",
    "/usr/lib/systemd/",
];
const STARTED_OF_USER: &[&str] = &[
    "/.bashrc",
    "/.bash_profile",
    "/.bash_login",
    "/.profile",
    "/.zshrc",
    "/.zprofile",
    "/.zshenv",
    "/.zlogin",
    "/.bash_logout",
    "/.config/fish/config.fish",
    "/.xinitrc",
    "/.xprofile",
    "/.inputrc",
];
const STARTED_FOLDERS: &[&str] = &[
    "/.config/systemd/",
    "/.config/autostart/",
    "/library/launchagents/",
    "/library/launchdaemons/",
    "/.git/hooks/",
    "/start menu/programs/startup/",
];

/// Stays when the session ends.
pub(super) fn staying(script: &Script) -> Option<&'static str> {
    let by_name = |command: &Simple| {
        let has = |wanted: &[&str]| command.has_any(wanted);
        match command.name().as_str() {
            "crontab" => !has(&["-l"]),
            "at" | "batch" => !has(&["-l", "-c"]),
            "systemctl" => has(&["enable", "daemon-reload", "link", "edit", "set-default"]),
            "launchctl" => has(&["load", "bootstrap", "submit", "enable"]),
            "schtasks" => has(&["/create", "/Create", "/CREATE", "/change"]),
            "update-rc.d" | "chkconfig" => true,
            _ => false,
        }
    };
    let writes = |command: &Simple| written(command).iter().any(|path| is_started(path));
    let found = script.commands.iter().any(|command| by_name(command) || writes(command));
    found.then_some("stays when the session ends")
}

fn is_started(path: &str) -> bool {
    let path = format!("/{}", path.trim_start_matches('/').to_lowercase());
    STARTED.iter().any(|start| path.starts_with(start))
        || STARTED_OF_USER.iter().any(|end| path.ends_with(end))
        || STARTED_FOLDERS.iter().any(|folder| path.contains(folder))
}

/// The paths that a command writes, as far as its words show it.
fn written(command: &Simple) -> Vec<String> {
    let name = command.name();
    let mut texts: Vec<&str> = command.written().collect();
    match name.as_str() {
        "tee" | "touch" | "ln" | "sponge" => texts.extend(targets(command)),
        "cp" | "mv" | "install" | "rsync" | "scp" => texts.extend(targets(command).last()),
        "sed" | "perl" if command.arguments().any(|text| text.starts_with("-i")) => {
            texts.extend(targets(command).skip(1));
        }
        "dd" => texts.extend(command.arguments().filter_map(|text| text.strip_prefix("of="))),
        "curl" | "wget" => {
            let mut words = command.arguments();
            while let Some(word) = words.next() {
                if matches!(word, "-o" | "-O" | "--output") {
                    texts.extend(words.next());
                }
            }
        }
        _ => {}
    }
    texts.into_iter().flat_map(normal_paths).collect()
}

/// Adds keys or users, or changes those of the system.
pub(super) fn keys_and_users(script: &Script) -> Option<&'static str> {
    let files = [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/sudoers",
        "/etc/group",
        "/etc/hosts",
        "/etc/pam.d",
        "/etc/ssh/",
    ];
    let bad = |command: &Simple| {
        let changers = "useradd adduser usermod passwd chpasswd visudo gpasswd vipw ssh-copy-id \
                        groupadd deluser userdel";
        let named = has_word(changers, &command.name());
        let net_user = command.name() == "net"
            && command.arguments().any(|text| text.eq_ignore_ascii_case("/add"));
        let writes = written(command).iter().any(|path| {
            path.ends_with("/authorized_keys")
                || path == "authorized_keys"
                || files.iter().any(|file| path.starts_with(file))
        });
        named || net_user || writes
    };
    script.commands.iter().any(bad).then_some("changes keys or accounts")
}
