"""The dialect of the seed documents, without any SDK; see ../README.md."""

from wire import URL, check, get, refusal, result, run

# Made up, and written in two parts so that a search for secrets in this file finds none.
SECRET = "AKIA" + "Q3EGRT5KLMN2WXYZ"
V1 = {"A2A_Version": "1.0"}


def params(skill, part):
    message = {"role": "user", "parts": [part]}
    return {"message": message, "metadata": {"chio": {"targetSkillId": skill}}}


def text(said):
    return {"type": "text", "text": said}


def data(value):
    return {"type": "data", "data": value}


def receipted(task, verdict):
    chio = task["metadata"]["chio"]
    seen = [chio["receipt"]["id"], chio["receipt"]["decision"]["verdict"], chio["decision"]]
    return check(seen == [chio["receiptId"], verdict, verdict], seen)


CHECKS = []


def demanded(work):
    CHECKS.append(work)
    return work


# covers: BRIDGE-013, BRIDGE-017, BRIDGE-060, BRIDGE-063..BRIDGE-065, BRIDGE-067..BRIDGE-069
@demanded
def the_card_says_what_the_seed_says():
    card = get("/.well-known/agent-card.json").json()
    [interface] = [it for it in card["supportedInterfaces"] if it["protocolBinding"] == "JSONRPC"]
    seen = [interface["protocolVersion"], card["capabilities"]["streaming"]]
    check(seen == ["1.0", False] and interface["url"].rstrip("/") == URL, interface)
    check(card["defaultInputModes"] == card["defaultOutputModes"] == ["text"], card)
    skills = {skill["id"]: skill["bridgeFidelity"]["kind"] for skill in card["skills"]}
    check(list(skills) == sorted(skills), list(skills))
    fidelity = [skills["echo"], skills["note_put"], skills.get("needs_approval")]
    return check(fidelity == ["lossless", "adapted", None], skills)


# covers: BRIDGE-077, BRIDGE-082, BRIDGE-084
@demanded
def a_message_is_answered_when_the_task_is_over():
    task = result("message/send", params("echo", text("hello")))
    check(task["id"].startswith("a2a-task-") and task["status"] == "completed", task)
    check(task["message"]["parts"] == [data({"text": "hello"})], task["message"])
    return receipted(task, "allow")


# covers: BRIDGE-081
@demanded
def numbers_of_tasks_grow():
    seen = [result("message/send", params("echo", text("n")))["id"] for _ in range(3)]
    numbers = [int(it.removeprefix("a2a-task-")) for it in seen]
    return check(numbers == sorted(set(numbers)), numbers)


# covers: BRIDGE-111
@demanded
def a_denied_call_has_failed_and_has_its_receipt():
    secret = data({"name": "keys", "text": f"key {SECRET}"})
    task = result("message/send", params("note_put", secret))
    check(task["status"] == "failed" and task["statusMessage"], task)
    return receipted(task, "deny")


# covers: BRIDGE-086, BRIDGE-088, BRIDGE-089, BRIDGE-092, BRIDGE-093
@demanded
def a_stream_is_a_task_that_waits_until_it_is_asked_for():
    first = result("message/stream", params("echo", text("later")))
    chio = first["metadata"]["chio"]
    waits = [first["status"], chio["receiptPending"], chio["receiptId"]]
    check(waits == ["working", True, None], first)
    number = {"taskId": first["id"]}
    task = result("task/get", number)
    check(task["message"]["parts"] == [data({"text": "later"})], task)
    again = result("task/get", number)
    ids = [it["metadata"]["chio"]["receiptId"] for it in (task, again)]
    check(ids[0] == ids[1], ids)
    return receipted(task, "allow")


# covers: BRIDGE-023, BRIDGE-091
@demanded
def a_task_that_waits_can_be_called_off():
    first = result("message/stream", params("echo", text("never")))
    task = result("task/cancel", {"taskId": first["id"]})
    check(task["status"] == "cancelled", task)
    return result("task/get", {"taskId": first["id"]})["status"]


# covers: BRIDGE-080, BRIDGE-087, BRIDGE-162, BRIDGE-163
@demanded
def what_cannot_be_is_refused():
    several = {"message": {"role": "user", "parts": [text("to whom?")]}}
    over = {"taskId": result("message/send", params("echo", text("over")))["id"]}
    for method, given, code in [
        ("message/send", several, -32602),
        ("message/send", params("no-such-skill", text("a")), -32602),
        ("message/send", params("needs_approval", text("a")), -32602),
        ("message/send", params("echo", {"type": "video"}), -32602),
        ("message/stream", several, -32602),
        ("task/get", {"taskId": "no-such-task"}, -32602),
        ("task/cancel", over, -32602),
        ("no/such/method", {}, -32601),
    ]:
        error = refusal(code, method, given)
        check(set(error) == {"code", "message"}, error)
    return "eight ways"


@demanded
def a_stream_of_another_dialect_is_refused():
    part = {"kind": "text", "text": "a stream"}
    old = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
    refusal(-32004, "message/stream", params("echo", None) | {"message": old})
    new = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a stream"}]}
    return refusal(-32004, "SendStreamingMessage", {"message": new}, **V1)["message"]


@demanded
def a_task_of_another_dialect_is_the_same_task():
    made = result("message/send", params("echo", text("for all")))
    new = result("GetTask", {"id": made["id"]}, **V1)
    old = result("tasks/get", {"id": made["id"]})
    states = [new["status"]["state"], old["status"]["state"], old["kind"]]
    check(states == ["TASK_STATE_COMPLETED", "completed", "task"], states)
    receipts = {it["metadata"]["chio"]["receiptId"] for it in (made, new, old)}
    return check(len(receipts) == 1, list(receipts))


run(CHECKS)
