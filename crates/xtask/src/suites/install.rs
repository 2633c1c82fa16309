//! Clients and suites of others, installed in a folder that git does not see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Rig;
use super::bounded;
use crate::output::say;
use crate::shell;
use crate::steps::Outcome;

/// How long one installation may take.
const PATIENCE: Duration = Duration::from_secs(900);
/// Remembers the manifest that was installed.
const MARKER: &str = "installed";

/// How something is installed.
struct Kind {
    manifest: &'static str,
    /// The system's packages that bring what is needed for that, if root may install them.
    packages: &'static [&'static str],
    /// Whether what is needed for that is here.
    is_possible: fn() -> bool,
    /// What to run in the folder, after the manifest was put there.
    commands: fn(&Path) -> Vec<Command>,
}

const NPM: Kind = Kind {
    manifest: "package.json",
    packages: &["nodejs", "npm"],
    is_possible: || shell::find("npm").is_some() && shell::find("node").is_some(),
    commands: |_| {
        let flags = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
        vec![command("npm".into(), &["install"], &flags)]
    },
};

const PIP: Kind = Kind {
    manifest: "requirements.txt",
    packages: &["python3", "python3-venv"],
    is_possible: || {
        let mut python = Command::new("python3");
        python.args(["-c", "import ensurepip, venv"]);
        bounded::run(python, PATIENCE).is_ok_and(|ran| ran.is_success())
    },
    commands: |folder| {
        let pip = ["install", "--quiet", "--disable-pip-version-check"];
        vec![
            command("python3".into(), &["-m", "venv"], &["venv"]),
            command(folder.join("venv/bin/pip"), &pip, &["-r", "requirements.txt"]),
        ]
    },
};

fn command(program: PathBuf, first: &[&str], rest: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(first).args(rest);
    command
}

/// Installs something unless it is there; answers why it cannot be.
pub(crate) fn ready(rig: &Rig, name: &str) -> Result<Option<String>> {
    let source = rig.source(name);
    let kind = if source.join(PIP.manifest).exists() { PIP } else { NPM };
    let manifest = fs::read_to_string(source.join(kind.manifest))
        .with_context(|| format!("no manifest of {name}"))?;
    let folder = rig.installed(name);
    if is_installed(&folder, &manifest) {
        return Ok(None);
    }
    if !(kind.is_possible)() && !add(kind.packages)? {
        let packages = kind.packages.join(" and ");
        return Ok(Some(format!("{name} needs {packages}, which cannot be installed here")));
    }
    say!("installing {name}");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot renew {name}"))?;
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(kind.manifest), &manifest)?;
    for mut command in (kind.commands)(&folder) {
        let words = shell::words(&command);
        command.current_dir(&folder);
        let ran = bounded::run(command, PATIENCE)?;
        if !ran.is_success() {
            return Ok(Some(format!("{name}: `{words}` failed: {}", ran.describe())));
        }
    }
    fs::write(folder.join(MARKER), manifest)?;
    Ok(None)
}

fn is_installed(folder: &Path, manifest: &str) -> bool {
    fs::read_to_string(folder.join(MARKER)).is_ok_and(|installed| installed == manifest)
}

/// Installs packages of the system; answers whether that was possible.
fn add(packages: &[&str]) -> Result<bool> {
    if shell::find("apt-get").is_none() || shell::read(shell::command("id", &["-u"]))?.trim() != "0"
    {
        return Ok(false);
    }
    say!("installing {} with apt-get", packages.join(" and "));
    let install = [&["install", "-y", "--no-install-recommends"][..], packages].concat();
    for arguments in [&["update"][..], &install] {
        let mut command = shell::command("apt-get", arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        if shell::outcome(command)? != Outcome::Passed {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{MARKER, is_installed};
    use crate::suites::folder::Folder;

    #[test]
    fn what_was_installed_from_another_manifest_is_installed_again() {
        let folder = Folder::new().unwrap();
        assert!(!is_installed(folder.root(), "a 1"));
        fs::write(folder.path(MARKER), "a 1").unwrap();
        assert!(is_installed(folder.root(), "a 1"));
        assert!(!is_installed(folder.root(), "a 2"));
    }
}
