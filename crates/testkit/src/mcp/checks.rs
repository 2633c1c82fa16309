//! What has to be so of every session that a client may not use.

use serde_json::{Value, json};

use super::{Door, Request, Session};

impl Session {
    /// Checks that nothing can be done in this session, which ended so.
    #[track_caller]
    pub fn check_over(&self, state: &str) {
        let echo = json!({"name": "echo", "arguments": {"text": "x"}});
        let answer = json!({"jsonrpc": "2.0", "id": "chio-1", "result": {}});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        for request in [
            self.asks("tools/call", &echo).1,
            self.asks("tools/list", &json!({})).1,
            self.asks("ping", &json!({})).1,
            Request::post(&answer),
            Request::post(&ready),
            Request::get(),
            Request::get().with("Last-Event-ID", &format!("{}-1", self.id)),
            Request::delete(),
        ] {
            let what = format!("{request:?}");
            let message = self.send(request).check_for(404, &what).json();
            assert_eq!(message["id"], Value::Null, "{what}: {message}");
            assert_eq!(message["error"]["code"], -32600, "{what}: {message}");
            let known = &message["error"]["data"]["chioError"];
            assert_eq!(known["name"], "session_not_initialized", "{what}: {message}");
            assert_eq!(known["retry"]["strategy"], "reinitialize", "{what}: {message}");
            let words = message["error"]["message"].as_str().unwrap_or_default();
            assert!(words.contains(state), "{what}: {message}");
        }
    }

    /// Checks that another client cannot use this session.
    #[track_caller]
    pub fn check_refused_to(&self, thief: &Door) {
        let echo = json!({"name": "echo", "arguments": {"text": "stolen"}});
        for request in [
            self.asks("tools/call", &echo).1,
            self.asks("ping", &json!({})).1,
            Request::post(&json!({"jsonrpc": "2.0", "id": "chio-1", "result": {}})),
            Request::post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": 1}})),
            Request::get(),
            Request::get().with("Last-Event-ID", &format!("{}-1", self.id)),
            Request::delete(),
        ] {
            let what = format!("{request:?}");
            let message = thief.send(self.of(request)).check_for(403, &what).json();
            let known = &message["error"]["data"]["chioError"];
            assert_eq!(known["name"], "auth_missing_or_invalid", "{what}: {message}");
            assert!(message.get("result").is_none(), "{what}: {message}");
        }
    }
}
