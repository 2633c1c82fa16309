// An agent of the official JavaScript SDK, version 1: see ../../README.md.

import { setTimeout as sleep } from 'node:timers/promises';
import { AgentCard, Artifact, Message, Role, Task, TaskState } from '@a2a-js/sdk';
import {
    AgentEvent,
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
        const task = Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_SUBMITTED' } });
        bus.publish(AgentEvent.task({ ...task, history: [userMessage] }));
        const ids = { taskId, contextId };
        if (skill(context) === 'slow') {
            if (!(await work(bus, ids, updates(userMessage)))) return bus.finished();
        } else {
            const artifact = Artifact.fromJSON({ artifactId: `echo-${taskId}`, name: 'echo' });
            bus.publish(
                AgentEvent.artifactUpdate({
                    ...ids,
                    artifact: { ...artifact, parts: userMessage.parts },
                    append: false,
                    lastChunk: true,
                    metadata: undefined,
                }),
            );
        }
        tell(bus, ids, TaskState.TASK_STATE_COMPLETED);
        bus.finished();
    },
    async cancelTask(taskId) {
        running.get(taskId)?.abort();
    },
};

/** A2A has no way to name a skill; Chio names it in the metadata. */
function skill({ request, userMessage }) {
    const text = userMessage.parts[0]?.content;
    const said = text?.$case === 'text' && text.value.startsWith('slow') ? 'slow' : 'echo';
    return request.metadata?.chio?.targetSkillId ?? said;
}

function updates(message) {
    const data = message.parts.map((part) => part.content).find((it) => it?.$case === 'data');
    return data?.value?.updates ?? 0;
}

/** Answers whether it came to its end. */
async function work(bus, ids, count) {
    const off = new AbortController();
    running.set(ids.taskId, off);
    tell(bus, ids, TaskState.TASK_STATE_WORKING);
    for (let number = 1; !off.signal.aborted && (!count || number <= count); number += 1) {
        await sleep(100);
        if (!off.signal.aborted) tell(bus, ids, TaskState.TASK_STATE_WORKING, `update ${number}`);
    }
    running.delete(ids.taskId);
    if (off.signal.aborted) tell(bus, ids, TaskState.TASK_STATE_CANCELED);
    return !off.signal.aborted;
}

function tell(bus, ids, state, text) {
    const parts = [{ text }];
    const said = text && { ...Message.fromJSON({ messageId: `${ids.taskId}-${text}`, ...ids, parts }) };
    const message = said && { ...said, role: Role.ROLE_AGENT };
    const status = { state, message, timestamp: new Date().toISOString() };
    bus.publish(AgentEvent.statusUpdate({ ...ids, status, metadata: undefined }));
}

function card(url) {
    const bindings = [['JSONRPC', `${url}/`], ...(BENCH ? [] : [['HTTP+JSON', `${url}/rest`]])];
    if (REST_FIRST) bindings.reverse();
    const modes = ['text/plain', 'application/json'];
    return AgentCard.fromJSON({
        name: 'JavaScript agent',
        description: 'An agent of the official JavaScript SDK.',
        version: '1.0.0',
        supportedInterfaces: bindings.map(([protocolBinding, at]) => ({
            url: at,
            protocolBinding,
            protocolVersion: '1.0',
        })),
        capabilities: { streaming: true, pushNotifications: !BENCH },
        defaultInputModes: modes,
        defaultOutputModes: modes,
        skills: (BENCH ? ['echo'] : Object.keys(SKILLS)).map((name) => ({
            id: name,
            name,
            description: SKILLS[name],
            tags: ['test'],
        })),
    });
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
