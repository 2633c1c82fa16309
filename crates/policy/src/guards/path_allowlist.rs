//! Which paths calls may touch, and no others.

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use serde_json::json;

use super::forbidden_paths::{compiled, globs_of, paths};
use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;
use crate::facts::Access;
use crate::facts::glob::{Globs, Reading};

pub(crate) const KIND: GuardKind = GuardKind {
    name: "path-allowlist",
    section: "rules.path_allowlist",
    about: "Lets calls touch only paths of a list, one each for reading, writing and patching. \
            Every path that a call names has to be on its list, in every form that it may be meant \
            as. A relative path is on a list only when the list has it so.",
    keys: &[
        Key::flag("enabled", "false", "whether it is in force"),
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
    section.enabled(false)?;
    let guard = PathAllowlist { read: read?, write: write?, patch: patch? };
    let forbidden = guard.example();
    Some(Built::refusing(KIND.name, forbidden, move |input| guard.refuses(input)))
}

impl PathAllowlist {
    fn refuses(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        paths(
            input,
            |_| 0,
            |path| {
                let (globs, list) = self.list(path.access);
                let reason = || format!("a path is not on the list `{}.{list}`", KIND.section);
                (!globs.matches(&path.normal)).then(reason)
            },
        )
    }

    const fn list(&self, access: Access) -> (&Globs, &'static str) {
        match access {
            Access::Read => (&self.read, "read"),
            Access::Write => (&self.write, "write"),
            Access::Patch => (&self.patch, "patch"),
        }
    }

    fn example(&self) -> Option<ExampleCall> {
        let path = "/chio-self-test/not-listed";
        let call = |tool: &str| ExampleCall::new(tool, json!({ "path": path }));
        if !self.read.matches(path) {
            return Some(call("read_file"));
        }
        (!self.write.matches(path)).then(|| call("write_file"))
    }
}
