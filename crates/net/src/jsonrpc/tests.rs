//! The envelope against the whole table of checks, hostile texts, and itself.

use chio_core::canonical::Written;
use chio_testkit::generate::{cases, json as any_json, text as any_text};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::{option, sample};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{
    Body, Inbound, Incoming, Message, Notification, Params, Rejected, Request, RequestId, Response,
    RpcError,
};

/// As an A2A or ACP edge reads: it asks its peer nothing, and knows its methods.
const ASKS_NOTHING: Inbound =
    Inbound::new().without_responses().with_methods(|method| matches!(method, "m" | "n"));

/// As an edge reads whose peer answers it.
const ASKS: Inbound = Inbound::new();

/// What became of a message, in short.
fn told(read: &Result<Message, Rejected>) -> String {
    match read {
        Ok(Message::Request(request)) => {
            format!("request {} {} {}", request.id, request.method, told_params(&request.params))
        }
        Ok(Message::Notification(notification)) => {
            format!("notification {} {}", notification.method, told_params(&notification.params))
        }
        Ok(Message::Response(Response { id, outcome: Ok(body) })) => {
            format!("result {id} {}", body.to_text())
        }
        Ok(Message::Response(Response { id, outcome: Err(error) })) => {
            format!("error {id} {}", super::write::json(error))
        }
        Err(Rejected { error, answer_to: Some(id) }) => format!("{} under {id}", error.code),
        Err(Rejected { error, answer_to: None }) => format!("{} untold", error.code),
    }
}

fn told_params(params: &Params) -> String {
    match params {
        Params::Absent => "-".to_owned(),
        Params::Object(members) => super::write::json(members),
        Params::Array(items) => super::write::json(items),
    }
}

fn read(reader: &Inbound, text: &str) -> Result<Message, Rejected> {
    reader.read(text.as_bytes())
}

#[track_caller]
fn check(reader: &Inbound, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(told(&read(reader, text)), *expected, "{text}");
    }
}

