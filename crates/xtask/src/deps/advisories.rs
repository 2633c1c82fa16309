//! Known vulnerabilities, where a tool that knows them is installed.

use anyhow::{Context, Result};

use crate::output::say;
use crate::shell;
use crate::steps::Outcome;

/// Programs that check advisories, in the order of preference, and what to tell cargo.
const TOOLS: [(&str, &[&str]); 2] =
    [("cargo-deny", &["deny", "check", "advisories"]), ("cargo-audit", &["audit"])];

/// Runs the first tool that is installed.
pub(crate) fn check() -> Result<Outcome> {
    let Some((_, arguments)) = TOOLS.iter().find(|(tool, _)| shell::find(tool).is_some()) else {
        return Ok(Outcome::Skipped("cargo-deny is not installed".to_owned()));
    };
    let mut command = shell::cargo(arguments);
    let words = shell::words(&command);
    let output = command.output().with_context(|| format!("cannot run `{words}`"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    say!("{words}\n{}", said.trim_end());
    Ok(judge(output.status.success(), &said, &words))
}

fn judge(success: bool, said: &str, words: &str) -> Outcome {
    if success {
        Outcome::Passed
    } else if said.contains("fetch advisory database") {
        // Both tools complain in these words when they have no network.
        Outcome::Skipped(format!("`{words}` could not fetch its database"))
    } else {
        Outcome::Failed(format!("`{words}` found something"))
    }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::steps::Outcome;

    #[test]
    fn only_a_missing_database_is_a_reason_to_skip() {
        let skipped = |said| matches!(judge(false, said, "x"), Outcome::Skipped(_));
        assert!(skipped("[ERROR] failed to fetch advisory database https://github.com/x"));
        assert!(skipped("error: couldn't fetch advisory database: git operation failed"));
        assert!(!skipped("Fetching advisory database from `x`\nerror: 1 vulnerability found!"));
        assert_eq!(judge(true, "advisories ok", "x"), Outcome::Passed);
    }
}
