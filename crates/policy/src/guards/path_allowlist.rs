//! Which paths calls may touch, and no others.

use std::sync::Arc;

use async_trait::async_trait;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Verdict};
use serde_json::json;

use super::forbidden_paths::{compiled, globs_of, unreadable};
use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::facts::glob::{Globs, Reading};
use crate::facts::{Access, Facts, PathFact};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "path-allowlist",
    section: "rules.path_allowlist",
    about: "Lets calls touch only paths of a list, one each for reading, writing and patching. \
            Every path that a call names has to be on its list, in every form that it may be meant \
            as. A relative path is on a list only when the list has it so.",
    keys: &[
        Key::new("enabled", "true or false", "false", "whether it is in force"),
        Key::new(
            "read",
            "a list of globs such as `/workspace/**`",
            "[]",
            "what may be read or listed",
        ),
        Key::new("write", "a list of globs", "[]", "what may be written, moved or deleted"),
        Key::new("patch", "a list of globs", "(as `write`)", "what patches may be applied to"),
    ],
    always: false,
    build,
    samples: SAMPLES,
};

struct PathAllowlist {
    read: Globs,
    write: Globs,
    patch: Globs,
}

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    building.note_idle(section, &["read", "write", "patch"]);
    let list = |key: &str| compiled(section, key, &globs_of(section, key), Reading::Exact);
    let (read, write) = (list("read"), list("write"));
    let patch = list(if section.has("patch") { "patch" } else { "write" });
    if !section.flag("enabled", false) {
        return None;
    }
    let guard = PathAllowlist { read: read?, write: write?, patch: patch? };
    let forbidden = guard.example();
    Some(Built { guard: Arc::new(guard), forbidden })
}

impl PathAllowlist {
    const fn list(&self, access: Access) -> (&Globs, &'static str) {
        match access {
            Access::Read => (&self.read, "read"),
            Access::Write => (&self.write, "write"),
            Access::Patch => (&self.patch, "patch"),
        }
    }

    fn allows(&self, access: Access, path: &str) -> bool {
        self.list(access).0.matches(path)
    }

    fn example(&self) -> Option<ExampleCall> {
        let path = "/chio-self-test/not-listed";
        let call = |tool: &str| ExampleCall::new(tool, json!({ "path": path }));
        if !self.allows(Access::Read, path) {
            return Some(call("read_file"));
        }
        (!self.allows(Access::Write, path)).then(|| call("write_file"))
    }
}

#[async_trait]
impl Guard for PathAllowlist {
    fn name(&self) -> &str {
        KIND.name
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        let facts = Facts::of_call(input)?;
        if let Some(why) = unreadable(facts) {
            return Ok(Verdict::Deny(why).into());
        }
        let outside = |path: &&PathFact| !self.allows(path.access, &path.normal);
        let Some(path) = facts.paths.iter().find(outside) else {
            return Ok(Verdict::Allow.into());
        };
        let (_, list) = self.list(path.access);
        let reason = format!("a path is not on the list `{}.{list}`", KIND.section);
        Ok(Verdict::Deny(reason).into())
    }
}

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  rules:
    path_allowlist:
      enabled: true
      read: ["/workspace/**", "/usr/share/doc/**"]
      write: ["/workspace/out/**"]
      patch: ["/workspace/src/**", "src/**"]
cases:
  - {name: a listed path, tool: read_file, args: {path: /workspace/src/main.rs}, expect: allow}
  - {name: a listed folder itself, tool: list_directory, args: {path: /workspace/}, expect: allow}
  - {name: a listed path to write, tool: write_file, args: {path: /workspace/out/a.txt, content: a}, expect: allow}
  - {name: nothing of files, tool: echo, args: {text: /etc/hosts}, expect: allow}
  - {name: another path, tool: read_file, args: {path: /etc/hosts}, expect: deny, by: path-allowlist, says: path_allowlist.read}
  - {name: to be read but not written, tool: write_file, args: {path: /workspace/a.txt, content: a}, expect: deny, by: path-allowlist, says: path_allowlist.write}
  - {name: a name that begins alike, tool: read_file, args: {path: /workspace-of-bob/a}, expect: deny, by: path-allowlist}
  - {name: climbing out, tool: read_file, args: {path: /workspace/../etc/hosts}, expect: deny, by: path-allowlist}
  - {name: climbing out if somebody decodes it, tool: read_file, args: {path: "/workspace/%2e%2e/etc/hosts"}, expect: deny, by: path-allowlist}
  - {name: climbing out on another system, tool: read_file, args: {path: '/workspace/..\..\etc\hosts'}, expect: deny, by: path-allowlist}
  - {name: relative, tool: read_file, args: {path: workspace/a}, expect: deny, by: path-allowlist}
  - {name: one of several, tool: read_multiple_files, args: {paths: [/workspace/a, /etc/hosts]}, expect: deny, by: path-allowlist}
  - {name: a patch of another file, tool: apply_patch, args: {patch: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, expect: deny, by: path-allowlist, says: path_allowlist.patch}
  - {name: no path at all, tool: read_file, args: {}, expect: deny, by: path-allowlist, says: no path}
"#;
