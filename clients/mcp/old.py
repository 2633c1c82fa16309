"""The official Python SDK as it was, over HTTP or, before it had that, standard input and output."""

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


async def work(steps):
    async with channel() as streams, ClientSession(*streams[:2]) as session:
        opened = await session.initialize()
        steps.sdk = Sdk(session)
        await steps.work(opened.serverInfo.model_dump(mode="json", exclude_none=True))


run(work)
