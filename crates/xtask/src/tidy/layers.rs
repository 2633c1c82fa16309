//! Which package may use which: the rule of the map in ARCHITECTURE.md, as a test.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::Violations;
use crate::tree;

/// What a package may use.
enum Uses {
    /// These.
    Only(&'static [&'static str]),
    /// Every library of the product; the commands and the test kit are none.
    Libraries,
    /// As `Libraries`, and the test kit.
    LibrariesAndTestkit,
}
use Uses::{Libraries, LibrariesAndTestkit, Only};

const EDGE: Uses = Only(&["chio-core", "chio-net", "chio-cross-protocol", "chio-edge"]);
const SERVER: Uses = Only(&["chio-core", "chio-net", "chio-kernel"]);

/// Every package, also those that are still to come.
const LAYERS: &[(&str, Uses)] = &[
    ("chio-core", Only(&[])),
    ("chio-kernel", Only(&["chio-core"])),
    ("chio-policy", Only(&["chio-core", "chio-kernel", "chio-net", "chio-yaml"])),
    ("chio-yaml", Only(&["chio-core"])),
    ("chio-store", Only(&["chio-core", "chio-kernel"])),
    ("chio-net", Only(&["chio-core"])),
    ("chio-cross-protocol", Only(&["chio-core", "chio-kernel"])),
    ("chio-edge", Only(&["chio-core", "chio-net", "chio-cross-protocol"])),
    ("chio-native-edge", EDGE),
    ("chio-mcp-edge", EDGE),
    ("chio-a2a-edge", EDGE),
    ("chio-acp-edge", EDGE),
    ("chio-acp-proxy", EDGE),
    ("chio-openai", EDGE),
    ("chio-http-edge", EDGE),
    ("chio-ckp-edge", EDGE),
    ("chio-mcp-adapter", SERVER),
    ("chio-a2a-adapter", SERVER),
    ("chio-openapi", SERVER),
    ("chio-openapi-mcp-bridge", Only(&["chio-core", "chio-net", "chio-kernel", "chio-openapi"])),
    ("chio-demo", SERVER),
    ("chio-trust", Only(&["chio-core", "chio-net", "chio-edge", "chio-kernel", "chio-store"])),
    ("chio-cli", Libraries),
    ("chio-testkit", Libraries),
    ("xtask", LibrariesAndTestkit),
];

/// Dependencies of these kinds are part of what is built; those for tests are exempt.
const KINDS: [&str; 2] = ["dependencies", "build-dependencies"];
const TEST_KIND: &str = "dev-dependencies";

/// Checks every manifest below `crates`.
pub(super) fn violations(root: &Path) -> Violations {
    let mut found = Vec::new();
    let manifests = tree::texts(root, &["crates"], |path| path.ends_with("Cargo.toml"))?;
    let workspace = tree::texts(root, &["Cargo.toml"], |_| true)?;
    let aliases = workspace.first().map(|text| aliases(&text.content)).transpose()?;
    let aliases = aliases.unwrap_or_default();
    for text in manifests {
        let manifest: Table = text.content.parse()?;
        let package = manifest.get("package").and_then(|package| package.get("name"));
        let package = package.and_then(Value::as_str).unwrap_or_default();
        let problems = match uses_of(package) {
            None => vec![format!("`{package}` is not in the table of layers")],
            Some(uses) => problems(&text.path, package, uses, &manifest, &aliases),
        };
        found.extend(problems.into_iter().map(|problem| format!("{}: {problem}", text.path)));
    }
    Ok(found)
}

fn uses_of(package: &str) -> Option<&'static Uses> {
    LAYERS.iter().find(|(name, _)| *name == package).map(|(_, uses)| uses)
}

impl Uses {
    fn allow(&self, package: &str) -> bool {
        match self {
            Self::Only(packages) => packages.contains(&package),
            Self::Libraries => matches!(uses_of(package), Some(Only(_))),
            Self::LibrariesAndTestkit => Libraries.allow(package) || package == "chio-testkit",
        }
    }
}

fn problems(
    path: &str,
    package: &str,
    uses: &Uses,
    manifest: &Table,
    aliases: &BTreeMap<String, String>,
) -> Vec<String> {
    let ours = |name: &String| uses_of(name).is_some() || name.starts_with("chio-");
    let mut problems: Vec<String> = KINDS
        .iter()
        .flat_map(|kind| dependencies(manifest, kind, aliases))
        .filter(|name| ours(name) && !uses.allow(name))
        .map(|name| format!("`{package}` may not use `{name}`"))
        .collect();
    // An edge sees the kernel's types through `chio-cross-protocol`; even a test of an edge takes
    // the one road, so the kernel is not listed at all.
    let for_tests = dependencies(manifest, TEST_KIND, aliases);
    if path.starts_with("crates/edges/") && for_tests.iter().any(|name| name == "chio-kernel") {
        problems.push(format!("`{package}` is an edge and may not list `chio-kernel`"));
    }
    problems
}

