"""The official Python SDK, first generation, as its users use it."""

from mcp import ClientSession, types
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
    def __init__(self, session):
        self.session = session

    async def call(self, tool, arguments, progress):
        return await self.session.call_tool(tool, arguments, progress_callback=progress)

    async def tools(self):
        return await self.session.list_tools()

    async def cancel(self, call):
        # This SDK leaves it to its user to tell the server.
        last = self.session._request_id - 1
        params = types.CancelledNotificationParams(requestId=last, reason="enough")
        notification = types.CancelledNotification(params=params)
        await self.session.send_notification(types.ClientNotification(notification))
        call.cancel()

    async def resources(self):
        return [
            await self.session.list_resources(),
            await self.session.list_resource_templates(),
            await self.session.read_resource("test://static-text"),
        ]

    async def prompts(self):
        given = {"arg1": "one", "arg2": "two"}
        return [
            await self.session.list_prompts(),
            await self.session.get_prompt("test_prompt_with_arguments", given),
        ]


async def work(steps):
    headers = {"Authorization": f"Bearer {TASK['token']}"} if "token" in TASK else None
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(TASK["url"], http_client=http) as (read, write, _),
        ClientSession(
            read,
            write,
            sampling_callback=sampling,
            elicitation_callback=elicitation,
            list_roots_callback=roots,
        ) as session,
    ):
        opened = await session.initialize()
        steps.sdk = Sdk(session)
        await steps.work(opened.serverInfo.model_dump(mode="json", exclude_none=True))


run(work)
