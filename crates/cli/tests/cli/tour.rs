//! `chio tour`.

use crate::support::Folder;

#[test]
fn the_tour_succeeds_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let run = folder.line("tour").ends(0);
    assert_eq!(run.stderr, "");
    assert!(folder.files().is_empty(), "{:?}", folder.files());
    run.says("$ chio key new --out authority.key")
        .says("$ chio capability issue ")
        .says("expected a step that narrows")
        .says("denied by kernel: path_prefix")
        .says("content     nothing")
        .says("error: signature: ")
        .says("(exit code 1)")
        .says("== Next");
}

#[test]
fn the_tour_keeps_its_files_when_told_to() {
    let folder = Folder::new();
    let run = folder.line("tour --keep").ends(0);
    let files = folder.files();
    assert_eq!(files.len(), 1);
    run.says(&files[0]);

    folder.line("tour --dir tour").ends(0).says("tour");
    let line = "capability verify tour/agent.json --trusted-issuer tour/authority.key";
    folder.line(line).ends(0);
    folder.line("receipt verify tour/denied.json --trusted-key tour/kernel.key").ends(0);
    folder.line("tour --dir tour").ends(2).complains("expected an empty folder");
}

/// The tour's promise: what it shows is what one can type.
#[test]
#[cfg(unix)]
fn the_commands_of_the_tour_run_in_a_shell() {
    let folder = Folder::new();
    let tour = folder.line("tour --dir tour").ends(0).stdout;
    let mut script = String::new();
    let mut goes_on = false;
    for line in tour.lines() {
        let command = line.strip_prefix("$ ").or(goes_on.then_some(line));
        goes_on = command.is_some_and(|command| command.ends_with('\\'));
        if let Some(command) = command {
            script.push_str(command);
            script.push('\n');
        }
    }
    for name in ["allowed.json", "denied.json"] {
        std::fs::copy(folder.path("tour").join(name), folder.path(name)).unwrap();
    }
    std::fs::copy(folder.path("tour/kernel.key"), folder.path("kernel.key")).unwrap();
    let script = script.replace("chio key new --out kernel.key\n", "");
    let binary = env!("CARGO_BIN_EXE_chio");
    let script = format!("chio() {{ '{binary}' \"$@\"; echo \"exit $?\"; }}\n{script}");
    let mut shell = std::process::Command::new("sh");
    let output = shell.arg("-c").arg(script).current_dir(folder.path("")).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let codes: Vec<_> = stdout.lines().filter(|line| line.starts_with("exit ")).collect();
    let refused = codes.iter().filter(|code| **code == "exit 1").count();
    assert_eq!(refused, 2, "{stdout}");
    assert_eq!(codes.iter().filter(|code| **code == "exit 0").count(), codes.len() - 2, "{stdout}");
    assert!(codes.len() > 10, "{stdout}");
}
