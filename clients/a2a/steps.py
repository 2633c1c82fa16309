"""What the Python clients do and print; see ../README.md. Both generations of the SDK share it."""

import asyncio
import json
import os
import sys
import uuid

import httpx

PATIENCE = 20
# Made up, and written in two parts so that a search for secrets in this file finds none.
SECRET = "AKIA" + "Q3EGRT5KLMN2WXYZ"

URL = sys.argv[1].rstrip("/")
# What is shown at the door, if anything has to be.
HEADERS = {
    header: before + os.environ[name]
    for name, header, before in [
        ("CHIO_BEARER", "Authorization", "Bearer "),
        ("CHIO_CAPABILITY", "X-Chio-Capability", ""),
    ]
    if name in os.environ
}

TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
PUSH_NOT_SUPPORTED = -32003


def check(holds, seen):
    if not holds:
        raise AssertionError(f"unexpected: {json.dumps(seen)}")
    return seen


def at(skill):
    """Where a single skill is served."""
    return f"{URL}/skills/{skill}"


def view(answer):
    """A task or a message of any dialect, by the same names."""
    status = answer.get("status")
    if status is None:
        return {"kind": "message", **content(answer.get("parts", []), answer)}
    # The seed's dialect has a bare word.
    state = status if isinstance(status, str) else status["state"]
    said = {} if isinstance(status, str) else status.get("message", {})
    parts = [part for artifact in answer.get("artifacts", []) for part in artifact["parts"]]
    return {
        "kind": "task",
        "id": answer["id"],
        "context": answer.get("contextId"),
        "state": state.removeprefix("TASK_STATE_").lower().replace("_", "-"),
        "said": "\n".join(part.get("text", "") for part in said.get("parts", [])),
        **content(parts, answer),
    }


def content(parts, answer):
    return {
        "text": "\n".join(part["text"] for part in parts if "text" in part),
        "data": [part["data"] for part in parts if "data" in part],
        "chio": answer.get("metadata", {}).get("chio", {}),
    }


def receipted(seen, tool, verdict):
    """Every answer comes with the receipt of the call, signed, as a text."""
    chio = seen["chio"]
    receipt = json.loads(chio["receipt"])
    found = [receipt["id"], receipt["tool_name"], receipt["decision"]["verdict"], chio["decision"]]
    return check(found == [chio["receiptId"], tool, verdict, verdict], found)


