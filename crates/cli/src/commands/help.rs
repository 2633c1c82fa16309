//! Help pages: their paragraphs flow, and only the terminal says where lines end.

use clap::Command;

/// The command and all below it, with the text behind their options in one line for each paragraph.
/// What begins with a blank, such as an example, stays as it is written.
pub(super) fn flowing(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = match text {
        Some(text) => command.after_help(joined(&text)),
        None => command,
    };
    command.mut_subcommands(flowing)
}

fn joined(text: &str) -> String {
    let mut joined = String::new();
    let mut flows = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !joined.is_empty() {
            joined.push(if flows && is_prose { ' ' } else { '\n' });
        }
        joined.push_str(line);
        flows = is_prose;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn paragraphs_flow_and_examples_stay() {
        for (text, expected) in [
            ("One\ntwo.\n\nThree\nfour.", "One two.\n\nThree four."),
            ("See:\n  a b\n  c\nand\nmore", "See:\n  a b\n  c\nand more"),
            ("", ""),
        ] {
            assert_eq!(joined(text), expected);
        }
    }
}
