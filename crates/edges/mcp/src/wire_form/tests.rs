//! Each version's messages, member by member.

use serde_json::{Value, json};

use super::*;
use Version::{Jul2026, Jun2025, Mar2025, Nov2024, Nov2025};

/// Checks what each version makes of a result, from the oldest to the newest.
#[track_caller]
fn check(method: &str, result: &Value, expected: [&Value; 5]) {
    let versions = [Nov2024, Mar2025, Jun2025, Nov2025, Jul2026];
    for (version, expected) in versions.into_iter().zip(expected) {
        let mut written = result.clone();
        fit_result(version, method, &mut written);
        assert_eq!(written, *expected, "{version:?} {method}");
    }
}

#[test]
fn a_server_says_about_itself_what_the_version_has() {
    let of = |capabilities: Value, info: Value| json!({"capabilities": capabilities, "serverInfo": info, "instructions": "i", "_meta": {}});
    let whole = of(
        json!({"tools": {}, "logging": {}, "completions": {}, "tasks": {}, "experimental": {"x": {}}}),
        json!({"name": "n", "version": "1", "title": "t", "description": "d", "icons": [],
            "websiteUrl": "u"}),
    );
    let plain = json!({"name": "n", "version": "1"});
    check(
        "initialize",
        &whole,
        [
            &of(json!({"tools": {}, "logging": {}, "experimental": {"x": {}}}), plain.clone()),
            &of(
                json!({"tools": {}, "logging": {}, "completions": {}, "experimental": {"x": {}}}),
                plain,
            ),
            &of(
                json!({"tools": {}, "logging": {}, "completions": {}, "experimental": {"x": {}}}),
                json!({"name": "n", "version": "1", "title": "t"}),
            ),
            &whole,
            &whole,
        ],
    );
}

#[test]
fn entries_of_lists_have_the_members_of_the_version() {
    let tools = |tool: Value| json!({"tools": [tool], "nextCursor": "2"});
    let tool = tools(json!({"name": "n", "description": "d", "inputSchema": {}, "vendor": 1,
        "annotations": {"title": "a"}, "title": "t", "outputSchema": {}, "_meta": {"m": 1},
        "execution": {}, "icons": []}));
    let oldest = json!({"name": "n", "description": "d", "inputSchema": {}, "vendor": 1});
    let mut march = oldest.clone();
    march["annotations"] = json!({"title": "a"});
    let mut june = march.clone();
    for (name, value) in
        [("title", json!("t")), ("outputSchema", json!({})), ("_meta", json!({"m": 1}))]
    {
        june[name] = value;
    }
    check("tools/list", &tool, [&tools(oldest), &tools(march), &tools(june), &tool, &tool]);

    for (method, member, address) in [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ] {
        let list = |entry: Value| json!({member: [entry]});
        let annotations = json!({"priority": 1, "lastModified": "2025"});
        let old = list(json!({address: "a", "name": "n", "size": 1, "mimeType": "m",
            "annotations": {"priority": 1}}));
        let june = list(json!({address: "a", "name": "n", "size": 1, "mimeType": "m",
            "annotations": annotations, "title": "t", "_meta": {}}));
        let whole = list(json!({address: "a", "name": "n", "size": 1, "mimeType": "m",
            "annotations": annotations, "title": "t", "_meta": {}, "icons": []}));
        check(method, &whole, [&old, &old, &june, &whole, &whole]);
    }

    let list = |prompt: Value| json!({"prompts": [prompt]});
    let old = list(json!({"name": "n", "arguments": [{"name": "a", "required": true}]}));
    let june = list(json!({"name": "n", "title": "t", "_meta": {},
        "arguments": [{"name": "a", "required": true, "title": "b"}]}));
    let mut whole = june.clone();
    whole["prompts"][0]["icons"] = json!([]);
    check("prompts/list", &whole, [&old, &old, &june, &whole, &whole]);
}

