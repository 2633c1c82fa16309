// What the TypeScript clients do and print; see ../README.md. Both generations of the SDK share it.

import { execFileSync } from 'node:child_process';

const PATIENCE = 20_000;
const ANSWER = 'forty-two';
const USER = { username: 'ada', email: 'ada@example.com' };

/** What the only argument says is to be done. */
export const task = JSON.parse(process.argv[2]);

const ROOT = task.root ?? 'file:///fixture';

/** How often a stream was taken up again. */
let resumes = 0;

/** The platform's fetch, which is watched and not changed. */
export function fetch(url, init) {
    if (new Headers(init?.headers).has('last-event-id')) resumes += 1;
    return globalThis.fetch(url, init);
}

/** Options of the HTTP transport. */
export const transport = {
    fetch,
    requestInit: task.token ? { headers: { Authorization: `Bearer ${task.token}` } } : {},
};

export const implementation = { name: 'chio-test-client', version: '1.0.0' };
export const capabilities = { sampling: {}, elicitation: {}, roots: {} };

/** Answers to what servers ask. */
export const handlers = {
    sampling: async () => ({
        role: 'assistant',
        model: 'none',
        content: { type: 'text', text: ANSWER },
    }),
    elicitation: async () => ({ action: 'accept', content: USER }),
    roots: async () => ({ roots: [{ uri: ROOT, name: 'fixture' }] }),
};

let failed = false;
let calls = 0;

async function step(name, work) {
    let timer;
    const late = new Promise((_, refuse) => {
        timer = setTimeout(() => refuse(new Error(`took longer than ${PATIENCE} ms`)), PATIENCE);
    });
    let line;
    try {
        line = { step: name, ok: true, detail: await Promise.race([work(), late]) };
    } catch (error) {
        failed = true;
        line = { step: name, ok: false, detail: String(error?.message ?? error) };
    }
    clearTimeout(timer);
    console.log(JSON.stringify(line));
    return line.ok;
}

function check(holds, seen) {
    if (!holds) throw new Error(`unexpected: ${JSON.stringify(seen)}`);
    return seen;
}

const text = (result) => (result.content ?? []).map((part) => part.text ?? '').join('\n');

/** A denial is a result that says so in words, and names its receipt. */
function denial(result) {
    const seen = { isError: result.isError, text: text(result), chio: result._meta?.chio };
    return check(seen.isError === true && seen.text !== '' && seen.chio, seen);
}

/** A call that a person approves: the client is told how, and asks for the same call again. */
async function approved(call, it) {
    const told = await call(it.tool, it.arguments);
    const { approvalId, command } = told._meta?.chio ?? {};
    check(told.isError && approvalId && text(told).includes(command), told);
    execFileSync(it.approve, command.split(' ').slice(1));
    for (;;) {
        // However often it is asked for, it is one call.
        calls -= 1;
        const again = await call(it.tool, it.arguments);
        const waits = again._meta?.chio?.approvalId;
        if (waits === undefined) return check(text(again).includes(it.contains), text(again));
        check(waits === approvalId, again);
    }
}

/** Runs the calls that the task names. */
async function named(call) {
    for (const it of task.calls) {
        await step(it.name, async () => {
            if (it.approve) return approved(call, it);
            const result = await call(it.tool, it.arguments);
            if (it.denied) return denial(result);
            const seen = { isError: result.isError ?? false, text: text(result) };
            return check(!seen.isError && seen.text.includes(it.contains ?? ''), seen);
        });
    }
}

/** Does all that there is to do with the fixture. */
async function all(client, call) {
    const said = async (tool, args, options) => text(await call(tool, args, options));
    const expect = (name, tool, args, expected) =>
        step(name, async () => {
            const seen = await said(tool, args);
            return check(expected.every((part) => seen.includes(part)), seen);
        });

    await expect('echo', 'echo', { text: 'hello' }, ['hello']);
    await step('structured', async () => {
        const { structuredContent } = await call('add', { a: 1, b: 2 });
        return check(structuredContent?.sum === 3, structuredContent);
    });
    if (task.denied) {
        await step('denied', async () => denial(await call(task.denied.tool, task.denied.arguments)));
    }
    await expect('sampling', 'test_sampling', { prompt: 'what is it?' }, [ANSWER]);
    await expect('elicitation', 'test_elicitation', { message: 'who?' }, ['accept', USER.email]);
    await expect('roots', 'ask_roots', {}, [ROOT]);
    await step('progress', async () => {
        const seen = [];
        await call('test_tool_with_progress', {}, { onprogress: (it) => seen.push(it.progress) });
        return check(seen.join() === '0,50,100', seen);
    });
    await step('cancel', async () => {
        const controller = new AbortController();
        setTimeout(() => controller.abort('enough'), 500);
        const slow = call('slow', { ms: 600_000 }, { signal: controller.signal });
        const why = await slow.then(
            () => check(false, 'an answer'),
            (error) => String(error?.message ?? error),
        );
        return check(controller.signal.aborted, why);
    });
    await expect('after cancel', 'echo', { text: 'still here' }, ['still here']);
    await step('reconnect', async () => {
        const before = resumes;
        const seen = { text: await said('test_reconnection', {}), resumes: resumes - before };
        return check(seen.text.includes('completed') && seen.resumes > 0, seen);
    });
    await step('resources', async () => {
        const { resources } = await client.listResources();
        const { resourceTemplates } = await client.listResourceTemplates();
        const { contents } = await client.readResource({ uri: 'test://static-text' });
        const seen = [resources.length, resourceTemplates.length, contents[0]?.text];
        return check(seen[0] === 3 && seen[1] === 1 && seen[2]?.includes('static text'), seen);
    });
    await step('prompts', async () => {
        const { prompts } = await client.listPrompts();
        const given = { arg1: 'one', arg2: 'two' };
        const prompt = { name: 'test_prompt_with_arguments', arguments: given };
        const { messages } = await client.getPrompt(prompt);
        const seen = [prompts.length, messages[0]?.content?.text];
        return check(seen[0] === 4 && seen[1]?.includes("arg2='two'"), seen);
    });
}

/** Connects, works, closes, and ends with 0 only if everything did what it should. */
export async function run({ client, connect, callTool, close }) {
    const call = (name, args, options) => {
        calls += 1;
        return callTool({ name, arguments: args }, options);
    };
    const connected = await step('connect', async () => {
        await connect();
        return check(client.getServerVersion()?.name, client.getServerVersion());
    });
    if (connected) {
        await step('tools', async () => {
            const { tools } = await client.listTools();
            return check(tools.length > 0, tools.map((tool) => tool.name));
        });
        await (task.calls ? named(call) : all(client, call));
        await step('close', close);
    }
    console.log(JSON.stringify({ step: 'calls', ok: true, detail: calls }));
    process.exit(failed ? 1 : 0);
}
