//! `chio key`.

use chio_testkit::key;

use crate::support::{Folder, public};

#[test]
fn a_new_key_file_holds_a_seed_that_only_its_owner_reads() {
    let folder = Folder::new();
    let run = folder.line("key new --out my.key").ends(0).says("public key  ").says("my.key");
    let text = folder.read("my.key");
    assert_eq!(text.len(), 65);
    assert!(text.ends_with('\n'));
    assert!(!run.stdout.contains(text.trim()) && !run.stderr.contains(text.trim()));
    let key = chio_core::crypto::Keypair::from_seed_hex(text.trim()).unwrap();
    assert!(run.stdout.contains(&key.public_key().to_hex()));
    assert_private(&folder, "my.key");
    assert_eq!(folder.files(), ["my.key"]);
}

#[track_caller]
#[cfg(unix)]
fn assert_private(folder: &Folder, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    let mode = folder.path(name).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[cfg(not(unix))]
fn assert_private(_: &Folder, _: &str) {}

#[test]
fn the_key_file_is_named_chio_key_when_nobody_says() {
    let folder = Folder::new();
    let found = folder.line("key new --json").ends(0).json();
    assert_eq!(found["key_file"], "chio.key");
    let shown = folder.line("key show chio.key --json").ends(0).json();
    assert_eq!(found["public_key"], shown["public_key"]);
}

#[test]
fn two_keys_are_never_the_same() {
    let folder = Folder::new();
    folder.line("key new --out a.key").ends(0);
    folder.line("key new --out b.key").ends(0);
    assert_ne!(folder.read("a.key"), folder.read("b.key"));
}

#[test]
fn a_key_file_is_kept_unless_force_is_given() {
    let folder = Folder::with_keys();
    let before = folder.read("01.key");
    let run = folder.line("key new --out 01.key").ends(2);
    run.complains("error: `01.key` exists already").complains("--force");
    assert_eq!(folder.read("01.key"), before);

    folder.line("key new --out 01.key --force").ends(0);
    assert_ne!(folder.read("01.key"), before);
    assert_private(&folder, "01.key");
    assert_eq!(folder.files(), ["01.key", "02.key", "03.key", "04.key"], "nothing is left behind");
}

#[test]
fn a_failed_replacement_leaves_nothing_behind() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("taken")).unwrap();
    folder.line("key new --out taken --force").ends(2).complains("cannot write `taken`");
    folder.line("key new --out no/such/folder.key").ends(2).complains("cannot write");
    assert_eq!(folder.files(), ["taken"]);
}

#[cfg(unix)]
#[test]
fn regression_force_replaces_ordinary_files_only() {
    let folder = Folder::with_keys();
    let before = folder.read("01.key");
    std::os::unix::fs::symlink("01.key", folder.path("link.key")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(status.success());
    for name in ["link.key", "pipe"] {
        let words = ["key", "new", "--out", name, "--force"];
        folder.run(&words).ends(2).complains("not an ordinary file");
    }
    assert_eq!(folder.read("01.key"), before);
    let pipe = std::fs::symlink_metadata(folder.path("pipe")).unwrap();
    assert!(!pipe.is_file());
}

#[cfg(unix)]
#[test]
fn regression_a_key_file_has_its_mode_under_any_umask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    for umask in ["0077", "0400", "0777", "0000"] {
        let name = format!("{umask}.key");
        let program = env!("CARGO_BIN_EXE_chio");
        let line = format!("umask {umask}; exec '{program}' key new --out {name}");
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", &line]).current_dir(folder.path("")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let mode = std::fs::metadata(folder.path(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "under umask {umask}");
    }
}

#[test]
fn the_secret_is_never_printed() {
    let folder = Folder::new();
    folder.line("key new --out -").ends(2).complains("never printed");
    assert!(folder.files().is_empty());
}

#[test]
fn the_public_key_and_log_id_of_a_key_file_are_shown() {
    let folder = Folder::with_keys();
    let run = folder.line("key show 01.key").ends(0).says(&public(1)).says("local-log-");
    assert_eq!(run.stderr, "");
    let shown = folder.line("key show 01.key --json").ends(0).json();
    assert_eq!(shown["public_key"], public(1));
    assert_eq!(shown["log_id"], chio_core::checkpoint::log_id(key(1).public_key()));
}

#[test]
fn a_key_is_read_with_a_prefix_blanks_and_from_standard_input() {
    let folder = Folder::new();
    let seed = key(1).seed_hex();
    for text in [format!("0x{}", *seed), format!("  {}\r\n\n", *seed), seed.to_uppercase()] {
        let run = folder.run_with(text.as_bytes(), &["key", "show", "-"]).ends(0);
        run.says(&public(1));
    }
}

#[test]
fn what_is_no_key_file_is_refused_without_repeating_it() {
    let folder = Folder::new();
    for text in ["", "secret-but-wrong", "00", &"0".repeat(63), &"0".repeat(5000)] {
        folder.write("bad.key", text);
        let run = folder.line("key show bad.key").ends(2).complains("`bad.key` is not a key file");
        assert!(text.is_empty() || !run.stderr.contains(&format!("`{text}`")), "{run:?}");
        assert!(!run.stderr.contains("secret"), "{run:?}");
    }
    folder.line("key show missing.key").ends(2).complains("error: cannot read `missing.key`");
}

#[test]
fn a_seed_in_place_of_a_file_is_not_repeated() {
    let folder = Folder::new();
    let seed = key(1).seed_hex();
    for words in [["key", "show", &seed], ["canonicalize", "--strict", &seed]] {
        let run = folder.run(&words).ends(2);
        assert!(!run.stderr.contains(&*seed), "{run:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_key_file_that_others_can_read_is_warned_about_wherever_it_is_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_keys();
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(folder.path("01.key"), open).unwrap();
    for line in [
        "key show 01.key",
        "key show 01.key --json",
        "capability issue --key 01.key --subject 02.key --grant s/t",
    ] {
        folder.line(line).ends(0).complains("warning: `01.key`").complains("chmod 600");
    }
}
