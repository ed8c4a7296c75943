// The server of the table, with npm @modelcontextprotocol/server 2.x, over stdio, in both eras.
import { inputRequired, McpServer, UrlElicitationRequiredError } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { FORM, LEVELS, note, PAGE, PROMPT, QUESTION, said } from './words.mjs';

const NOTE = note('ts2');

function table() {
    const capabilities = { logging: {}, resources: { subscribe: true } };
    const server = new McpServer({ name: 'table', version: '1.0.0' }, { capabilities });
    const tool = (name, run) => server.registerTool(name, { description: name }, run);
    // The handler returns its question and runs once more with the answer, in either era.
    const returns = (name, question) => tool(name, async ({ mcpReq: { inputResponses } }) => (
        inputResponses?.it === undefined ? inputRequired({ inputRequests: { it: question() } }) : said(inputResponses.it)));

    tool('ask', async ({ mcpReq }) => said(await mcpReq.elicitInput({ mode: 'form', message: QUESTION, requestedSchema: FORM })));
    tool('visit', async ({ mcpReq }) => said({ action: (await mcpReq.elicitInput({ mode: 'url', ...PAGE })).action }));
    let isVisited = true;
    tool('visit_first', async () => {
        isVisited = !isVisited;
        if (isVisited) return said('visited');
        throw new UrlElicitationRequiredError([{ mode: 'url', ...PAGE }]);
    });
    tool('sample', async ({ mcpReq }) => said(await mcpReq.requestSampling(PROMPT)));
    tool('roots', async () => said(await server.server.listRoots()));
    returns('ask_returned', () => inputRequired.elicit({ message: QUESTION, requestedSchema: FORM }));
    returns('visit_returned', () => inputRequired.elicitUrl({ message: PAGE.message, url: PAGE.url }));
    returns('sample_returned', () => inputRequired.createMessage(PROMPT));
    returns('roots_returned', () => inputRequired.listRoots());
    tool('log', async ({ mcpReq }) => {
        for (const level of LEVELS) await mcpReq.log(level, `a ${level}`, 'table');
        return said('logged');
    });
    tool('progress', async ({ mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
            const params = { progressToken, progress, total: 3, message: `step ${progress}` };
            await mcpReq.notify({ method: 'notifications/progress', params });
        }
        return said('done');
    });

    // Up to 2025-11-25 this SDK leaves it to its user who has subscribed; in 2026-07-28 it knows by itself.
    const subscribed = new Set();
    server.server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => subscribed.add(uri) && {});
    server.server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => subscribed.delete(uri) && {});
    let version = 1;
    server.registerResource('note', NOTE, {}, async () => ({ contents: [{ uri: NOTE, text: `version ${version}` }] }));
    tool('touch', async () => {
        version += 1;
        const isModern = server.server.getNegotiatedProtocolVersion() === '2026-07-28';
        if (isModern || subscribed.has(NOTE)) await server.server.sendResourceUpdated({ uri: NOTE });
        return said('touched');
    });
    tool('work', async () => said('worked'));
    return server;
}

serveStdio(table);