/// The packages that a manifest depends on in this way, on whatever platform.
fn dependencies(manifest: &Table, kind: &str, aliases: &BTreeMap<String, String>) -> Vec<String> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(platforms)
        .filter_map(|table| table.get(kind)?.as_table())
        .flatten()
        .map(|(key, value)| match value.get("package").and_then(Value::as_str) {
            Some(package) => package.to_owned(),
            None => aliases.get(key).unwrap_or(key).clone(),
        })
        .collect()
}

/// The packages that the workspace's own list gives another name.
fn aliases(workspace: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let workspace: Table = workspace.parse()?;
    let list = workspace.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let list = list.and_then(Value::as_table).into_iter().flatten();
    let renamed = list
        .filter_map(|(key, value)| Some((key.clone(), value.get("package")?.as_str()?.to_owned())));
    Ok(renamed.collect())
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, Only, uses_of, violations};
    use crate::tidy::fixture::Tree;

    fn check(path: &str, package: &str, rest: &str, expected: &[&str]) {
        let manifest = format!("package.name = '{package}'\n{rest}");
        let workspace = "[workspace.dependencies]\nquiet = { package = 'chio-kernel', path = 'k' }";
        let tree = Tree::new(&[(path, &manifest), ("Cargo.toml", workspace)]);
        let expected: Vec<_> =
            expected.iter().map(|problem| format!("{path}: {problem}")).collect();
        assert_eq!(violations(tree.root()).unwrap(), expected, "{rest}");
    }

    #[test]
    fn the_table_names_only_packages_that_it_has_and_has_no_cycle() {
        // With the edges removed whose target comes to rest, nothing may remain.
        let mut rest: Vec<_> = LAYERS.iter().collect();
        while !rest.is_empty() {
            let names: Vec<&str> = rest.iter().map(|(name, _)| *name).collect();
            let before = rest.len();
            rest.retain(|(_, uses)| names.iter().any(|name| uses.allow(name)));
            assert!(rest.len() < before, "a cycle among {names:?}");
        }
        for (name, uses) in LAYERS {
            let Only(uses) = uses else { continue };
            assert!(uses.iter().all(|used| uses_of(used).is_some()), "{name}");
        }
    }

    #[test]
    fn allowed_dependencies_pass() {
        let rest = "[dependencies]\nchio-core.workspace = true\nserde = '1'\n";
        check("crates/kernel/Cargo.toml", "chio-kernel", rest, &[]);
        let rest = "[dependencies]\nchio-openapi.workspace = true\n";
        check("crates/servers/b/Cargo.toml", "chio-openapi-mcp-bridge", rest, &[]);
        let rest = "[dependencies]\nchio-trust.workspace = true\n";
        check("crates/cli/Cargo.toml", "chio-cli", rest, &[]);
    }

    #[test]
    fn dependencies_of_tests_are_exempt() {
        let rest = "[dev-dependencies]\nchio-testkit.workspace = true\n";
        check("crates/core/Cargo.toml", "chio-core", rest, &[]);
    }

    #[test]
    fn forbidden_dependencies_of_any_form_are_found() {
        let forbidden = ["`chio-core` may not use `chio-kernel`"];
        for rest in [
            "[dependencies]\nchio-kernel.workspace = true\n",
            "[build-dependencies]\nchio-kernel = { path = '../kernel' }\n",
            "[target.'cfg(unix)'.dependencies]\nchio-kernel.workspace = true\n",
            "[dependencies]\nother = { package = 'chio-kernel', path = '../kernel' }\n",
            "[dependencies]\nquiet.workspace = true\n",
        ] {
            check("crates/core/Cargo.toml", "chio-core", rest, &forbidden);
        }
    }

    #[test]
    fn siblings_the_binary_and_the_test_kit_are_out_of_reach() {
        let uses = |name: &str| format!("[dependencies]\n{name}.workspace = true\n");
        let edge = "crates/edges/a2a/Cargo.toml";
        let problem = ["`chio-a2a-edge` may not use `chio-mcp-edge`"];
        check(edge, "chio-a2a-edge", &uses("chio-mcp-edge"), &problem);
        let problem = ["`chio-testkit` may not use `chio-cli`"];
        check("crates/testkit/Cargo.toml", "chio-testkit", &uses("chio-cli"), &problem);
        let problem = ["`chio-cli` may not use `chio-testkit`"];
        check("crates/cli/Cargo.toml", "chio-cli", &uses("chio-testkit"), &problem);
    }

    #[test]
    fn an_edge_does_not_list_the_kernel_even_for_tests() {
        let path = "crates/edges/mcp/Cargo.toml";
        let rest = "[dependencies]\nchio-kernel.workspace = true\n";
        check(path, "chio-mcp-edge", rest, &["`chio-mcp-edge` may not use `chio-kernel`"]);
        let rest = "[dev-dependencies]\nchio-kernel.workspace = true\n";
        let problem = ["`chio-mcp-edge` is an edge and may not list `chio-kernel`"];
        check(path, "chio-mcp-edge", rest, &problem);
    }

    #[test]
    fn a_package_that_is_not_in_the_table_is_found() {
        let problem = ["`chio-misc` is not in the table of layers"];
        check("crates/misc/Cargo.toml", "chio-misc", "", &problem);
    }
}
