// The official JavaScript SDK of A2A, version 1.

import {
    AgentCard,
    ListTasksRequest,
    Message,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
    ClientFactory,
    DefaultAgentCardResolver,
    JsonRpcTransportFactory,
    RestTransportFactory,
} from '@a2a-js/sdk/client';
import { fetch, run } from './steps.mjs';

const CODES = {
    TASK_NOT_FOUND: -32001,
    TASK_NOT_CANCELABLE: -32002,
    PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
    UNSUPPORTED_OPERATION: -32004,
};

const resolver = new DefaultAgentCardResolver({ fetchImpl: fetch });
const resolve = (url) => resolver.resolve(url);

async function client(url, { card, transport = JsonRpcTransportFactory, ...clientConfig } = {}) {
    const transports = [new transport({ fetchImpl: fetch })];
    const factory = new ClientFactory({ transports, cardResolver: resolver, clientConfig });
    return factory.createFromAgentCard(card ?? (await resolve(url)));
}

/** By HTTP+JSON, which is served beside JSON-RPC. */
async function rest(url) {
    const card = await resolve(url);
    const [first] = card.supportedInterfaces;
    card.supportedInterfaces = [{ ...first, url: `${url}rest`, protocolBinding: 'HTTP+JSON' }];
    return client(url, { card, transport: RestTransportFactory });
}

const request = (part, { id, task }) =>
    SendMessageRequest.fromJSON({
        message: { messageId: id, role: 'ROLE_USER', parts: [part], taskId: task },
    });

const plain = (answer) => (answer.messageId ? Message : Task).toJSON(answer);

/** The only event that a stream has. */
async function only(stream) {
    const events = [];
    for await (const event of stream) events.push(event);
    if (events.length !== 1) throw new Error(`expected one event, found ${events.length}`);
    return plain(events[0].payload.value);
}

await run({
    is10: true,
    noStream: -32004,
    code: (error) => CODES[error?.reason],
    card: async (url) => AgentCard.toJSON(await resolve(url)),
    send: async (url, part, options) => {
        const it = await client(url, { polling: options.later });
        if (options.stream) return only(it.sendMessageStream(request(part, options)));
        return plain(await it.sendMessage(request(part, options)));
    },
    /** As an agent would be asked that had said that it streams. */
    insistOnStream: async (url, part) => {
        const card = await resolve(url);
        card.capabilities.streaming = true;
        const it = await client(url, { card });
        return only(it.sendMessageStream(request(part, { id: 'streamed' })));
    },
    get: async (url, id) => Task.toJSON(await (await client(url)).getTask({ id, tenant: '' })),
    cancel: async (url, id) => Task.toJSON(await (await client(url)).cancelTask({ id, tenant: '' })),
    list: async (url, pageSize, pageToken = '') => {
        const it = await client(url);
        return it.listTasks(ListTasksRequest.fromJSON({ pageSize, pageToken }));
    },
    push: async (url, taskId, hook) => {
        const config = TaskPushNotificationConfig.fromJSON({ taskId, url: hook });
        return (await client(url)).createTaskPushNotificationConfig(config);
    },
    restSend: async (url, part) =>
        plain(await (await rest(url)).sendMessage(request(part, { id: 'by-rest' }))),
    restGet: async (url, id) => Task.toJSON(await (await rest(url)).getTask({ id, tenant: '' })),
});
