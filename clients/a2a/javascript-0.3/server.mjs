// An agent of the official JavaScript SDK, version 0.3: see ../../README.md.

import { setTimeout as sleep } from 'node:timers/promises';
import {
    DefaultPushNotificationSender,
    DefaultRequestHandler,
    InMemoryPushNotificationStore,
    InMemoryTaskStore,
} from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import express from 'express';

const BENCH = process.argv.includes('--bench');
const REST_FIRST = process.argv.includes('--rest');
const SKILLS = {
    echo: 'Gives back what it was sent.',
    slow: 'Works until it is called off, or for so many `updates`.',
};

/** The slow tasks that run, and whether they were cancelled. */
const running = new Map();

const agent = {
    async execute(context, bus) {
        const { taskId, contextId, userMessage } = context;
        const status = { state: 'submitted', timestamp: new Date().toISOString() };
        bus.publish({ kind: 'task', id: taskId, contextId, status, history: [userMessage] });
        const ids = { taskId, contextId };
        if (skill(context) === 'slow') {
            if (!(await work(bus, ids, updates(userMessage)))) return bus.finished();
        } else {
            const artifact = { artifactId: `echo-${taskId}`, name: 'echo', parts: userMessage.parts };
            bus.publish({ kind: 'artifact-update', ...ids, artifact, lastChunk: true });
        }
        tell(bus, ids, 'completed');
        bus.finished();
    },
    async cancelTask(taskId) {
        running.get(taskId)?.abort();
    },
};

/** A2A has no way to name a skill; Chio names it in the metadata, which this SDK keeps from us. */
function skill({ userMessage }) {
    const { text = '', data } = userMessage.parts[0] ?? {};
    const said = text.startsWith('slow') || data?.updates ? 'slow' : 'echo';
    return userMessage.metadata?.chio?.targetSkillId ?? said;
}

function updates(message) {
    return message.parts.find((part) => part.kind === 'data')?.data.updates ?? 0;
}

/** Answers whether it came to its end. */
async function work(bus, ids, count) {
    const off = new AbortController();
    running.set(ids.taskId, off);
    tell(bus, ids, 'working');
    for (let number = 1; !off.signal.aborted && (!count || number <= count); number += 1) {
        await sleep(100);
        if (!off.signal.aborted) tell(bus, ids, 'working', `update ${number}`);
    }
    running.delete(ids.taskId);
    if (off.signal.aborted) tell(bus, ids, 'canceled');
    return !off.signal.aborted;
}

function tell(bus, ids, state, text) {
    const parts = [{ kind: 'text', text }];
    const messageId = `${ids.taskId}-${text}`;
    const message = text && { kind: 'message', role: 'agent', messageId, ...ids, parts };
    const status = { state, timestamp: new Date().toISOString(), ...(message ? { message } : {}) };
    const final = state === 'completed' || state === 'canceled';
    bus.publish({ kind: 'status-update', ...ids, status, final });
}

function card(url) {
    const modes = ['text/plain', 'application/json'];
    const bindings = [['JSONRPC', `${url}/`], ...(BENCH ? [] : [['HTTP+JSON', `${url}/rest`]])];
    if (REST_FIRST) bindings.reverse();
    const [first, ...others] = bindings;
    return {
        name: 'JavaScript agent',
        description: 'An agent of the official JavaScript SDK.',
        version: '1.0.0',
        protocolVersion: '0.3.0',
        url: first[1],
        preferredTransport: first[0],
        additionalInterfaces: others.map(([transport, at]) => ({ url: at, transport })),
        capabilities: { streaming: true, pushNotifications: !BENCH },
        defaultInputModes: modes,
        defaultOutputModes: modes,
        skills: (BENCH ? ['echo'] : Object.keys(SKILLS)).map((name) => ({
            id: name,
            name,
            description: SKILLS[name],
            tags: ['test'],
        })),
    };
}

const app = express();
const listener = app.listen(0, '127.0.0.1', () => {
    const url = `http://127.0.0.1:${listener.address().port}`;
    const store = BENCH ? undefined : new InMemoryPushNotificationStore();
    const sender = store && new DefaultPushNotificationSender(store);
    const tasks = new InMemoryTaskStore();
    const requestHandler = new DefaultRequestHandler(card(url), tasks, agent, undefined, store, sender);
    const common = { requestHandler, userBuilder: UserBuilder.noAuthentication };
    app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
    if (!BENCH) app.use('/rest', restHandler(common));
    app.use('/', jsonRpcHandler(common));
    console.log(JSON.stringify({ url }));
});
