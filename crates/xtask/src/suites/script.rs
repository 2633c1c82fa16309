//! Scripts of ours that use what is installed of others.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Rig;

/// The command that runs the last of these files below `clients`, with all of them put beside what
/// was installed in `home`, since that is where they look for it.
pub(crate) fn script(rig: &Rig, home: &str, sources: &[&str]) -> Result<Command> {
    let place = rig.installed(home);
    let mut last = place.clone();
    for source in sources {
        let name = Path::new(source).file_name().context("no name of a script")?;
        last = place.join(name);
        fs::copy(rig.source(source), &last).with_context(|| format!("no copy of {source}"))?;
    }
    let is_python = last.extension().is_some_and(|it| it == "py");
    let mut command = Command::new(if is_python { rig.python(home) } else { rig.node() });
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(last);
    Ok(command)
}
