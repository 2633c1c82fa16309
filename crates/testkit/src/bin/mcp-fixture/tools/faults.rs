//! Tools that do what no tool should.

use std::thread;

use serde_json::{Value, json};

use super::{Effects, Tool, required};
use crate::call::{Call, Outcome, Stop, text};
use crate::complain;

/// The exit code of `crash`.
const CRASH: i32 = 3;
/// How many lines `noisy_stderr` writes.
const NOISE: u64 = 1000;
/// Lines that are no message of ours to the client, some of them no text at all.
const GARBAGE: [&[u8]; 9] = [
    b"this is no JSON",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":",
    b"",
    b"[]",
    b"42",
    b"{\"id\":\"a member is missing\",\"result\":{}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody asked this\",\"result\":{}}",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody_knows\",\"params\":{}}",
    b"\xff\xfe\x00\x80",
];

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("hang", "Never answers, whatever happens.", |_| {
        loop {
            thread::park();
        }
    }),
    Tool::new("flood", "Sends so many progress notifications at once.", flood)
        .takes(|| required(&[("count", "integer")])),
    Tool::new("log_flood", "Sends so many log messages at once.", |call| {
        let count = call.number("count")?;
        for number in 1..=count {
            call.session.log("info", &format!("message {number} of {count}"));
        }
        Ok(text(format!("{count} messages were sent.")))
    })
    .takes(|| required(&[("count", "integer")])),
    Tool::new("garbage", "Writes lines that are no messages, then answers.", |call| {
        for line in GARBAGE {
            call.session.wire.send_bytes(&[line, b"\n"].concat());
        }
        Ok(text("There was garbage before this."))
    }),
    Tool::new("huge", "Gives a result of so many megabytes.", |call| {
        let bytes = call.number("megabytes")?.saturating_mul(1 << 20);
        Ok(text("x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX))))
    })
    .takes(|| required(&[("megabytes", "integer")])),
    Tool::new("crash", "Ends the whole server in the middle of the call.", |_| {
        std::process::exit(CRASH)
    })
    .with(Effects::Unsaid),
    Tool::new("noisy_stderr", "Writes many lines to standard error.", |_| {
        for number in 1..=NOISE {
            complain(format_args!("noise {number} of {NOISE}"));
        }
        Ok(text(format!("{NOISE} lines were written.")))
    }),
];

/// Tools that clients may fall over, or whose arguments do not say what they do.
pub(super) const HIDDEN: &[Tool] = &[
    Tool::new("deep", "Takes what its schema says, which takes 2^60 looks to tell.", |_| {
        Ok(text("It was taken."))
    })
    .takes(deep),
    Tool::new(
        "checkout",
        "Puts the files of a branch, a folder, in the place of those here.",
        |call| {
            let failed = |error: std::io::Error| Stop::Failed(format!("cannot copy: {error}"));
            for entry in std::fs::read_dir(call.text("branch")?).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                std::fs::copy(entry.path(), entry.file_name()).map_err(failed)?;
            }
            Ok(text("It is checked out."))
        },
    )
    .takes(|| required(&[("branch", "string")]))
    .with(Effects::Destroys),
];

/// Sixty levels, each of twice the one below.
fn deep() -> Value {
    let below = |level: u32| json!({"$ref": format!("#/$defs/level{}", level + 1)});
    let mut levels: serde_json::Map<String, Value> = (0..60)
        .map(|level| (format!("level{level}"), json!({"allOf": [below(level), below(level)]})))
        .collect();
    levels.insert("level60".to_owned(), json!({"required": ["text"]}));
    json!({"type": "object", "allOf": [{"$ref": "#/$defs/level0"}], "$defs": levels})
}

/// A caller who wants no progress gets it under a token that no caller gave.
fn flood(call: &Call) -> Outcome {
    let count = call.number("count")?;
    let token: Value = call.progress_token.clone().unwrap_or_else(|| json!("nobody-gave-this"));
    for number in 1..=count {
        call.progress_of(&token, number, count);
    }
    Ok(text(format!("{count} notifications were sent.")))
}
