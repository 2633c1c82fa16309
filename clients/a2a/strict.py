"""What the official test kit of A2A 1.0 demands of a JSON-RPC server, as far as we know it.

The kit itself is in no package registry. It talks to the strict mount of an edge with one skill,
`tck` of the MCP fixture, without any SDK. See ../README.md.
"""

import base64
import json
import re
import time
import uuid

from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import ParseDict
from wire import call, check, get, post, refusal, result, run

V1 = {"A2A_Version": "1.0"}
NOT_FOUND, NOT_CANCELABLE, NO_PUSH, UNSUPPORTED = -32001, -32002, -32003, -32004
CONTENT_TYPE, VERSION = -32005, -32009
SNAKE = re.compile(r"[a-z0-9]_[a-z0-9]")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def clean(value, name=""):
    """No name with an underscore anywhere, and no time but of the one form."""
    if isinstance(value, dict):
        for key, member in value.items():
            check(not SNAKE.search(key), f"the name {key}")
            clean(member, key)
    elif isinstance(value, list):
        for member in value:
            clean(member)
    elif name == "timestamp":
        check(isinstance(value, str) and TIME.match(value), f"the time {value}")


def typed(kind, value):
    """A value that has nothing but what the protocol's own types have."""
    clean(value)
    ParseDict(value, kind(), ignore_unknown_fields=False)
    return value


def message(beginning, part=None, **members):
    parts = [part or {"text": "hello"}]
    own = {"messageId": f"{beginning}-{uuid.uuid4()}", "role": "ROLE_USER", "parts": parts}
    return own | members


def send(beginning, part=None, configuration=None, **members):
    params = {"message": message(beginning, part, **members)}
    if configuration:
        params["configuration"] = configuration
    return typed(a2a.SendMessageResponse, result("SendMessage", params, **V1))


def task(*arguments, **members):
    answer = send(*arguments, **members)
    return check(list(answer) == ["task"], answer)["task"]


def read(task_id, **params):
    return typed(a2a.Task, result("GetTask", {"id": task_id} | params, **V1))


def state(of):
    return of["status"]["state"].removeprefix("TASK_STATE_")


def parts(of):
    return [part for artifact in of["artifacts"] for part in artifact["parts"]]


def told(error):
    """An error of A2A says why in a form that programs can read."""
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    infos = [it for it in error["data"] if it["@type"] == kind]
    return check(infos and infos[0]["reason"] and infos[0]["domain"], error)


CHECKS = []


def demanded(work):
    CHECKS.append(work)
    return work


@demanded
def the_card_has_nothing_but_what_a_card_has():
    response = get("/.well-known/agent-card.json", **{"A2A-Version": "1.0"})
    check(response.headers["content-type"].startswith("application/json"), response.headers)
    card = typed(a2a.AgentCard, response.json())
    for name in ["name", "description", "version", "capabilities", "skills"]:
        check(card.get(name), name)
    check(card["supportedInterfaces"], card)
    for interface in card["supportedInterfaces"]:
        check(interface["url"] and interface["protocolVersion"].startswith("1.0"), interface)
    for skill in card["skills"]:
        check(all(skill.get(it) for it in ["id", "name", "description", "tags"]), skill)
    check(not card["capabilities"].get("streaming"), card["capabilities"])
    return [skill["id"] for skill in card["skills"]]


@demanded
def the_card_is_sent_again_only_when_it_has_changed():
    first = get("/.well-known/agent-card.json")
    again = get("/.well-known/agent-card.json", **{"If-None-Match": first.headers["etag"]})
    check("max-age" in first.headers["cache-control"], first.headers)
    return check(again.status_code == 304 and not again.content, again.status_code)


@demanded
def a_task_is_completed():
    return check(state(task("tck-complete-task")) == "COMPLETED", "state")


@demanded
def an_artifact_is_a_text():
    seen = parts(task("tck-artifact-text"))
    return check([it.get("text") for it in seen] == ["Generated text content"], seen)


@demanded
def an_artifact_is_a_file():
    [part] = parts(task("tck-artifact-file"))
    check([part["filename"], part["mediaType"]] == ["output.txt", "text/plain"], part)
    return check(base64.b64decode(part["raw"]), part)


@demanded
def an_artifact_is_a_link_to_a_file():
    [part] = parts(task("tck-artifact-file-url"))
    check([part["filename"], part["mediaType"]] == ["output.txt", "text/plain"], part)
    return check(part["url"], part)


@demanded
def an_artifact_is_data():
    [part] = parts(task("tck-artifact-data"))
    return check(part["data"] == {"key": "value", "count": 42}, part)


