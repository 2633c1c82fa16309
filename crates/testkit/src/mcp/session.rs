//! A client of the hosted transport: its session, and the streams of that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Answer, Request, Wire};

/// The version that sessions are opened with.
const VERSION: &str = "2025-11-25";
/// The kind of an event that only has a number.
const PRIME: &str = "prime";
/// How many signs of life in a row a stream may give, and nothing else.
const MOST_QUIET: usize = 4;

/// Where a client comes in, and what it shows.
#[derive(Debug, Clone)]
pub struct Door {
    /// Its address.
    pub address: String,
    headers: Vec<(String, String)>,
}

impl Door {
    /// The door at a URL.
    pub fn new(url: &str) -> Self {
        let address = url.strip_prefix("http://").and_then(|it| it.strip_suffix("/mcp"));
        Self { address: address.expect("a URL").to_owned(), headers: Vec::new() }
    }

    /// The same for a client that shows this too.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.push((name.to_owned(), value.to_owned()));
        other
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub fn send(&self, request: Request) -> Answer {
        self.send_over(Wire::connect(&self.address), request)
    }

    /// Sends a request on a connection that is there.
    #[track_caller]
    pub fn send_over(&self, wire: Wire, mut request: Request) -> Answer {
        for (name, value) in &self.headers {
            request = request.and(name, value);
        }
        wire.send(&request)
    }

    /// Opens a session of a client that can do nothing special.
    #[track_caller]
    pub fn open(&self) -> Session {
        self.open_with(&json!({}))
    }

    /// Opens a session of a client that can do this.
    #[track_caller]
    pub fn open_with(&self, capabilities: &Value) -> Session {
        self.open_as(VERSION, capabilities)
    }

    /// The same of a client of this version.
    #[track_caller]
    pub fn open_as(&self, version: &str, capabilities: &Value) -> Session {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let session = self.begin(&params);
        session.notify("notifications/initialized", &json!({}));
        session
    }

    /// Sends `initialize` only.
    #[track_caller]
    pub fn begin(&self, params: &Value) -> Session {
        let answer = self.send(Request::post(&initialize(params))).is(200);
        let id = answer.header("mcp-session-id").expect("a session").to_owned();
        let session =
            Session { door: self.clone(), id, welcome: Value::Null, last: AtomicU64::new(0) };
        let mut stream = session.stream(answer, json!(0));
        let welcome = stream.answer()["result"].clone();
        assert_eq!(stream.message(), None, "the stream ends with the answer");
        Session { welcome, ..session }
    }
}

/// A request to open a session.
pub fn initialize(params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Where its client comes in.
    pub door: Door,
    /// Its id.
    pub id: String,
    /// The result of `initialize`.
    pub welcome: Value,
    last: AtomicU64,
}

impl Session {
    /// A request of this session.
    pub fn of(&self, request: Request) -> Request {
        let version = self.welcome["protocolVersion"].as_str().unwrap_or(VERSION);
        request.with("MCP-Session-Id", &self.id).with("MCP-Protocol-Version", version)
    }

    /// Sends a request of this session.
    #[track_caller]
    pub fn send(&self, request: Request) -> Answer {
        self.door.send(self.of(request))
    }

    /// A request with an id that no other had.
    pub fn asks(&self, method: &str, params: &Value) -> (Value, Request) {
        let id = json!(self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, Request::post(&message))
    }

    /// Asks for something; the stream has its answer.
    #[track_caller]
    pub fn start(&self, method: &str, params: &Value) -> Stream {
        let (id, request) = self.asks(method, params);
        let answer = self.send(request).is(200);
        self.stream(answer, id)
    }

    /// Asks for something, and gives the whole answer.
    #[track_caller]
    pub fn request(&self, method: &str, params: &Value) -> Value {
        self.start(method, params).answer()
    }

    /// Begins a call of a tool.
    #[track_caller]
    pub fn start_call(&self, tool: &str, arguments: &Value) -> Stream {
        self.start("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool, and gives its result.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.start_call(tool, arguments).result()
    }

    /// Begins a call, and is gone as soon as it may have begun.
    pub fn vanish_from(&self, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let (_, request) = self.asks("tools/call", &params);
        let wire = Wire::connect(&self.door.address).send_only(&self.of(request));
        // Nothing tells when it begins: long before anything would come.
        thread::sleep(Duration::from_millis(3));
        drop(wire);
    }

    /// The names of all tools.
    #[track_caller]
    pub fn tools(&self) -> Vec<String> {
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.request("tools/list", &params)["result"].clone();
            let tools = page["tools"].as_array().expect("tools").iter();
            names.extend(tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()));
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return names,
            }
        }
    }

    /// Lets the server know something.
    #[track_caller]
    pub fn notify(&self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.post_for_nothing(&message);
    }

    /// Cancels a request.
    #[track_caller]
    pub fn cancel(&self, id: &Value) {
        self.notify("notifications/cancelled", &json!({"requestId": id, "reason": "enough"}));
    }

    /// Answers a question of the server.
    #[track_caller]
    pub fn reply(&self, question: &Value, result: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        self.post_for_nothing(&message);
    }

    /// Sends a message that has no answer.
    #[track_caller]
    pub fn post_for_nothing(&self, message: &Value) {
        let mut answer = self.send(Request::post(message)).is(202);
        assert_eq!(answer.text(), "");
    }

    /// Listens to what belongs to no request.
    #[track_caller]
    pub fn listen(&self) -> Stream {
        self.stream(self.send(Request::get()).is(200), Value::Null)
    }

    /// Asks for what came after an event.
    #[track_caller]
    pub fn come_back(&self, last_event_id: &str) -> Answer {
        self.send(Request::get().with("Last-Event-ID", last_event_id))
    }

    /// Goes on with a stream that was closed, until its answer is there.
    #[track_caller]
    pub fn go_on(&self, mut stream: Stream) -> Value {
        loop {
            if let Some(answer) = stream.try_answer() {
                return answer;
            }
            let (id, last) = (stream.id.clone(), stream.last_event.expect("a number"));
            let mut next = self.stream(self.come_back(&last).is(200), id);
            // Until there is a newer one.
            next.last_event = Some(last);
            next.before = stream.before;
            stream = next;
        }
    }

    /// The stream of an answer to the request of this id.
    pub fn stream(&self, answer: Answer, id: Value) -> Stream {
        Stream {
            session: self.id.clone(),
            answer,
            id,
            unread: String::new(),
            last_event: None,
            before: Vec::new(),
        }
    }
}

