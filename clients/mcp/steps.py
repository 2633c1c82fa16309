"""What the Python clients do and print; see ../README.md. Both generations of the SDK share it."""

import asyncio
import json
import logging
import subprocess
import sys

PATIENCE = 20
ANSWER = "forty-two"
USER = {"username": "ada", "email": "ada@example.com"}

# What the only argument says is to be done.
TASK = json.loads(sys.argv[1])

ROOT = TASK.get("root", "file:///fixture")


class Resumes(logging.Handler):
    """Counts how often the SDK says that a stream was taken up again."""

    count = 0

    def emit(self, record):
        if "Reconnected to SSE stream" in record.getMessage():
            self.count += 1


def watch_resumes():
    """Listens to what the SDK logs, without printing it."""
    resumes = Resumes()
    logger = logging.getLogger("mcp.client.streamable_http")
    logger.addHandler(resumes)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return resumes


def plain(value):
    """A value of the SDK's as JSON, by the names that are on the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def text(result):
    return "\n".join(part.get("text", "") for part in result.get("content", []))


def check(holds, seen):
    if not holds:
        raise AssertionError(f"unexpected: {json.dumps(seen)}")
    return seen


def denial(result):
    """A denial is a result that says so in words, and names its receipt."""
    chio = result.get("_meta", {}).get("chio")
    seen = {"isError": result.get("isError"), "text": text(result), "chio": chio}
    return check(seen["isError"] is True and seen["text"] and chio, seen)


class Steps:
    """The steps of one run. `call`, `cancel`, `resources` and `prompts` are the SDK's part."""

    def __init__(self, sdk):
        self.sdk = sdk
        self.failed = False
        self.calls = 0
        self.resumes = watch_resumes()

    async def step(self, name, work):
        try:
            detail = await asyncio.wait_for(work(), PATIENCE)
            line = {"step": name, "ok": True, "detail": detail}
        except Exception as error:
            self.failed = True
            line = {"step": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), flush=True)

    async def call(self, tool, arguments, progress=None):
        self.calls += 1
        return plain(await self.sdk.call(tool, arguments, progress))

    async def expect(self, name, tool, arguments, expected):
        async def work():
            seen = text(await self.call(tool, arguments))
            return check(all(part in seen for part in expected), seen)

        await self.step(name, work)

    async def tools(self):
        names = [tool["name"] for tool in plain(await self.sdk.tools())["tools"]]
        return check(names, names)

    async def structured(self):
        seen = (await self.call("add", {"a": 1, "b": 2})).get("structuredContent")
        return check(seen == {"sum": 3}, seen)

    async def denied(self):
        return denial(await self.call(TASK["denied"]["tool"], TASK["denied"]["arguments"]))

    async def progress(self):
        seen = []

        async def note(progress, total, message):
            seen.append(int(progress))

        await self.call("test_tool_with_progress", {}, note)
        return check(seen == [0, 50, 100], seen)

    async def cancel(self):
        self.calls += 1
        slow = asyncio.create_task(self.sdk.call("slow", {"ms": 600_000}, None))
        await asyncio.sleep(0.5)
        await self.sdk.cancel(slow)
        await asyncio.wait([slow])
        return check(slow.cancelled() or slow.exception(), "an end without an answer")

    async def reconnect(self):
        before = self.resumes.count
        said = text(await self.call("test_reconnection", {}))
        seen = {"text": said, "resumes": self.resumes.count - before}
        return check("completed" in said and seen["resumes"] > 0, seen)

    async def resources(self):
        listed, templates, read = [plain(it) for it in await self.sdk.resources()]
        seen = [
            len(listed["resources"]),
            len(templates["resourceTemplates"]),
            read["contents"][0]["text"],
        ]
        return check(seen[:2] == [3, 1] and "static text" in seen[2], seen)

    async def prompts(self):
        listed, prompt = [plain(it) for it in await self.sdk.prompts()]
        seen = [len(listed["prompts"]), prompt["messages"][0]["content"]["text"]]
        return check(seen[0] == 4 and "arg2='two'" in seen[1], seen)

    async def approved(self, it):
        """A call that a person approves: the client is told how, and asks for the same call again."""
        told = await self.call(it["tool"], it["arguments"])
        chio = told.get("_meta", {}).get("chio", {})
        command = chio.get("command", "none")
        check(told.get("isError") and "approvalId" in chio and command in text(told), told)
        subprocess.run([it["approve"], *command.split()[1:]], check=True, stdout=subprocess.DEVNULL)
        while True:
            # However often it is asked for, it is one call.
            self.calls -= 1
            again = await self.call(it["tool"], it["arguments"])
            waits = again.get("_meta", {}).get("chio", {}).get("approvalId")
            if waits is None:
                return check(it["contains"] in text(again), text(again))
            check(waits == chio["approvalId"], again)

    async def named(self):
        """Runs the calls that the task names."""
        for it in TASK["calls"]:

            async def work(it=it):
                if it.get("approve"):
                    return await self.approved(it)
                result = await self.call(it["tool"], it["arguments"])
                if it.get("denied"):
                    return denial(result)
                seen = {"isError": result.get("isError", False), "text": text(result)}
                return check(not seen["isError"] and it.get("contains", "") in seen["text"], seen)

            await self.step(it["name"], work)

    async def all(self):
        """Does all that there is to do with the fixture."""
        await self.expect("echo", "echo", {"text": "hello"}, ["hello"])
        await self.step("structured", self.structured)
        if "denied" in TASK:
            await self.step("denied", self.denied)
        await self.expect("sampling", "test_sampling", {"prompt": "what is it?"}, [ANSWER])
        await self.expect(
            "elicitation", "test_elicitation", {"message": "who?"}, ["accept", USER["email"]]
        )
        await self.expect("roots", "ask_roots", {}, [ROOT])
        await self.step("progress", self.progress)
        await self.step("cancel", self.cancel)
        await self.expect("after cancel", "echo", {"text": "still here"}, ["still here"])
        await self.step("reconnect", self.reconnect)
        await self.step("resources", self.resources)
        await self.step("prompts", self.prompts)

    async def work(self, server):
        """All steps of a session that is open."""

        async def connected():
            return check(server.get("name"), server)

        await self.step("connect", connected)
        await self.step("tools", self.tools)
        await (self.named() if "calls" in TASK else self.all())


def run(connect_and_work):
    """Connects, works, closes, and ends with 0 only if everything did what it should."""
    steps = Steps(None)
    step, problem = "close", None
    try:
        asyncio.run(connect_and_work(steps))
    except Exception as error:
        steps.failed = True
        step, problem = ("close" if steps.sdk else "connect"), f"{type(error).__name__}: {error}"
    print(json.dumps({"step": step, "ok": problem is None, "detail": problem}))
    print(json.dumps({"step": "calls", "ok": True, "detail": steps.calls}))
    sys.exit(1 if steps.failed else 0)
