"""The official Python SDK, second generation, in its default mode."""

from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from steps import ANSWER, ROOT, TASK, USER, run


async def sampling(context, params):
    content = types.TextContent(type="text", text=ANSWER)
    return types.CreateMessageResult(role="assistant", model="none", content=content)


async def elicitation(context, params):
    return types.ElicitResult(action="accept", content=USER)


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="fixture")])


class Sdk:
    def __init__(self, client):
        self.client = client

    async def call(self, tool, arguments, progress):
        return await self.client.call_tool(tool, arguments, progress_callback=progress)

    async def tools(self):
        return await self.client.list_tools()

    async def cancel(self, call):
        call.cancel()

    async def resources(self):
        return [
            await self.client.list_resources(),
            await self.client.list_resource_templates(),
            await self.client.read_resource("test://static-text"),
        ]

    async def prompts(self):
        given = {"arg1": "one", "arg2": "two"}
        return [
            await self.client.list_prompts(),
            await self.client.get_prompt("test_prompt_with_arguments", given),
        ]


def server():
    """The URL itself, unless there is a token to send along."""
    if "token" not in TASK:
        return TASK["url"]
    headers = {"Authorization": f"Bearer {TASK['token']}"}
    return streamable_http_client(TASK["url"], http_client=create_mcp_http_client(headers=headers))


async def work(steps):
    async with Client(
        server(),
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        list_roots_callback=roots,
    ) as client:
        steps.sdk = Sdk(client)
        await steps.work(client.server_info.model_dump(mode="json", exclude_none=True))


run(work)
