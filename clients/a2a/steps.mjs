// What the JavaScript clients do and print; see ../README.md. Both generations of the SDK share it.

import { randomUUID } from 'node:crypto';

const PATIENCE = 20_000;
// Made up, and written in two parts so that a search for secrets in this file finds none.
const SECRET = 'AKIA' + 'Q3EGRT5KLMN2WXYZ';

const URL = process.argv[2].replace(/\/$/, '');
const { CHIO_BEARER, CHIO_CAPABILITY } = process.env;
// What is shown at the door, if anything has to be.
const HEADERS = {
    ...(CHIO_BEARER ? { Authorization: `Bearer ${CHIO_BEARER}` } : {}),
    ...(CHIO_CAPABILITY ? { 'X-Chio-Capability': CHIO_CAPABILITY } : {}),
};

const TASK_NOT_FOUND = -32001;
const TASK_NOT_CANCELABLE = -32002;
const PUSH_NOT_SUPPORTED = -32003;

/** The platform's fetch, with what has to be shown at the door. */
export function fetch(url, init = {}) {
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
    return globalThis.fetch(url, { ...init, headers });
}

/** Where a single skill is served; the SDK looks for the card below what ends with a slash. */
const at = (skill) => `${URL}/skills/${skill}/`;

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
}

function check(holds, seen) {
    if (!holds) throw new Error(`unexpected: ${JSON.stringify(seen)}`);
    return seen;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

const content = (parts, { metadata }) => ({
    text: parts.flatMap((part) => part.text ?? []).join('\n'),
    data: parts.flatMap((part) => part.data ?? []),
    chio: metadata?.chio ?? {},
});

/** A task or a message of any dialect, by the same names. */
function view(answer) {
    const { status } = answer;
    if (status === undefined) return { kind: 'message', ...content(answer.parts ?? [], answer) };
    // The seed's dialect has a bare word.
    const state = status.state ?? status;
    return {
        kind: 'task',
        id: answer.id,
        context: answer.contextId,
        state: state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-'),
        said: (status.message?.parts ?? []).map((part) => part.text ?? '').join('\n'),
        ...content((answer.artifacts ?? []).flatMap((it) => it.parts), answer),
    };
}

/** Every answer comes with the receipt of the call, signed, as a text. */
function receipted({ chio }, tool, verdict) {
    const receipt = JSON.parse(chio.receipt);
    const found = [receipt.id, receipt.tool_name, receipt.decision.verdict, chio.decision];
    return check(same(found, [chio.receiptId, tool, verdict, verdict]), found);
}

/** One call without any SDK; answers the result. */
async function raw(method, params, headers = {}) {
    const response = await fetch(`${URL}/`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const answer = await response.json();
    return check('result' in answer && answer.id === 1, answer).result;
}

/** All steps; `sdk` is what differs between the generations of the SDK. */
function all(sdk) {
    /** Sends a message to a skill, of a text or of data. */
    const send = async (skill, part, options = {}) => {
        calls += 1;
        return view(await sdk.send(at(skill), part, { id: randomUUID(), ...options }));
    };
    const get = async (skill, task) => view(await sdk.get(at(skill), task));
    const cancel = async (skill, task) => view(await sdk.cancel(at(skill), task));
    /** The SDK tells a refusal by an error that has this code. */
    const refused = async (code, work) => {
        const found = await work.then(
            (seen) => ['no error', seen],
            (error) => [sdk.code(error), String(error?.message)],
        );
        return check(found[0] === code && found[1] !== '', found);
    };
    const echoed = (seen, text) =>
        check(same([seen.state, seen.data], ['completed', [{ text }]]), seen);

    return {
        card: async () => {
            const { skills } = await sdk.card(`${URL}/`);
            const names = skills.map((skill) => skill.id).sort();
            const wanted = ['echo', 'note_get', 'note_put', 'tck'].every((it) => names.includes(it));
            // What needs an approval cannot be published here.
            return check(wanted && !names.includes('needs_approval'), names);
        },
        'skill card': async () => {
            const { name, skills } = await sdk.card(at('echo'));
            const seen = [name, skills.map((skill) => skill.id)];
            return check(same(seen[1], ['echo']), seen);
        },
        text: async () => {
            const seen = await send('echo', { text: 'hello' });
            return receipted(echoed(seen, 'hello'), 'echo', 'allow');
        },
        data: async () => {
            const seen = await send('echo', { data: { text: 'hello' } });
            return receipted(echoed(seen, 'hello'), 'echo', 'allow');
        },
        later: async () => {
            const first = await send('echo', { text: 'later' }, { later: true });
            check(first.state === 'working' && first.chio.receiptPending === true, first);
            let seen = await get('echo', first.id);
            for (let turn = 0; turn < 300 && seen.state === 'working'; turn += 1) {
                await new Promise((done) => setTimeout(done, 20));
                seen = await get('echo', first.id);
            }
            echoed(seen, 'later');
            check(first.context && seen.context === first.context, [first, seen]);
            return receipted(seen, 'echo', 'allow');
        },
        'cancel before': async () => {
            const waits = { later: true, id: `tck-wait-${randomUUID()}` };
            const { id, context } = await send('tck', { text: 'never' }, waits);
            const seen = [await cancel('tck', id), await get('tck', id)];
            const off = (it) => it.state === 'canceled' && it.context === context;
            return check(seen.every(off), [context, ...seen]);
        },
        'cancel after': async () => {
            const { id } = await send('echo', { text: 'done' });
            return refused(TASK_NOT_CANCELABLE, cancel('echo', id));
        },
        'unknown task': () => refused(TASK_NOT_FOUND, get('echo', 'no-such-task')),
        'stream falls back': async () => {
            const seen = await send('echo', { text: 'at once' }, { stream: true });
            return echoed(seen, 'at once');
        },
        'stream refused': () =>
            refused(sdk.noStream, sdk.insistOnStream(at('echo'), { text: 'a stream' })),
        'push refused': async () => {
            const { id } = await send('echo', { text: 'push' });
            return refused(PUSH_NOT_SUPPORTED, sdk.push(at('echo'), id, 'http://localhost:9/hook'));
        },
        denied: async () => {
            const data = { name: 'keys', text: `key ${SECRET}` };
            const seen = await send('note_put', { data });
            check(seen.state === 'rejected' && seen.said !== '', seen);
            check(!JSON.stringify(seen).includes(SECRET), 'the secret in the answer');
            return receipted(seen, 'note_put', 'deny');
        },
        'tool fails': async () => {
            const seen = await send('note_get', { data: { name: 'none' } });
            check(seen.state === 'failed' && seen.said.includes('no note'), seen);
            return check(seen.chio.receiptId, seen);
        },
        message: async () => {
            const id = `tck-message-response-${randomUUID()}`;
            const seen = await send('tck', { text: 'hello' }, { id });
            check(same([seen.kind, seen.text], ['message', 'Direct message response']), seen);
            return receipted(seen, 'tck', 'allow');
        },
        'input required': async () => {
            const first = { id: `tck-input-required-${randomUUID()}` };
            const asked = await send('tck', { text: 'hello' }, first);
            check(asked.state === 'input-required' && asked.said !== '', asked);
            const more = { id: `tck-complete-task-${randomUUID()}`, task: asked.id };
            const seen = await send('tck', { text: 'more' }, more);
            const held = seen.id === asked.id && seen.context === asked.context;
            return check(seen.state === 'completed' && held, [asked, seen]);
        },
        dialects: async () => {
            const made = await send('echo', { text: 'for all' });
            const { id } = made;
            const found = [
                await raw('GetTask', { id }, { 'A2A-Version': '1.0' }),
                await raw('tasks/get', { id }),
                await raw('task/get', { taskId: id }),
            ];
            const brief = (it) => [it.id, it.state, it.chio.receiptId];
            const seen = found.map((it) => brief(view(it)));
            return check(seen.every((it) => same(it, brief(made))), seen);
        },
        ...(sdk.is10 ? only10(sdk, { send, refused, echoed }) : {}),
    };
}

/** What version 0.3 does not have. */
const only10 = (sdk, { send, refused, echoed }) => ({
    list: async () => {
        const made = [];
        for (const text of ['one', 'two', 'three']) made.unshift((await send('echo', { text })).id);
        const first = await sdk.list(at('echo'), 2);
        const rest = await sdk.list(at('echo'), 100, first.nextPageToken);
        const ids = [...first.tasks, ...rest.tasks].map((task) => task.id);
        // The newest comes first, none twice, and artifacts only if they are asked for.
        const ordered = same(ids.slice(0, 3), made) && new Set(ids).size === ids.length;
        const counted = first.totalSize === ids.length && rest.nextPageToken === '';
        const bare = first.tasks.every((task) => (task.artifacts ?? []).length === 0);
        return check(ordered && counted && bare, [made, ids, first.totalSize]);
    },
    rest: async () => {
        calls += 1;
        const first = echoed(view(await sdk.restSend(at('echo'), { text: 'by REST' })), 'by REST');
        const seen = view(await sdk.restGet(at('echo'), first.id));
        check(seen.id === first.id && seen.state === 'completed', seen);
        return refused(TASK_NOT_FOUND, sdk.restGet(at('echo'), 'no-such-task'));
    },
});

/** Does every step, and ends with 0 only if each did what it should. */
export async function run(sdk) {
    for (const [name, work] of Object.entries(all(sdk))) await step(name, work);
    console.log(JSON.stringify({ step: 'calls', ok: true, detail: calls }));
    process.exit(failed ? 1 : 0);
}
