// The official TypeScript SDK, first generation, as its users use it.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { capabilities, handlers, implementation, run, task, transport } from './steps.mjs';

const client = new Client(implementation, { capabilities });
client.setRequestHandler(types.CreateMessageRequestSchema, handlers.sampling);
client.setRequestHandler(types.ListRootsRequestSchema, handlers.roots);
// Older releases have none.
if (types.ElicitRequestSchema) {
    client.setRequestHandler(types.ElicitRequestSchema, handlers.elicitation);
}

const wire = new StreamableHTTPClientTransport(new URL(task.url), transport);
await run({
    client,
    connect: () => client.connect(wire),
    callTool: (params, options) => client.callTool(params, undefined, options),
    close: async () => {
        await wire.terminateSession();
        await client.close();
    },
});
