"""The official Python SDK of A2A, version 1."""

import httpx
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict, ParseDict
from steps import HEADERS, run

CODES = {
    "TaskNotFoundError": -32001,
    "TaskNotCancelableError": -32002,
    "PushNotificationNotSupportedError": -32003,
    "UnsupportedOperationError": -32004,
}


class Sdk:
    IS_1_0 = True
    NO_STREAM = -32004

    def __init__(self):
        self.http = None

    def code(self, error):
        return CODES.get(type(error).__name__)

    async def resolve(self, url):
        # Made here, where the loop runs.
        self.http = self.http or httpx.AsyncClient(headers=HEADERS, timeout=20)
        return await A2ACardResolver(self.http, url).get_agent_card()

    async def card(self, url):
        return MessageToDict(await self.resolve(url))

    async def client(self, url, card=None, **config):
        card = card or await self.resolve(url)
        return ClientFactory(ClientConfig(httpx_client=self.http, **config)).create(card)

    async def deliver(self, client, part, options):
        message = {"messageId": options["message_id"], "role": "ROLE_USER", "parts": [part]}
        if "task" in options:
            message["taskId"] = options["task"]
        request = ParseDict({"message": message}, a2a.SendMessageRequest())
        [answer] = [event async for event in client.send_message(request)]
        return MessageToDict(answer.task if answer.HasField("task") else answer.message)

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
        return MessageToDict(await (await self.client(url)).get_task(a2a.GetTaskRequest(id=task)))

    async def cancel(self, url, task):
        client = await self.client(url)
        return MessageToDict(await client.cancel_task(a2a.CancelTaskRequest(id=task)))

    async def list(self, url, page_size, token=""):
        request = a2a.ListTasksRequest(page_size=page_size, page_token=token)
        answer = await (await self.client(url)).list_tasks(request)
        return MessageToDict(answer, always_print_fields_with_no_presence=False) | {
            "nextPageToken": answer.next_page_token,
            "totalSize": answer.total_size,
            "tasks": [MessageToDict(task) for task in answer.tasks],
        }

    async def push(self, url, task, hook):
        config = a2a.TaskPushNotificationConfig(task_id=task, url=hook)
        client = await self.client(url)
        return MessageToDict(await client.create_task_push_notification_config(config))

    async def rest(self, url):
        """By HTTP+JSON, which is served beside JSON-RPC."""
        card = await self.resolve(url)
        del card.supported_interfaces[:]
        card.supported_interfaces.add(
            url=f"{url}/rest", protocol_binding="HTTP+JSON", protocol_version="1.0"
        )
        bindings = ["HTTP+JSON"]
        return await self.client(url, card, streaming=False, supported_protocol_bindings=bindings)

    async def rest_send(self, url, part):
        return await self.deliver(await self.rest(url), part, {"message_id": "by-rest"})

    async def rest_get(self, url, task):
        return MessageToDict(await (await self.rest(url)).get_task(a2a.GetTaskRequest(id=task)))


run(Sdk())
