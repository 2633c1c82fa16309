// The official TypeScript client, second generation, in its default mode.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { capabilities, handlers, implementation, run, task, transport } from './steps.mjs';

const client = new Client(implementation, { capabilities });
client.setRequestHandler('sampling/createMessage', handlers.sampling);
client.setRequestHandler('elicitation/create', handlers.elicitation);
client.setRequestHandler('roots/list', handlers.roots);

const wire = new StreamableHTTPClientTransport(new URL(task.url), transport);
await run({
    client,
    connect: () => client.connect(wire),
    callTool: (params, options) => client.callTool(params, options),
    close: async () => {
        await wire.terminateSession();
        await client.close();
    },
});