#[test]
fn lawful_messages_are_read() {
    let rows = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m -"),
        (r#"{"jsonrpc":"2.0","id":"1","method":"m","params":{}}"#, r#"request "1" m {}"#),
        (r#"{"jsonrpc":"2.0","id":-1,"method":"m","params":[]}"#, "request -1 m []"),
        (
            r#"{"jsonrpc":"2.0","id":"","method":"m","params":[1,{"a":2}]}"#,
            r#"request "" m [1,{"a":2}]"#,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "request null m -"),
        (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification m -"),
        (r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#, r#"notification n {"a":1}"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","_meta":{},"more":1}"#, "request 1 m -"),
        (" {\"method\": \"m\",\r\n\t\"id\": 1, \"jsonrpc\": \"2.0\"}\n", "request 1 m -"),
        (r#"{"\u006asonrpc":"2.\u0030","id":1,"method":"\u006d"}"#, "request 1 m -"),
    ];
    check(&ASKS_NOTHING, &rows);
    check(&ASKS, &rows);
}

#[test]
fn the_first_check_that_fails_decides_and_says_who_is_told() {
    let rows = [
        // The text.
        ("", "-32700 under null"),
        ("{", "-32700 under null"),
        ("{invalid json without closing brace", "-32700 under null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#, "-32700 under null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}"#, "-32700 under null"),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"m"}"#, "-32600 under null"),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", "-32700 under null"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "-32600 under null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"\u0061":2}}"#, "-32600 under 1"),
        ("7", "-32600 under null"),
        ("null", "-32600 under null"),
        (r#""m""#, "-32600 under null"),
        // The id, before all else.
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "-32600 under null"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, "-32600 under null"),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, "-32600 under null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"nobody's"}"#, "-32600 under null"),
        (r#"{"jsonrpc":"1.0","id":{},"method":7,"params":7}"#, "-32600 under null"),
        // Then `jsonrpc`.
        (r#"{"id":1,"method":"m"}"#, "-32600 under 1"),
        (r#"{"jsonrpc":"1.0","id":"a","method":"m"}"#, r#"-32600 under "a""#),
        (r#"{"jsonrpc":2.0,"id":null,"method":"m"}"#, "-32600 under null"),
        (r#"{"jsonrpc":"2.0 ","id":1,"method":"nobody's"}"#, "-32600 under 1"),
        (r#"{"method":"m"}"#, "-32600 untold"),
        (r#"{"jsonrpc":null,"method":"m"}"#, "-32600 untold"),
        ("{}", "-32600 untold"),
        // Then `method`.
        (r#"{"jsonrpc":"2.0","id":7,"params":{}}"#, "-32600 under 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, "-32600 under 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":["m"],"params":7}"#, "-32600 under 7"),
        (r#"{"jsonrpc":"2.0","params":{}}"#, "-32600 untold"),
        (r#"{"jsonrpc":"2.0","method":7}"#, "-32600 untold"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","result":1}"#, "-32600 under 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","error":null}"#, "-32600 under 7"),
        (r#"{"jsonrpc":"2.0","method":"m","result":1}"#, "-32600 untold"),
        // Then `params`.
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":"a"}"#, "-32602 under 7"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m","params":7}"#, "-32602 under null"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":null}"#, "-32602 under 7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":false}"#, "-32602 under 7"),
        (r#"{"jsonrpc":"2.0","method":"m","params":7}"#, "-32602 untold"),
    ];
    check(&ASKS_NOTHING, &rows);
    check(&ASKS, &rows);
}

#[test]
fn a_method_that_the_edge_does_not_know_is_not_found_whatever_its_params() {
    check(
        &ASKS_NOTHING,
        &[
            (r#"{"jsonrpc":"2.0","id":7,"method":"nobody's"}"#, "-32601 under 7"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"M"}"#, "-32601 under null"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"","params":7}"#, "-32601 under 7"),
            (r#"{"jsonrpc":"2.0","method":"nobody's"}"#, "-32601 untold"),
        ],
    );
    // Without a list, methods are the edge's to know.
    check(&ASKS, &[(r#"{"jsonrpc":"2.0","id":7,"method":""}"#, "request 7  -")]);
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{open}{close}}}"#)
    };
    assert!(read(&ASKS, &nested(95)).is_ok());
    for levels in [96, 200, 100_000] {
        assert_eq!(told(&read(&ASKS, &nested(levels))), "-32600 under 1", "{levels}");
    }
}

#[test]
fn responses_are_read_by_edges_that_ask() {
    check(
        &ASKS,
        &[
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, r#"result 1 {"a":1}"#),
            (r#"{"jsonrpc":"2.0","id":"a","result":null}"#, r#"result "a" null"#),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#,
                r#"error 1 {"code":-1,"message":"no"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"","data":null,"x":1}}"#,
                r#"error null {"code":-1,"message":"","data":null}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no","data":[1]}}"#,
                r#"error null {"code":-32600,"message":"no","data":[1]}"#,
            ),
        ],
    );
}

#[test]
fn a_broken_response_is_answered_by_nobody() {
    for text in [
        r#"{"jsonrpc":"2.0","result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":null}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":1}"#,
        r#"{"id":1,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":[1],"result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"-1","message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":7}}"#,
    ] {
        assert_eq!(told(&read(&ASKS, text)), "-32600 untold", "{text}");
    }
}

#[test]
fn edges_that_ask_nothing_see_a_response_as_a_message_without_a_method() {
    check(
        &ASKS_NOTHING,
        &[
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "-32600 under 1"),
            (r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#, "-32600 untold"),
        ],
    );
}

#[test]
fn a_batch_is_refused() {
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    for text in ["[]".to_owned(), format!("[{one}]"), "[[]]".to_owned(), "[7]".to_owned()] {
        assert_eq!(told(&read(&ASKS, &text)), "-32600 under null", "{text}");
        assert_eq!(told(&read(&ASKS_NOTHING, &text)), "-32600 under null", "{text}");
    }
    for text in ["[", "[}", "[1,]"] {
        for reader in [&ASKS, &ASKS_NOTHING] {
            assert_eq!(told(&read(reader, text)), "-32700 under null", "{text}");
        }
    }
    check(&ASKS, &[("[]", "-32600 under null"), (one, "request 1 m -")]);
}

#[test]
fn a_batch_is_read_message_by_message_where_there_are_batches() {
    let read = |text: &str| match ASKS.read_all(text.as_bytes(), 3) {
        Ok(Incoming::One(message)) => vec![told(&Ok(message))],
        Ok(Incoming::Batch(messages)) => messages.iter().map(told).collect(),
        Err(rejected) => vec![format!("refused: {}", told(&Err(rejected)))],
    };
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    let broken = r#"{"jsonrpc":"2.0","id":2}"#;
    assert_eq!(read(one), ["request 1 m -"]);
    assert_eq!(read(&format!("[{one}]")), ["request 1 m -"]);
    assert_eq!(
        read(&format!("[{broken},{one},[{one}]]")),
        ["-32600 under 2", "request 1 m -", "-32600 under null"]
    );
    for text in ["[]".to_owned(), format!("[{one},{one},{one},{one}]"), "7".to_owned()] {
        assert_eq!(read(&text), ["refused: -32600 under null"], "{text}");
    }
    assert_eq!(read("["), ["refused: -32700 under null"]);
}

#[test]
fn a_rejected_message_is_answered_under_its_id_or_under_null() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m -"),
        (r#"{"jsonrpc":"2.0","method":"n","params":[]}"#, "notification n []"),
        (r#"{"jsonrpc":"2.0","id":2,"result":true}"#, "result 2 true"),
        (r#"{"id":3,"method":"m"}"#, "-32600 under 3"),
        (r#"{"method":"m"}"#, "-32600 untold"),
        (r#"{"id":4,"result":1}"#, "-32600 untold"),
        ("7", "-32600 under null"),
        ("[]", "-32600 under null"),
        (r#"[{"jsonrpc":"2.0","id":5,"method":"m"}]"#, "-32600 under null"),
    ];
    check(&ASKS, &cases);
    let answers = cases.iter().filter_map(|(text, _)| read(&ASKS, text).err()?.into_answer());
    let written = answers.map(|answer| serde_json::from_str(&answer.to_text()).unwrap());
    let ids: Vec<_> = written.map(|answer: Value| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(3), json!(null), json!(null), json!(null)]);
}

#[test]
fn errors_name_what_was_expected_and_never_a_value() {
    for (text, message) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"S3CRET"}"#,
            "expected params as an object or an array, found a string",
        ),
        (
            r#"{"jsonrpc":"S3CRET","id":1,"method":7,"params":{"a":"S3CRET"}}"#,
            "expected jsonrpc to be \"2.0\", found another string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":{"a":"S3CRET"},"method":"m"}"#,
            "expected an id that is a string, an integer of at most 64 bits or null, found an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":["S3CRET"],"params":{"a":"S3CRET"}}"#,
            "expected a method that is a string, found an array",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"params":{"a":"S3CRET"}}"#,
            "expected a method that is a string, found none",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"S3CRET"}"#, "method not found"),
        (r#""S3CRET""#, "expected a message that is an object, found a string"),
        (r#"["S3CRET"]"#, "expected one message, found a batch"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"S3CRET","a":"S3CRET"}}"#,
            "expected each member once, found `a` twice (line 1, column 63)",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"S3CRET" "S3CRET"}}"#,
            "not JSON: expected `,` or `}` at line 1 column 61",
        ),
    ] {
        let rejected = read(&ASKS_NOTHING, text).unwrap_err();
        assert_eq!(rejected.error.message, message, "{text}");
        assert_eq!(rejected.error.data, None, "{text}");
    }
    let error = Params::Array(vec![json!("S3CRET")]).into_object().unwrap_err();
    assert_eq!(error.to_string(), "expected params as an object, found an array (-32602)");
}

#[test]
fn params_by_name_are_empty_when_absent() {
    assert_eq!(Params::Absent.into_object(), Ok(Map::new()));
    let members: Map<_, _> = [("a".to_owned(), json!(1))].into_iter().collect();
    assert_eq!(Params::Object(members.clone()).into_object(), Ok(members));
}

#[test]
fn messages_are_written_compactly_in_the_usual_order() {
    let id = || RequestId::from(7_u64);
    let params = || Params::try_from(json!({"a": "\n", "b": [1, 2]})).unwrap();
    let failed = |error| Response::err(id(), error).to_text();
    for (written, expected) in [
        (
            Response::ok(id(), json!({"a": 1})).to_text(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#,
        ),
        (
            Response::ok(RequestId::NULL, Value::Null).to_text(),
            r#"{"jsonrpc":"2.0","id":null,"result":null}"#,
        ),
        (
            failed(RpcError::parse_error("p")),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"p"}}"#,
        ),
        (
            failed(RpcError::invalid_request("r")),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"r"}}"#,
        ),
        (
            failed(RpcError::method_not_found()),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"method not found"}}"#,
        ),
        (
            failed(RpcError::invalid_params("a")),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"a"}}"#,
        ),
        (
            failed(RpcError::new(RpcError::INTERNAL_ERROR, "i")),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"i"}}"#,
        ),
        (
            failed(RpcError::new(-32001, "v").with_data(json!({"a": [1]}))),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"v","data":{"a":[1]}}}"#,
        ),
        (
            Message::Request(Request { id: "a".into(), method: "m".to_owned(), params: params() })
                .to_text(),
            r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"a":"\n","b":[1,2]}}"#,
        ),
        (
            Notification { method: "n\"".to_owned(), params: Params::Absent }.to_text(),
            r#"{"jsonrpc":"2.0","method":"n\""}"#,
        ),
    ] {
        assert_eq!(written, expected);
    }
}

#[test]
fn a_result_that_was_written_before_is_copied() {
    let written = Written::of(&json!({"b": "\n", "a": 1.0})).unwrap();
    let response = Response::ok(1_u64.into(), &written);
    assert_eq!(response.to_text(), r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":"\n"}}"#);

    let raw = RawValue::from_string(r#"{"b":1.00,"a":[1e2, "\r"]}"#.to_owned()).unwrap();
    let response = Response::ok(1_u64.into(), raw);
    assert_eq!(
        response.to_text(),
        r#"{"jsonrpc":"2.0","id":1,"result":{"b":1.00,"a":[1e2, "\r"]}}"#
    );
    assert_eq!(response.outcome.unwrap().into_value(), json!({"b": 1.0, "a": [100.0, "\r"]}));
}

#[test]
fn a_copied_result_cannot_break_the_line() {
    let raw =
        RawValue::from_string("{\r\n \"a\":\n[1,\n2],\r\"b\": \"\\n\"\n}".to_owned()).unwrap();
    let body = Body::from(raw);
    assert_eq!(body, Body::from(json!({"a": [1, 2], "b": "\n"})));
    let text = Response::ok(RequestId::NULL, body).to_text();
    assert!(!text.contains(['\n', '\r']), "{text}");
}

fn any_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        Just(RequestId::NULL),
        any::<i64>().prop_map(RequestId::from),
        any::<u64>().prop_map(RequestId::from),
        any_text().prop_map(RequestId::from),
    ]
}

fn any_params() -> impl Strategy<Value = Params> {
    prop_oneof![
        Just(Params::Absent),
        vec(any_json(), 0..4).prop_map(Params::Array),
        vec((any_text(), any_json()), 0..4)
            .prop_map(|members| Params::Object(members.into_iter().collect())),
    ]
}

fn any_error() -> impl Strategy<Value = RpcError> {
    (any::<i64>(), any_text(), option::of(any_json())).prop_map(|(code, message, data)| RpcError {
        code,
        message,
        data,
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (any_id(), any_text(), any_params())
            .prop_map(|(id, method, params)| Message::Request(Request { id, method, params })),
        (any_text(), any_params())
            .prop_map(|(method, params)| Message::Notification(Notification { method, params })),
        (any_id(), any_json()).prop_map(|(id, result)| Message::Response(Response::ok(id, result))),
        (any_id(), any_error()).prop_map(|(id, error)| Message::Response(Response::err(id, error))),
    ]
}

/// Objects with the members of messages, right and wrong.
fn near_message() -> impl Strategy<Value = Value> {
    let often = |lawful: Value| prop_oneof![3 => Just(lawful), 1 => any_json()];
    let member = |name: &'static str, value| {
        option::of(value).prop_map(move |value: Option<Value>| value.map(|value| (name, value)))
    };
    let error = json!({"code": 1, "message": "no"});
    let members = (
        member("jsonrpc", often(json!("2.0"))),
        member("id", often(json!(7))),
        member("method", often(json!("m"))),
        member("params", often(json!({}))),
        option::weighted(0.2, often(json!({})))
            .prop_map(|value| value.map(|value| ("result", value))),
        option::weighted(0.2, often(error)).prop_map(|value| value.map(|value| ("error", value))),
    );
    members.prop_map(|(version, id, method, params, result, error)| {
        let members = [version, id, method, params, result, error].into_iter().flatten();
        Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

/// Pieces of messages in any order.
fn rubble() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"id\":",
        "\"jsonrpc\":\"2.0\"",
        "\"method\":\"m\"",
        "\"params\":",
        "\"result\":",
        "\"error\":",
        "null",
        "7",
        "-1e9",
        "\"\\u",
        "\"",
        "\n",
        "\u{7f}",
    ];
    vec(sample::select(pieces.to_vec()), 0..16).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn what_is_written_is_read_back(message in any_message()) {
        let text = message.to_text();
        prop_assert!(!text.contains(['\n', '\r']));
        prop_assert_eq!(ASKS.read(text.as_bytes()), Ok(message));
    }

    #[test]
    fn any_bytes_are_read_or_refused_with_an_answer_that_can_be_read(
        bytes in prop_oneof![
            vec(any::<u8>(), 0..64),
            rubble(),
            any_json().prop_map(|json| json.to_string().into_bytes()),
        ],
    ) {
        for reader in [ASKS, ASKS_NOTHING] {
            let Err(rejected) = reader.read(&bytes) else { continue };
            let Some(answer) = rejected.into_answer() else { continue };
            let read = ASKS.read(answer.to_text().as_bytes());
            prop_assert_eq!(read, Ok(Message::Response(answer)));
        }
    }

    #[test]
    fn only_who_gave_an_id_is_told(value in near_message()) {
        let id = value.get("id").cloned();
        let has = |name| value.get(name).is_some();
        let is_response = !has("method") && (has("result") || has("error"));
        for (reader, takes_responses) in [(ASKS, true), (ASKS_NOTHING, false)] {
            let Err(rejected) = read(&reader, &value.to_string()) else { continue };
            let told = match id.clone() {
                _ if is_response && takes_responses => None,
                None => None,
                Some(id) => Some(RequestId::try_from(id).unwrap_or(RequestId::NULL)),
            };
            prop_assert_eq!(rejected.answer_to, told);
        }
    }
}
