//! The input of a client that has started this program. It is read while tool servers start, so that
//! they learn what the client can do, and so that its end is seen.

use std::io::Cursor;

use chio_mcp_adapter::ComingClient;
use chio_net::jsonrpc::{Inbound, Message};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, Stdin, stdin};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How many bytes are read before anything is served.
const MAX_HELD: usize = 1 << 20;

/// Standard input, from its first byte on.
pub(crate) struct ClientInput {
    /// What the client can do; nothing where its first message does not say.
    pub(crate) client: ComingClient,
    /// Cancelled when the client has closed its end.
    pub(crate) ended: CancellationToken,
    hand_over: oneshot::Sender<()>,
    reading: JoinHandle<(Vec<u8>, Stdin)>,
}

impl ClientInput {
    /// Begins to read.
    pub(crate) fn open() -> Self {
        let (tell, client) = watch::channel(None);
        let (hand_over, handed_over) = oneshot::channel();
        let ended = CancellationToken::new();
        let reading = tokio::spawn(read(tell, ended.clone(), handed_over));
        Self { client, ended, hand_over, reading }
    }

    /// All of it, for who serves the client.
    pub(crate) async fn into_reader(self) -> Box<dyn AsyncRead + Send + Unpin> {
        // Gone only with its reader, which then says so.
        let _ = self.hand_over.send(());
        match self.reading.await {
            Ok((held, input)) => Box::new(Cursor::new(held).chain(input)),
            Err(_) => Box::new(tokio::io::empty()),
        }
    }
}

async fn read(
    client: watch::Sender<Option<Map<String, Value>>>,
    ended: CancellationToken,
    mut handed_over: oneshot::Receiver<()>,
) -> (Vec<u8>, Stdin) {
    let (mut input, mut held) = (stdin(), Vec::new());
    let mut piece = vec![0; 64 << 10];
    let mut goes_on = true;
    loop {
        let read = tokio::select! {
            biased;
            _ = &mut handed_over => break,
            read = input.read(&mut piece), if goes_on => read.unwrap_or(0),
        };
        held.extend_from_slice(piece.get(..read).unwrap_or_default());
        if read == 0 {
            ended.cancel();
        }
        goes_on = read > 0 && held.len() < MAX_HELD;
        if client.borrow().is_none() {
            let first = first_line(&held).map(capabilities);
            client.send_replace(first.or_else(|| (!goes_on).then(Map::new)));
        }
    }
    (held, input)
}

/// The first line that is not blank, when it is there as a whole.
fn first_line(held: &[u8]) -> Option<&[u8]> {
    let mut lines = held.split_inclusive(|byte| *byte == b'\n');
    lines.find(|line| !line.trim_ascii().is_empty()).filter(|line| line.ends_with(b"\n"))
}

/// What a client can do that sends this message first.
fn capabilities(line: &[u8]) -> Map<String, Value> {
    let Ok(Message::Request(request)) = Inbound::new().read(line) else { return Map::new() };
    let params = request.params.into_object().ok();
    let params = params.filter(|_| request.method == "initialize");
    match params.and_then(|mut params| params.remove("capabilities")) {
        Some(Value::Object(capabilities)) => capabilities,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_message_says_what_the_client_can_do() {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"capabilities": {"roots": {}}}});
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        for (held, expected) in [
            (format!("\n \n{initialize}\n"), Some(json!({"roots": {}}))),
            (format!("{initialize}\n{ping}\n"), Some(json!({"roots": {}}))),
            (initialize.to_string(), None),
            (String::new(), None),
            (format!("{ping}\n{initialize}\n"), Some(json!({}))),
            ("garbage\n".to_owned(), Some(json!({}))),
        ] {
            let found = first_line(held.as_bytes()).map(capabilities).map(Value::Object);
            assert_eq!(found, expected, "{held}");
        }
    }
}