#[test]
fn results_of_tools_say_as_much_as_the_version_can() {
    let text = json!({"type": "text", "text": "x"});
    let of = |content: Value| json!({"content": content, "isError": false, "_meta": {"m": 1}});
    let with = |content: Value| {
        let mut result = of(content);
        result["structuredContent"] = json!({"a": 1});
        result
    };
    let (whole, old) = (with(json!([text])), of(json!([text])));
    check("tools/call", &whole, [&old, &old, &whole, &whole, &whole]);
    // What is said in members only is said in words.
    let silent = with(json!([]));
    let said = of(json!([{"type": "text", "text": r#"{"a":1}"#}]));
    check("tools/call", &silent, [&said, &said, &silent, &silent, &silent]);

    let audio = json!({"type": "audio", "data": "AAA=", "mimeType": "audio/wav",
        "annotations": {"priority": 1}, "_meta": {}});
    let mut plain = audio.clone();
    plain.as_object_mut().unwrap().remove("_meta");
    let embedded = json!({"type": "resource", "annotations": {"priority": 1},
        "resource": {"uri": "chio:audio", "mimeType": "audio/wav", "blob": "AAA="}});
    let (embedded, plain, audio) = (of(json!([embedded])), of(json!([plain])), of(json!([audio])));
    check("tools/call", &audio, [&embedded, &plain, &audio, &audio, &audio]);

    let link = json!({"type": "resource_link", "uri": "test://a", "name": "n", "title": "t",
        "description": "d", "mimeType": "text/plain", "icons": []});
    let mut june = link.clone();
    june.as_object_mut().unwrap().remove("icons");
    let words = of(json!([{"type": "text", "text": "t\ntest://a\ntext/plain\nd"}]));
    let (june, link) = (of(json!([june])), of(json!([link])));
    check("tools/call", &link, [&words, &words, &june, &link, &link]);

    let resource = |meta: bool| {
        let mut contents = json!({"uri": "test://a", "text": "x"});
        let mut block = json!({"type": "resource"});
        if meta {
            contents["_meta"] = json!({});
            block["_meta"] = json!({});
        }
        block["resource"] = contents;
        of(json!([block, 7, {"type": "of others", "_meta": "x"}]))
    };
    let mut old = resource(false);
    old["content"][2] = json!({"type": "of others"});
    let whole = resource(true);
    check("tools/call", &whole, [&old, &old, &whole, &whole, &whole]);
}

#[test]
fn what_is_read_is_written_so_too() {
    let old = json!({"contents": [{"uri": "a", "text": "x"}], "_meta": {"m": 1}});
    let whole = json!({"contents": [{"uri": "a", "text": "x", "_meta": {}}], "_meta": {"m": 1}});
    check("resources/read", &whole, [&old, &old, &whole, &whole, &whole]);
    let prompt = |block: Value| json!({"messages": [{"role": "user", "content": block}]});
    let audio = prompt(json!({"type": "audio", "data": "AAA=", "mimeType": "audio/wav"}));
    let embedded = prompt(json!({"type": "resource",
        "resource": {"uri": "chio:audio", "mimeType": "audio/wav", "blob": "AAA="}}));
    check("prompts/get", &audio, [&embedded, &audio, &audio, &audio, &audio]);
    let other = json!({"title": "t", "tools": [{"title": "t"}], "content": 7});
    for method in ["ping", "completion/complete", "made/up"] {
        check(method, &other, [&other; 5]);
    }
}

#[test]
fn notifications_are_those_of_the_version() {
    let progress = json!({"progressToken": 1, "progress": 2, "total": 3, "message": "m"});
    for (version, has_words, has_tasks) in [
        (Nov2024, false, false),
        (Mar2025, true, false),
        (Jun2025, true, false),
        (Nov2025, true, true),
    ] {
        let mut params = progress.as_object().unwrap().clone();
        assert!(fit_notification(version, "notifications/progress", &mut params));
        assert_eq!((params.contains_key("message"), params.len() >= 3), (has_words, true));
        for method in ["notifications/tasks/status", "notifications/elicitation/complete"] {
            assert_eq!(fit_notification(version, method, &mut Map::new()), has_tasks, "{method}");
        }
        assert!(fit_notification(version, "notifications/message", &mut Map::new()));
        assert!(fit_notification(version, "notifications/of/others", &mut Map::new()));
    }
}

#[test]
fn a_client_is_asked_only_what_its_version_can_say() {
    let asked = |version, method: &str, params: Value| {
        let Value::Object(mut params) = params else { unreachable!() };
        fit_question(version, method, &mut params).then_some(Value::Object(params))
    };
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {}});
    let plain = json!({"message": "m", "requestedSchema": {}});
    let url = json!({"mode": "url", "message": "m", "url": "u", "elicitationId": "e"});
    let create = "elicitation/create";
    assert_eq!(asked(Mar2025, create, plain.clone()), None);
    assert_eq!(asked(Jun2025, create, form.clone()), Some(plain.clone()));
    assert_eq!(asked(Jun2025, create, plain.clone()), Some(plain));
    assert_eq!(asked(Jun2025, create, url.clone()), None);
    assert_eq!(asked(Nov2025, create, form.clone()), Some(form));
    assert_eq!(asked(Nov2025, create, url.clone()), Some(url));

    let sample = "sampling/createMessage";
    let message = |block: Value| json!({"messages": [{"role": "user", "content": block}]});
    let audio = message(json!({"type": "audio", "data": "A", "mimeType": "m"}));
    let text = message(json!({"type": "text", "text": "x"}));
    assert_eq!(asked(Nov2024, sample, text.clone()), Some(text));
    assert_eq!(asked(Nov2024, sample, audio.clone()), None);
    assert_eq!(asked(Mar2025, sample, audio.clone()), Some(audio.clone()));
    let mut tools = audio;
    tools["tools"] = json!([]);
    assert_eq!(asked(Jun2025, sample, tools.clone()), None);
    assert_eq!(asked(Nov2025, sample, tools.clone()), Some(tools));
}

#[test]
fn a_client_can_do_only_what_its_version_has() {
    let said = json!({"roots": {}, "sampling": {"tools": {}, "context": {}}, "tasks": {},
        "elicitation": {"form": {}, "url": {}}, "experimental": {}});
    let old = json!({"roots": {}, "sampling": {}, "experimental": {}});
    let june = json!({"roots": {}, "sampling": {}, "elicitation": {}, "experimental": {}});
    for (version, expected) in
        [(Nov2024, &old), (Mar2025, &old), (Jun2025, &june), (Nov2025, &said), (Jul2026, &said)]
    {
        let mut found = said.as_object().unwrap().clone();
        fit_client(version, &mut found);
        assert_eq!(Value::Object(found), *expected, "{version:?}");
    }
}
