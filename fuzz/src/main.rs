//! Coverage-guided fuzzing of one decoder, named by the environment variable `CHIO_FUZZ_TARGET`.
#![no_main]

use std::sync::LazyLock;

use chio_testkit::decoders::{DECODERS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("CHIO_FUZZ_TARGET").unwrap_or_default();
    let target = DECODERS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("expected a target in CHIO_FUZZ_TARGET, found `{name}`"))
});

fuzz_target!(|input: &[u8]| (TARGET.run)(input));
