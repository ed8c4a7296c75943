// The travel server, with npm @modelcontextprotocol/server 2.x: over stdio, or with `--http` at a free port, which it says on stderr.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    acceptedContent, createMcpHandler, inputRequired, isLegacyRequest, McpServer, WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const Confirm = z.object({ value: z.boolean() });

function travel() {
    const server = new McpServer({ name: 'travel', version: '1.0.0' });
    const shape = {
        description: 'Books a hotel.',
        inputSchema: z.object({ city: z.string(), nights: z.number().int() }),
        outputSchema: z.object({ reference: z.string(), total: z.number().int() }),
    };
    server.registerTool('book', shape, async ({ city, nights }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        const progress = async (done) => {
            if (progressToken === undefined) return;
            const params = { progressToken, progress: done, total: 2 };
            await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        };
        // The handler runs once more with the answer, in either era: what was told before is not told again.
        if (ctx.mcpReq.inputResponses?.confirm === undefined) {
            await progress(1);
            const question = { message: `${nights} nights in ${city}?`, requestedSchema: Confirm };
            return inputRequired({ inputRequests: { confirm: inputRequired.elicit(question) } });
        }
        if (acceptedContent(ctx.mcpReq.inputResponses, 'confirm', Confirm)?.value !== true) throw new Error('The user said no.');
        await progress(2);
        const booking = { reference: 'R-1', total: nights * 99 };
        return { content: [{ type: 'text', text: JSON.stringify(booking) }], structuredContent: booking };
    });
    return server;
}

/** Serves older revisions with sessions: the handler's own fallback has none, so it cannot ask. */
const sessions = new Map();
async function withSession(request) {
    let transport = sessions.get(request.headers.get('mcp-session-id'));
    if (transport === undefined) {
        transport = new WebStandardStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: (id) => sessions.set(id, transport),
            onsessionclosed: (id) => sessions.delete(id),
        });
        await travel().connect(transport);
    }
    return transport.handleRequest(request);
}

if (process.argv[2] === '--http') {
    const modern = createMcpHandler(travel, { legacy: 'reject' });
    const fetch = async (request, options) =>
        (await isLegacyRequest(request.clone())) ? withSession(request) : modern.fetch(request, options);
    const listener = createServer(toNodeHandler({ fetch }));
    listener.listen(0, '127.0.0.1', () => console.error(`Serving at http://127.0.0.1:${listener.address().port}/mcp`));
} else {
    serveStdio(travel);
}
