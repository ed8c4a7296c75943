// The travel server, with npm @modelcontextprotocol/sdk 1.x: over stdio, or with `--http` at a free port, which it says on stderr.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function travel() {
    const server = new McpServer({ name: 'travel', version: '1.0.0' });
    const shape = {
        description: 'Books a hotel.',
        inputSchema: { city: z.string(), nights: z.number().int() },
        outputSchema: { reference: z.string(), total: z.number().int() },
    };
    server.registerTool('book', shape, async ({ city, nights }, extra) => {
        const progressToken = extra._meta?.progressToken;
        const progress = async (done) => {
            if (progressToken === undefined) return;
            const params = { progressToken, progress: done, total: 2 };
            await extra.sendNotification({ method: 'notifications/progress', params });
        };
        await progress(1);
        const requestedSchema = { type: 'object', properties: { value: { type: 'boolean' } }, required: ['value'] };
        const question = { message: `${nights} nights in ${city}?`, requestedSchema };
        const { action, content } = await server.server.elicitInput(question, { relatedRequestId: extra.requestId });
        if (action !== 'accept' || content.value !== true) throw new Error('The user said no.');
        await progress(2);
        const booking = { reference: 'R-1', total: nights * 99 };
        return { content: [{ type: 'text', text: JSON.stringify(booking) }], structuredContent: booking };
    });
    return server;
}

if (process.argv[2] === '--http') {
    const sessions = new Map();
    const listener = createServer(async (request, response) => {
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (transport === undefined) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: (id) => sessions.set(id, transport),
                onsessionclosed: (id) => sessions.delete(id),
            });
            await travel().connect(transport);
        }
        await transport.handleRequest(request, response);
    });
    listener.listen(0, '127.0.0.1', () => console.error(`Serving at http://127.0.0.1:${listener.address().port}/mcp`));
} else {
    await travel().connect(new StdioServerTransport());
}