/// One event, as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its number, with the session's id before it.
    pub id: String,
    /// Its name; none for a message.
    pub kind: Option<String>,
    /// What it carries.
    pub data: Option<String>,
    /// After how many milliseconds the client may come back.
    pub retry: Option<String>,
}

/// What comes in answer to a request.
#[derive(Debug)]
pub struct Stream {
    session: String,
    /// The answer whose body it is.
    pub answer: Answer,
    /// The id of the request.
    pub id: Value,
    unread: String,
    /// The newest number to go on from.
    pub last_event: Option<String>,
    /// The messages before the answer.
    pub before: Vec<Value>,
}

impl Stream {
    /// The next event; none at the end. One that breaks the rules fails the test.
    #[track_caller]
    pub fn event(&mut self) -> Option<Event> {
        assert_eq!(self.answer.header("content-type"), Some("text/event-stream"));
        let mut quiet = 0;
        loop {
            let Some(end) = self.unread.find("\n\n") else {
                let piece = self.answer.piece()?;
                self.unread.push_str(std::str::from_utf8(&piece).expect("text"));
                continue;
            };
            let text: String = self.unread.drain(..end + 2).collect();
            if !text.starts_with(':') {
                let event = self.read(text.trim_end_matches('\n'));
                self.last_event = Some(event.id.clone());
                return Some(event);
            }
            quiet += 1;
            assert!(quiet < MOST_QUIET, "the server is there and sends nothing");
        }
    }

    #[track_caller]
    fn read(&self, text: &str) -> Event {
        let mut event = Event::default();
        for line in text.lines() {
            let Some((field, value)) = line.split_once(": ") else {
                panic!("expected a field and a value, found {line:?}");
            };
            // Some clients give an empty `data` to their JSON parser.
            assert!(!value.trim().is_empty(), "{text:?}");
            let value = value.to_owned();
            match field {
                "id" => event.id = value,
                "event" => assert_eq!(event.kind.replace(value), None, "{text:?}"),
                "data" => assert_eq!(event.data.replace(value), None, "{text:?}"),
                "retry" => assert_eq!(event.retry.replace(value), None, "{text:?}"),
                _ => panic!("expected a field that is known, found {line:?}"),
            }
        }
        let number = self.number(&event.id);
        let before = self.last_event.as_ref().map_or(0, |last| self.number(last));
        assert!(number > before, "numbers grow: {before}, then {number}");
        event
    }

    /// The number of an event of this session.
    #[track_caller]
    pub fn number(&self, id: &str) -> u64 {
        let rest = id.strip_prefix(&self.session).and_then(|rest| rest.strip_prefix('-'));
        let number = rest.and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("expected an event of {}, found {id:?}", self.session))
    }

    /// The next message; none at the end.
    #[track_caller]
    pub fn message(&mut self) -> Option<Value> {
        if self.answer.header("content-type") == Some("application/json") {
            let text = self.answer.text();
            return (!text.is_empty()).then(|| parse(&text));
        }
        loop {
            let event = self.event()?;
            match (event.kind.as_deref(), event.data) {
                (Some(PRIME), Some(data)) => assert_eq!(data, "{}"),
                (None, Some(data)) => return Some(parse(&data)),
                (None, None) => assert!(event.retry.is_some()),
                (kind, data) => panic!("{kind:?} {data:?}"),
            }
        }
    }

    /// The answer; none when the stream ends before it.
    #[track_caller]
    pub fn try_answer(&mut self) -> Option<Value> {
        loop {
            let message = self.message()?;
            if message.get("method").is_none() {
                assert_eq!(message["id"], self.id, "{message}");
                return Some(message);
            }
            self.before.push(message);
        }
    }

    /// The answer.
    #[track_caller]
    pub fn answer(&mut self) -> Value {
        self.try_answer().expect("an answer before the end of the stream")
    }

    /// The result of a call.
    #[track_caller]
    pub fn result(&mut self) -> Value {
        let answer = self.answer();
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// The next message, which has this method.
    #[track_caller]
    pub fn hears(&mut self, method: &str) -> Value {
        let message = self.message().expect("a message before the end of the stream");
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// What of this method came before the answer.
    pub fn heard(&self, method: &str) -> Vec<&Value> {
        self.before.iter().filter(|message| message["method"] == method).collect()
    }
}

#[track_caller]
fn parse(text: &str) -> Value {
    let message: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{text:?}"));
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    message
}

/// The text of a tool's result.
#[track_caller]
pub fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The receipt that a result names.
#[track_caller]
pub fn receipt_of(result: &Value) -> &str {
    let receipt = result["_meta"]["chio"]["receiptId"].as_str();
    receipt.unwrap_or_else(|| panic!("{result}"))
}
