//! The MCP server of this crate, as a program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The MCP server for tests, built where the test that asks was built.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn mcp_fixture() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of the test");
        // Tests are in `deps` beside the binaries.
        let folder = test.ancestors().nth(2).expect("the folder of the binaries");
        let mut build = Command::new(env!("CARGO"));
        // Of the whole workspace: alone it has other features, and all that it needs is built again.
        build.args(["build", "--quiet", "--workspace", "--bin", "mcp-fixture"]);
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        build.arg("--target-dir").arg(folder.parent().expect("the folder of all that is built"));
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status().expect("cargo");
        assert!(built.success(), "the fixture cannot be built");
        folder.join("mcp-fixture")
    })
}
