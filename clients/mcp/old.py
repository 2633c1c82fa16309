"""The official Python SDK as it was, over HTTP or, before it had that, standard input and output."""

import asyncio

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from steps import TASK, run


def channel():
    if "command" in TASK:
        command, *arguments = TASK["command"]
        return stdio_client(StdioServerParameters(command=command, args=arguments))
    from mcp.client.streamable_http import streamablehttp_client

    return streamablehttp_client(TASK["url"])


class Sdk:
    def __init__(self, session):
        self.session = session

    async def call(self, tool, arguments, progress):
        return await self.session.call_tool(tool, arguments)

    async def tools(self):
        return await self.session.list_tools()


async def hear(session):
    """In early versions a session stood still at the first notification that no one took."""
    if hasattr(session, "incoming_messages"):
        async for _ in session.incoming_messages:
            pass


async def work(steps):
    async with channel() as streams, ClientSession(*streams[:2]) as session:
        hearing = asyncio.create_task(hear(session))
        opened = await session.initialize()
        steps.sdk = Sdk(session)
        await steps.work(opened.serverInfo.model_dump(mode="json", exclude_none=True))
        hearing.cancel()


run(work)
