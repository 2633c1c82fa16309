//! The reference page of policies, written from the guards themselves.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use chio_policy::capabilities;
use chio_policy::document::{RULESETS, TOP_KEYS};
use chio_policy::guards::{GuardKind, KINDS};
use chio_yaml::Key;

use crate::samples;

/// Set by `cargo xtask reference`: the page is written and not compared.
const WRITES: &str = "CHIO_WRITE_REFERENCE";

type Result<T> = std::result::Result<T, std::fmt::Error>;

/// What the page should be.
fn page() -> Result<String> {
    let mut page = String::new();
    page.push_str(
        "# Policy reference\n\n\
         <!-- Written by `cargo xtask reference` from the guards; changes here are overwritten. -->\n\n\
         [policy.md](policy.md) is the guide; this page has every section and every key.\n\
         `chio policy check FILE` tells what it does not understand, with line, column and the nearest known name.\n\n\
         ## The document\n\n",
    );
    keys(&mut page, TOP_KEYS)?;
    let names: Vec<String> = RULESETS.iter().map(|it| format!("`chio:{}`", it.name)).collect();
    writeln!(page, "Built-in documents to extend: {}.\n", names.join(", "))?;
    writeln!(page, "## What new sessions are handed\n\n`{}`\n", capabilities::SECTION)?;
    keys(&mut page, capabilities::KEYS)?;
    page.push_str("## Guards\n\nIn the order in which they are asked.\n\n");
    page.push_str("| guard | section | there when the document is silent |\n|---|---|---|\n");
    for kind in KINDS {
        let GuardKind { name, section, .. } = kind;
        let always = if kind.always { "yes" } else { "no" };
        let section = if kind.keys.is_empty() { "none" } else { &format!("`{section}`") };
        writeln!(page, "| [{name}](#{name}) | {section} | {always} |")?;
    }
    for kind in KINDS {
        guard(&mut page, kind)?;
    }
    Ok(page)
}

fn guard(page: &mut String, kind: &GuardKind) -> Result<()> {
    if kind.keys.is_empty() {
        writeln!(page, "\n### {}\n\nA document has no word on it.\n\n{}\n", kind.name, kind.about)?;
    } else {
        writeln!(page, "\n### {}\n\n`{}`\n\n{}\n", kind.name, kind.section, kind.about)?;
        keys(page, kind.keys)?;
    }
    writeln!(
        page,
        "Calls, and what comes of them:\n\n```yaml\n{}\n```",
        samples(kind.name).trim()
    )?;
    Ok(())
}

fn keys(page: &mut String, keys: &[Key]) -> Result<()> {
    page.push_str("| key | expects | default | for |\n|---|---|---|---|\n");
    for Key { name, expects, default, about, .. } in keys {
        let [expects, default, about] = [expects, default, about].map(|it| it.replace('|', "\\|"));
        writeln!(page, "| `{name}` | {expects} | {default} | {about} |")?;
    }
    page.push('\n');
    for key in keys.iter().filter(|key| !key.of.is_empty()) {
        writeln!(page, "Each of `{}`:\n", key.name)?;
        self::keys(page, key.of)?;
    }
    Ok(())
}

#[test]
fn the_page_is_up_to_date() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy-reference.md");
    let page = page().unwrap();
    if std::env::var_os(WRITES).is_some() {
        fs::write(&file, &page).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == page, "run `cargo xtask reference`");
}
