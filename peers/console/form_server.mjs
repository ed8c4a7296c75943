// A server whose tools have arguments of every kind, and questions that others do not ask: `node form_server.mjs`, or over
// HTTP with `--http`.
import { createServer } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CallToolRequestSchema, CompleteRequestSchema, GetPromptRequestSchema, ListPromptsRequestSchema, ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const FILL = {
    type: 'object',
    required: ['price', 'address', 'tags', 'notes', 'size', 'pay', 'pin'],
    properties: {
        price: { type: 'number' },
        address: {
            type: 'object',
            required: ['street'],
            properties: { street: { type: 'string' }, floor: { type: 'integer' } },
        },
        tags: { type: 'array', items: { type: 'string' } },
        notes: { type: 'array' },
        size: { enum: ['small', 'large'] },
        count: { type: 'integer', default: 3 },
        pay: {
            oneOf: [
                { title: 'card', type: 'object', required: ['number'], properties: { number: { type: 'string' } } },
                { title: 'word', type: 'string' },
                { title: 'other word', type: 'string' },
            ],
        },
        pin: { type: 'string', writeOnly: true },
        about: { type: 'string' },
        constructor: { type: 'string' },
    },
};
const text = (it) => ({ content: [{ type: 'text', text: it }] });
const CITIES = { France: ['Paris', 'Pau'], Italy: ['Palermo', 'Parma'] };

/** A server; each connection over HTTP has its own. */
function made() {
    const server = new Server(
        { name: 'forms', version: '1.0.0' },
        { capabilities: { tools: {}, prompts: {}, completions: {}, logging: {} } },
    );
    const TOOLS = {
        fill: { schema: FILL, run: async (args) => text(JSON.stringify(args)) },
        /** Over HTTP it is in the stream of the call, and so in that of nobody else. */
        say: {
            run: async (_, { relatedRequestId }) => {
                const params = { level: 'warning', data: 'mind the gap' };
                await server.notification({ method: 'notifications/message', params }, { relatedRequestId });
                return text('said');
            },
        },
        translate: {
            run: async (_, asked) => {
                const messages = [{ role: 'user', content: { type: 'text', text: 'ciao' } }];
                const result = await server.createMessage({ messages, systemPrompt: 'You are a dictionary.', maxTokens: 7 }, asked);
                return text(`It means: ${result.content.text}`);
            },
        },
        /** What it was trusted with: a variable, or a header. */
        reveal: {
            run: async (_, { requestInfo }) => text(`The key is ${requestInfo?.headers['x-planted'] ?? process.env.PLANTED_KEY}.`),
        },
    };
    server.setRequestHandler(ListToolsRequestSchema, async () => ({
        tools: Object.entries(TOOLS).map(([name, { schema }]) => ({ name, inputSchema: schema ?? { type: 'object' } })),
    }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId, requestInfo }) =>
        TOOLS[params.name].run(params.arguments ?? {}, { relatedRequestId: requestId, requestInfo }));
    server.setRequestHandler(ListPromptsRequestSchema, async () => ({
        prompts: [{ name: 'travel', arguments: [{ name: 'country', required: true }, { name: 'city', required: true }] }],
    }));
    server.setRequestHandler(GetPromptRequestSchema, async ({ params }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `To ${params.arguments?.city}!` } }],
    }));
    server.setRequestHandler(CompleteRequestSchema, async ({ params: { argument, context } }) => {
        const known = argument.name === 'country' ? Object.keys(CITIES) : (CITIES[context?.arguments?.country] ?? []);
        return { completion: { values: known.filter((it) => it.startsWith(argument.value)) } };
    });
    return server;
}

if (process.argv.includes('--http')) {
    const http = createServer(async (request, response) => {
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
        await made().connect(transport);
        await transport.handleRequest(request, response);
    });
    http.listen(0, '127.0.0.1', () => console.error(`form_server listens at http://127.0.0.1:${http.address().port}/mcp`));
} else {
    await made().connect(new StdioServerTransport());
    console.error('form_server is there');
}
