// The official JavaScript SDK of A2A, version 0.3.

import {
    ClientFactory,
    DefaultAgentCardResolver,
    JsonRpcTransportFactory,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
} from '@a2a-js/sdk/client';
import { fetch, run } from './steps.mjs';

const resolver = new DefaultAgentCardResolver({ fetchImpl: fetch });
const resolve = (url) => resolver.resolve(url);

async function client(url, { card, ...clientConfig } = {}) {
    const transports = [new JsonRpcTransportFactory({ fetchImpl: fetch })];
    const factory = new ClientFactory({ transports, cardResolver: resolver, clientConfig });
    return factory.createFromAgentCard(card ?? (await resolve(url)));
}

const params = (part, { id, task }) => ({
    message: {
        kind: 'message',
        messageId: id,
        role: 'user',
        parts: [{ kind: 'text' in part ? 'text' : 'data', ...part }],
        ...(task ? { taskId: task } : {}),
    },
});

/** The only event that a stream has. */
async function only(stream) {
    const events = [];
    for await (const event of stream) events.push(event);
    if (events.length !== 1) throw new Error(`expected one event, found ${events.length}`);
    return events[0];
}

await run({
    is10: false,
    // This SDK does not read what comes in place of a stream, and says so.
    noStream: 'no stream',
    code: (error) => {
        if (error instanceof TaskNotFoundError) return -32001;
        if (error instanceof TaskNotCancelableError) return -32002;
        if (error instanceof PushNotificationNotSupportedError) return -32003;
        return error?.message.includes("Expected 'text/event-stream'") ? 'no stream' : undefined;
    },
    card: resolve,
    send: async (url, part, options) => {
        const it = await client(url, { polling: options.later });
        if (options.stream) return only(it.sendMessageStream(params(part, options)));
        return it.sendMessage(params(part, options));
    },
    /** As an agent would be asked that had said that it streams. */
    insistOnStream: async (url, part) => {
        const card = await resolve(url);
        card.capabilities.streaming = true;
        const it = await client(url, { card });
        return only(it.sendMessageStream(params(part, { id: 'streamed' })));
    },
    get: async (url, id) => (await client(url)).getTask({ id }),
    cancel: async (url, id) => (await client(url)).cancelTask({ id }),
    push: async (url, taskId, hook) => {
        const config = { taskId, pushNotificationConfig: { url: hook } };
        return (await client(url)).setTaskPushNotificationConfig(config);
    },
});
