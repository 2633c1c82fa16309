"""An agent of the official Python SDK, version 1: see ../../README.md."""

import asyncio
import json
import logging
import socket
import sys

import httpx
import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

BENCH = "--bench" in sys.argv
REST_FIRST = "--rest" in sys.argv
SKILLS = {
    "echo": "Gives back what it was sent.",
    "slow": "Works until it is called off, or for so many `updates`.",
}


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        if skill(context) == "echo":
            await task.add_artifact(list(context.message.parts), name="echo")
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
        if part.HasField("data"):
            return int(MessageToDict(part.data).get("updates", 0))
    return 0


async def work(task, count):
    number = 0
    while not count or number < count:
        await asyncio.sleep(0.1)
        number += 1
        said = task.new_agent_message([a2a.Part(text=f"update {number}")])
        await task.update_status(a2a.TaskState.TASK_STATE_WORKING, message=said)


def card(url):
    bindings = [("JSONRPC", f"{url}/")] + ([] if BENCH else [("HTTP+JSON", f"{url}/rest")])
    bindings = bindings[::-1] if REST_FIRST else bindings
    names = ["echo"] if BENCH else list(SKILLS)
    modes = ["text/plain", "application/json"]
    return a2a.AgentCard(
        name="Python agent",
        description="An agent of the official Python SDK.",
        version="1.0.0",
        supported_interfaces=[
            a2a.AgentInterface(url=at, protocol_binding=binding, protocol_version="1.0")
            for binding, at in bindings
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
        agent_card=card(url),
        push_config_store=None if BENCH else configs,
        push_sender=None if BENCH else BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    routes = [*create_agent_card_routes(card(url)), *create_jsonrpc_routes(handler, "/")]
    if not BENCH:
        routes += create_rest_routes(handler, path_prefix="/rest")
    logging.disable(logging.CRITICAL if BENCH else logging.INFO)
    config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False)
    print(json.dumps({"url": url}), flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
