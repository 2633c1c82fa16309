"""An agent of the official Python SDK, version 0.3: see ../../README.md."""

import asyncio
import json
import logging
import socket
import sys

import httpx
import uvicorn
from a2a import types as a2a
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.utils import new_task

BENCH = "--bench" in sys.argv
REST_FIRST = "--rest" in sys.argv
SKILLS = {
    "echo": "Gives back what it was sent.",
    "slow": "Works until it is called off, or for so many `updates`.",
}


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        await event_queue.enqueue_event(new_task(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        if skill(context) == "echo":
            await task.add_artifact(context.message.parts, name="echo")
        else:
            await task.start_work()
            await work(task, updates(context))
        await task.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def skill(context):
    """A2A has no way to name a skill; Chio names it in the metadata."""
    chosen = context.metadata.get("chio", {}).get("targetSkillId")
    return chosen or ("slow" if context.get_user_input().startswith("slow") else "echo")


def updates(context):
    for part in context.message.parts:
        if part.root.kind == "data":
            return int(part.root.data.get("updates", 0))
    return 0


async def work(task, count):
    number = 0
    while not count or number < count:
        await asyncio.sleep(0.1)
        number += 1
        said = task.new_agent_message([a2a.Part(root=a2a.TextPart(text=f"update {number}"))])
        await task.update_status(a2a.TaskState.working, message=said)


def card(url):
    names = ["echo"] if BENCH else list(SKILLS)
    modes = ["text/plain", "application/json"]
    bindings = [("JSONRPC", f"{url}/")] + ([] if BENCH else [("HTTP+JSON", f"{url}/rest")])
    [first, *others] = bindings[::-1] if REST_FIRST else bindings
    return a2a.AgentCard(
        name="Python agent",
        description="An agent of the official Python SDK.",
        version="1.0.0",
        url=first[1],
        preferred_transport=first[0],
        additional_interfaces=[
            a2a.AgentInterface(url=at, transport=binding) for binding, at in others
        ],
        capabilities=a2a.AgentCapabilities(streaming=True, push_notifications=not BENCH),
        default_input_modes=modes,
        default_output_modes=modes,
        skills=[
            a2a.AgentSkill(id=name, name=name, description=SKILLS[name], tags=["test"])
            for name in names
        ],
    )


async def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=InMemoryTaskStore(),
        push_config_store=None if BENCH else configs,
        push_sender=None if BENCH else BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    app = A2AStarletteApplication(card(url), handler).build()
    if not BENCH:
        app.mount("/rest", A2ARESTFastAPIApplication(card(url), handler).build())
    logging.disable(logging.CRITICAL if BENCH else logging.INFO)
    config = uvicorn.Config(app, log_config=None, access_log=False)
    print(json.dumps({"url": url}), flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