@demanded
def a_message_is_answered_by_a_message():
    answer = send("tck-message-response")
    seen = check(list(answer) == ["message"], answer)["message"]
    check([seen["role"], seen["contextId"] != ""] == ["ROLE_AGENT", True], seen)
    texts = [part.get("text") for part in seen["parts"]]
    return check(texts == ["Direct message response"], texts)


@demanded
def a_task_asks_for_more_and_goes_on():
    asked = task("tck-input-required")
    check(state(asked) == "INPUT_REQUIRED" and asked["status"]["message"]["parts"], asked)
    seen = task("tck-complete-task", taskId=asked["id"])
    same = [seen[name] == asked[name] for name in ("id", "contextId")]
    return check(state(seen) == "COMPLETED" and all(same), [asked, seen])


@demanded
def a_part_of_a_strange_kind_is_no_reason_to_refuse():
    raw = base64.b64encode(b"strange").decode()
    part = {"raw": raw, "mediaType": "application/x-unsupported-tck-type"}
    return check(state(task("tck-strange", part)) == "COMPLETED", "state")


@demanded
def another_content_type_is_refused_before_the_body_is_read():
    response = post("this is no JSON", Content_Type="text/plain", **V1)
    error = response.json()["error"]
    return told(error) and check(error["code"] == CONTENT_TYPE, error)


@demanded
def bodies_that_are_no_requests_are_refused():
    seen = [post(body, **V1).json()["error"]["code"] for body in ["{", "[]", '{"id": 1}', "42"]]
    return check(seen == [-32700, -32600, -32600, -32600], seen)


@demanded
def versions_are_kept_apart():
    known = {"message": message("tck-complete-task")}
    for version, code in [("99.0", VERSION), ("0.3", VERSION), (None, VERSION)]:
        told(refusal(code, "SendMessage", known, A2A_Version=version))
    # An empty one may be taken or not, as long as it is answered.
    empty = post(
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": known}, A2A_Version=""
    )
    check(empty.status_code == 200 and {"result", "error"} & set(empty.json()), empty.text)
    return check("result" in call("SendMessage", known, path="/?A2A-Version=1.0"), "by query")


@demanded
def later_minor_versions_and_unknown_extensions_are_taken():
    known = {"message": message("tck-complete-task")}
    extra = {"A2A_Extensions": "https://example.com/none", "A2A_Version": "1.0.1"}
    return result("SendMessage", known, **extra)["task"]["id"]


@demanded
def a_message_that_is_none_is_refused():
    told_of = [refusal(-32602, "SendMessage", params, **V1)["message"] for params in [
        {},
        {"message": {}},
        {"message": message("tck", parts=[])},
        {"message": {"role": "ROLE_USER", "parts": [{"text": "no id"}]}},
    ]]
    return check(all(told_of), told_of)


@demanded
def an_unknown_method_is_refused_with_an_error_that_is_only_that():
    error = refusal(-32601, "NoSuchMethod", {}, **V1)
    return check(set(error) <= {"code", "message", "data"}, error)


@demanded
def the_id_of_a_request_comes_back_as_it_was():
    seen = [call("GetTask", {"id": "none"}, number=it, **V1)["id"] for it in (7, "seven", "7")]
    return check(seen == [7, "seven", "7"], seen)


@demanded
def names_may_be_written_with_underscores():
    own = {"message_id": f"tck-complete-{uuid.uuid4()}", "context_id": "mine", "role": 1}
    params = {"message": own | {"parts": [{"text": "hello", "media_type": "text/plain"}]}}
    seen = typed(a2a.SendMessageResponse, result("SendMessage", params, path="/", **V1))["task"]
    listed = result("ListTasks", {"page_size": 1, "context_id": "mine"}, **V1)
    same = [it["id"] for it in listed["tasks"]] == [seen["id"]]
    return check(seen["contextId"] == "mine" and same, listed)


@demanded
def what_nobody_knows_is_left_aside():
    params = {"message": message("tck-complete-task", somethingNew={"a": 1}), "alsoNew": [1]}
    return check("task" in result("SendMessage", params, **V1), params)


@demanded
def a_context_is_made_kept_and_not_changed():
    made = task("tck-complete-task")
    check(made["contextId"], made)
    kept = task("tck-complete-task", contextId="chosen")
    check(kept["contextId"] == "chosen", kept)
    asked = task("tck-input-required")
    wrong = message("tck-complete-task", taskId=asked["id"], contextId="another")
    return refusal(-32602, "SendMessage", {"message": wrong}, **V1)["message"]


@demanded
def a_task_that_is_over_or_unknown_takes_no_message():
    over = message("tck-complete-task", taskId=task("tck-complete-task")["id"])
    told(refusal(UNSUPPORTED, "SendMessage", {"message": over}, **V1))
    nobody = message("tck-complete-task", taskId="no-such-task")
    return told(refusal(NOT_FOUND, "SendMessage", {"message": nobody}, **V1))


