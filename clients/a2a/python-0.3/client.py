"""The official Python SDK of A2A, version 0.3."""

import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from steps import HEADERS, run


def plain(value):
    """A value of the SDK's as JSON, by the names that are on the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


class Sdk:
    IS_1_0 = False
    # This SDK does not read what comes in place of a stream, and says so.
    NO_STREAM = "no stream"

    def __init__(self):
        self.http = None

    def code(self, error):
        if isinstance(error, A2AClientHTTPError) and "text/event-stream" in str(error):
            return self.NO_STREAM
        return error.error.code if isinstance(error, A2AClientJSONRPCError) else None

    async def resolve(self, url):
        # Made here, where the loop runs.
        self.http = self.http or httpx.AsyncClient(headers=HEADERS, timeout=20)
        return await A2ACardResolver(self.http, url).get_agent_card()

    async def card(self, url):
        return plain(await self.resolve(url))

    async def client(self, url, card=None, **config):
        card = card or await self.resolve(url)
        return ClientFactory(ClientConfig(httpx_client=self.http, **config)).create(card)

    async def deliver(self, client, part, options):
        kind = "text" if "text" in part else "data"
        message = a2a.Message(
            message_id=options["message_id"],
            role=a2a.Role.user,
            parts=[a2a.Part.model_validate({"kind": kind, **part})],
            task_id=options.get("task"),
        )
        [answer] = [event async for event in client.send_message(message)]
        return plain(answer if isinstance(answer, a2a.Message) else answer[0])

    async def send(self, url, part, options):
        polling, streaming = options.get("later", False), options.get("stream", False)
        client = await self.client(url, polling=polling, streaming=streaming)
        return await self.deliver(client, part, options)

    async def insist_on_stream(self, url, part):
        """As an agent would be asked that had said that it streams."""
        card = await self.resolve(url)
        card.capabilities.streaming = True
        client = await self.client(url, card=card, streaming=True)
        return await self.deliver(client, part, {"message_id": "streamed"})

    async def get(self, url, task):
        return plain(await (await self.client(url)).get_task(a2a.TaskQueryParams(id=task)))

    async def cancel(self, url, task):
        return plain(await (await self.client(url)).cancel_task(a2a.TaskIdParams(id=task)))

    async def push(self, url, task, hook):
        config = a2a.TaskPushNotificationConfig(
            task_id=task, push_notification_config=a2a.PushNotificationConfig(url=hook)
        )
        return plain(await (await self.client(url)).set_task_callback(config))


run(Sdk())
