//! Tools that behave: what tests of the everyday need.

use serde_json::{Value, json};

use super::{Effects, Tool, required};
use crate::call::{Call, Outcome, Stop, text};
use crate::resources::WATCHED;

// Made up, and written in two parts so that a search of this file for secrets finds none.
const ACCESS_KEY: &str = concat!("AKIA", "Q7ZLM2XW9RTB5KDV");
const SECRET_KEY: &str = concat!("u8Kq2ZtYw4Nf7RbXs1", "Jd9LmVh3PcGe6TaQo5Wi");

pub(super) const TOOLS: &[Tool] = &[
    Tool::new("echo", "Gives back its text.", |call| Ok(text(call.text("text")?)))
        .takes(|| required(&[("text", "string")])),
    Tool::new("add", "Adds two numbers.", add)
        .takes(|| required(&[("a", "number"), ("b", "number")]))
        .gives(|| required(&[("sum", "number")])),
    Tool::new("slow", "Takes so many milliseconds, unless it is called off.", |call| {
        let milliseconds = call.number("ms")?;
        call.pause(milliseconds)?;
        Ok(text(format!("This took {milliseconds} ms.")))
    })
    .takes(|| required(&[("ms", "integer")])),
    Tool::new("grow", "Adds a tool, and says that the tools have changed.", |call| {
        let number = call.session.grow();
        call.session.wire.notify("notifications/tools/list_changed", &json!({}));
        Ok(text(format!("grown_{number}")))
    })
    .with(Effects::Writes),
    Tool::new("touch_watched", "Says that the watched resource has changed.", touch)
        .with(Effects::Writes),
    Tool::new("env", "Gives the names of the environment variables that it sees.", |_| {
        let mut names: Vec<String> =
            std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(text(names.join("\n")))
    }),
    Tool::new("delete_everything", "Says that it deletes everything; it deletes nothing.", |_| {
        Ok(text("Everything is still there."))
    })
    .with(Effects::Destroys),
    Tool::new("secret", "Gives a text with credentials in it.", |_| {
        Ok(text(format!(
            "[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        )))
    }),
];

fn add(call: &Call) -> Outcome {
    let number = |name: &str| {
        let found = call.arguments.get(name).and_then(Value::as_f64);
        found.ok_or_else(|| Stop::Failed(format!("expected an argument `{name}` that is a number")))
    };
    let sum = number("a")? + number("b")?;
    let mut result = text(sum.to_string());
    if let Some(members) = result.as_object_mut() {
        members.insert("structuredContent".to_owned(), json!({"sum": sum}));
    }
    Ok(result)
}

fn touch(call: &Call) -> Outcome {
    if !call.session.watches(WATCHED) {
        return Ok(text("Nobody watches."));
    }
    call.session.wire.notify("notifications/resources/updated", &json!({"uri": WATCHED}));
    Ok(text("The watcher was told."))
}