@demanded
def a_task_can_be_read_again():
    made = task("tck-artifact-text")
    seen = read(made["id"])
    return check([seen["id"], seen["artifacts"]] == [made["id"], made["artifacts"]], seen)


@demanded
def a_task_tells_as_much_of_its_history_as_is_asked_for():
    asked = task("tck-input-required")
    made = task("tck-complete-task", taskId=asked["id"])
    lengths = [len(read(made["id"], historyLength=n).get("history", [])) for n in (0, 1)]
    return check(lengths == [0, 1], lengths)


@demanded
def a_task_that_is_told_at_once_begins_at_once():
    made = task("tck-artifact-text", None, {"returnImmediately": True})
    check(state(made) in ("SUBMITTED", "WORKING"), made)
    for _ in range(300):
        seen = read(made["id"])
        if state(seen) != "WORKING":
            break
        time.sleep(0.02)
    return check(state(seen) == "COMPLETED", made)


@demanded
def a_task_that_works_can_be_called_off_once():
    made = task("tck-wait", None, {"returnImmediately": True})
    seen = typed(a2a.Task, result("CancelTask", {"id": made["id"]}, **V1))
    again = read(made["id"])
    check([state(seen), state(again)] == ["CANCELED", "CANCELED"], [seen, again])
    check(made["contextId"] == seen["contextId"] == again["contextId"], [made, seen, again])
    return told(refusal(NOT_CANCELABLE, "CancelTask", {"id": made["id"]}, **V1))


@demanded
def a_task_that_is_over_or_unknown_is_not_called_off():
    over = {"id": task("tck-complete-task")["id"]}
    told(refusal(NOT_CANCELABLE, "CancelTask", over, **V1))
    told(refusal(NOT_FOUND, "CancelTask", {"id": "no-such-task"}, **V1))
    return told(refusal(NOT_FOUND, "GetTask", {"id": "no-such-task"}, **V1))


@demanded
def tasks_are_listed_in_pages_the_newest_first():
    context = f"listed-{uuid.uuid4()}"
    made = [task("tck-artifact-text", contextId=context)["id"] for _ in range(3)]
    asked = {"contextId": context, "pageSize": 2}
    first = typed(a2a.ListTasksResponse, result("ListTasks", asked, **V1))
    asked["pageToken"] = first["nextPageToken"]
    last = typed(a2a.ListTasksResponse, result("ListTasks", asked, **V1))
    ids = [it["id"] for it in first["tasks"] + last["tasks"]]
    check(ids == made[::-1], [made, ids])
    whole = {"tasks", "nextPageToken", "pageSize", "totalSize"}
    check(all(set(it) == whole for it in (first, last)), [first, last])
    check([first["totalSize"], last["nextPageToken"]] == [3, ""], [first, last])
    check(not any("artifacts" in it for it in first["tasks"]), first)
    full = result("ListTasks", {"contextId": context, "includeArtifacts": True}, **V1)
    return check(all(it["artifacts"] for it in full["tasks"]), full)


@demanded
def lists_that_make_no_sense_are_refused():
    odd = [{"pageSize": 0}, {"pageSize": 101}, {"pageToken": "none"}, {"historyLength": -1}]
    return [refusal(-32602, "ListTasks", params, **V1)["message"] for params in odd]


@demanded
def what_the_card_does_not_promise_is_refused():
    known = {"message": message("tck-complete-task")}
    over = task("tck-complete-task")["id"]
    config = {"taskId": over, "id": "one", "url": "https://example.com/hook"}
    for method, params, code in [
        ("SendStreamingMessage", known, UNSUPPORTED),
        ("SubscribeToTask", {"id": over}, UNSUPPORTED),
        ("GetExtendedAgentCard", {}, UNSUPPORTED),
        ("CreateTaskPushNotificationConfig", config, NO_PUSH),
        ("GetTaskPushNotificationConfig", {"taskId": over, "id": "one"}, NO_PUSH),
        ("ListTaskPushNotificationConfigs", {"taskId": over}, NO_PUSH),
        ("DeleteTaskPushNotificationConfig", {"taskId": over, "id": "one"}, NO_PUSH),
    ]:
        told(refusal(code, method, params, **V1))
    return "seven methods"


@demanded
def the_receipt_is_a_text_beside_the_answer():
    chio = task("tck-complete-task")["metadata"]["chio"]
    receipt = json.loads(chio["receipt"])
    seen = [receipt["id"], receipt["tool_name"], chio["decision"], chio["receiptPending"]]
    return check(seen == [chio["receiptId"], "tck", "allow", False], seen)


run(CHECKS)