class Steps:
    """The steps of one run; `sdk` is what differs between the generations of the SDK."""

    def __init__(self, sdk):
        self.sdk = sdk
        self.failed = False
        self.calls = 0

    async def step(self, name, work):
        try:
            detail = await asyncio.wait_for(work(), PATIENCE)
            line = {"step": name, "ok": True, "detail": detail}
        except Exception as error:
            self.failed = True
            line = {"step": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), flush=True)

    async def send(self, skill, text=None, data=None, **options):
        """Sends a message to a skill, of a text or of data."""
        self.calls += 1
        part = {"text": text} if data is None else {"data": data}
        options.setdefault("message_id", str(uuid.uuid4()))
        return view(await self.sdk.send(at(skill), part, options))

    async def get(self, skill, task):
        return view(await self.sdk.get(at(skill), task))

    async def cancel(self, skill, task):
        return view(await self.sdk.cancel(at(skill), task))

    async def refused(self, code, work):
        """The SDK tells a refusal by an error that has this code."""
        try:
            seen = await work
        except Exception as error:
            found = [self.sdk.code(error), str(error)]
            return check(found[0] == code and found[1], found)
        return check(False, seen)

    async def raw(self, method, params, **headers):
        """One call without any SDK; answers the result."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with httpx.AsyncClient(headers={**HEADERS, **headers}) as client:
            answer = (await client.post(f"{URL}/", json=body, timeout=PATIENCE)).json()
        return check("result" in answer and answer["id"] == 1, answer)["result"]

    async def card(self):
        card = await self.sdk.card(URL)
        names = sorted(skill["id"] for skill in card["skills"])
        wanted = {"echo", "note_get", "note_put", "tck"} <= set(names)
        # What needs an approval cannot be published here.
        return check(wanted and "needs_approval" not in names, names)

    async def skill_card(self):
        card = await self.sdk.card(at("echo"))
        seen = [card["name"], [skill["id"] for skill in card["skills"]]]
        return check(seen[1] == ["echo"], seen)

    async def text(self):
        seen = await self.send("echo", "hello")
        check([seen["state"], seen["data"]] == ["completed", [{"text": "hello"}]], seen)
        return receipted(seen, "echo", "allow")

    async def data(self):
        seen = await self.send("echo", data={"text": "hello"})
        check([seen["state"], seen["data"]] == ["completed", [{"text": "hello"}]], seen)
        return receipted(seen, "echo", "allow")

    async def later(self):
        first = await self.send("echo", "later", later=True)
        check(first["state"] == "working" and first["chio"]["receiptPending"] is True, first)
        for _ in range(300):
            seen = await self.get("echo", first["id"])
            if seen["state"] != "working":
                break
            await asyncio.sleep(0.02)
        check([seen["state"], seen["data"]] == ["completed", [{"text": "later"}]], seen)
        check(first["context"] and seen["context"] == first["context"], [first, seen])
        return receipted(seen, "echo", "allow")

    async def cancel_before(self):
        waits = f"tck-wait-{uuid.uuid4()}"
        first = await self.send("tck", "never", later=True, message_id=waits)
        seen = [await self.cancel("tck", first["id"]), await self.get("tck", first["id"])]
        expected = [["canceled", first["context"]]] * 2
        return check([[it["state"], it["context"]] for it in seen] == expected, [first, *seen])

    async def cancel_after(self):
        done = await self.send("echo", "done")
        return await self.refused(TASK_NOT_CANCELABLE, self.cancel("echo", done["id"]))

    async def unknown(self):
        return await self.refused(TASK_NOT_FOUND, self.get("echo", "no-such-task"))

    async def listed(self):
        made = [(await self.send("echo", f"number {n}"))["id"] for n in range(3)]
        first = await self.sdk.list(at("echo"), page_size=2)
        rest = await self.sdk.list(at("echo"), page_size=100, token=first["nextPageToken"])
        ids = [task["id"] for task in first["tasks"] + rest["tasks"]]
        # The newest comes first, none twice, and artifacts only if they are asked for.
        holds = ids[:3] == made[::-1] and len(set(ids)) == len(ids) == first["totalSize"]
        bare = not any("artifacts" in task for task in first["tasks"])
        return check(holds and bare and rest["nextPageToken"] == "", [made, ids, first["totalSize"]])

    async def stream_falls_back(self):
        seen = await self.send("echo", "at once", stream=True)
        return check([seen["state"], seen["data"]] == ["completed", [{"text": "at once"}]], seen)

    async def stream_refused(self):
        sent = self.sdk.insist_on_stream(at("echo"), {"text": "a stream"})
        return await self.refused(self.sdk.NO_STREAM, sent)

    async def push_refused(self):
        done = await self.send("echo", "push")
        asked = self.sdk.push(at("echo"), done["id"], "http://localhost:9/hook")
        return await self.refused(PUSH_NOT_SUPPORTED, asked)

    async def denied(self):
        seen = await self.send("note_put", data={"name": "keys", "text": f"key {SECRET}"})
        check(seen["state"] == "rejected" and seen["said"], seen)
        check(SECRET not in json.dumps(seen), "the secret in the answer")
        return receipted(seen, "note_put", "deny")

    async def tool_fails(self):
        seen = await self.send("note_get", data={"name": "none"})
        check(seen["state"] == "failed" and "no note" in seen["said"], seen)
        return check(seen["chio"]["receiptId"], seen)

    async def message(self):
        seen = await self.send("tck", "hello", message_id=f"tck-message-response-{uuid.uuid4()}")
        check([seen["kind"], seen["text"]] == ["message", "Direct message response"], seen)
        return receipted(seen, "tck", "allow")

    async def input_required(self):
        asked = await self.send("tck", "hello", message_id=f"tck-input-required-{uuid.uuid4()}")
        check(asked["state"] == "input-required" and asked["said"], asked)
        more = {"message_id": f"tck-complete-task-{uuid.uuid4()}", "task": asked["id"]}
        seen = await self.send("tck", "more", **more)
        same = [seen[name] == asked[name] for name in ("id", "context")]
        return check(seen["state"] == "completed" and all(same), [asked, seen])

    async def dialects(self):
        made = await self.send("echo", "for all")
        number = {"id": made["id"]}
        found = [
            view(await self.raw("GetTask", number, **{"A2A-Version": "1.0"})),
            view(await self.raw("tasks/get", number)),
            view(await self.raw("task/get", {"taskId": made["id"]})),
        ]
        seen = [[it["id"], it["state"], it["chio"]["receiptId"]] for it in found]
        expected = [made["id"], made["state"], made["chio"]["receiptId"]]
        return check(seen == [expected] * 3, seen)

    async def rest(self):
        first = view(await self.sdk.rest_send(at("echo"), {"text": "by REST"}))
        self.calls += 1
        check([first["state"], first["data"]] == ["completed", [{"text": "by REST"}]], first)
        seen = view(await self.sdk.rest_get(at("echo"), first["id"]))
        check([seen["id"], seen["state"]] == [first["id"], "completed"], seen)
        lost = self.sdk.rest_get(at("echo"), "no-such-task")
        return await self.refused(TASK_NOT_FOUND, lost)

    async def all(self):
        for name, work in [
            ("card", self.card),
            ("skill card", self.skill_card),
            ("text", self.text),
            ("data", self.data),
            ("later", self.later),
            ("cancel before", self.cancel_before),
            ("cancel after", self.cancel_after),
            ("unknown task", self.unknown),
            ("stream falls back", self.stream_falls_back),
            ("stream refused", self.stream_refused),
            ("push refused", self.push_refused),
            ("denied", self.denied),
            ("tool fails", self.tool_fails),
            ("message", self.message),
            ("input required", self.input_required),
            ("dialects", self.dialects),
            *([("list", self.listed), ("rest", self.rest)] if self.sdk.IS_1_0 else []),
        ]:
            await self.step(name, work)
        print(json.dumps({"step": "calls", "ok": True, "detail": self.calls}), flush=True)


def run(sdk):
    """Does every step, and ends with 0 only if each did what it should."""
    steps = Steps(sdk)
    asyncio.run(steps.all())
    sys.exit(1 if steps.failed else 0)
