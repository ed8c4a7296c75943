// The server of the table, with npm @modelcontextprotocol/sdk 1.x, over stdio.
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema, UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { FORM, LEVELS, note, PAGE, PROMPT, QUESTION, said } from './words.mjs';

const NOTE = note('ts1');
const capabilities = {
    logging: {}, resources: { subscribe: true }, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
};
const server = new McpServer({ name: 'table', version: '1.0.0' }, { capabilities, taskStore: new InMemoryTaskStore() });
const tool = (name, run) => server.registerTool(name, { description: name }, run);

tool('ask', async ({ requestId }) => {
    const question = { mode: 'form', message: QUESTION, requestedSchema: FORM };
    return said(await server.server.elicitInput(question, { relatedRequestId: requestId }));
});
tool('visit', async ({ requestId }) => {
    const { action } = await server.server.elicitInput({ mode: 'url', ...PAGE }, { relatedRequestId: requestId });
    return said({ action });
});
let isVisited = true;
tool('visit_first', async () => {
    isVisited = !isVisited;
    if (isVisited) return said('visited');
    throw new UrlElicitationRequiredError([{ mode: 'url', ...PAGE }]);
});
tool('sample', async ({ requestId }) => said(await server.server.createMessage(PROMPT, { relatedRequestId: requestId })));
tool('roots', async ({ requestId }) => said(await server.server.listRoots({}, { relatedRequestId: requestId })));
tool('log', async () => {
    for (const level of LEVELS) await server.sendLoggingMessage({ level, logger: 'table', data: `a ${level}` });
    return said('logged');
});
tool('progress', async ({ _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [1, 2, 3]) {
        const params = { progressToken, progress, total: 3, message: `step ${progress}` };
        await sendNotification({ method: 'notifications/progress', params });
    }
    return said('done');
});

// This SDK leaves it to its user who has subscribed.
const subscribed = new Set();
server.server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => subscribed.add(uri) && {});
server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params: { uri } }) => subscribed.delete(uri) && {});
let version = 1;
server.registerResource('note', NOTE, {}, () => ({ contents: [{ uri: NOTE, text: `version ${version}` }] }));
tool('touch', async () => {
    version += 1;
    if (subscribed.has(NOTE)) await server.server.sendResourceUpdated({ uri: NOTE });
    return said('touched');
});

server.experimental.tasks.registerToolTask('work', { description: 'work', execution: { taskSupport: 'optional' } }, {
    async createTask({ taskStore, taskRequestedTtl }) {
        const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 50 });
        const store = () => taskStore.storeTaskResult(task.taskId, 'completed', said('worked'));
        // A task that was cancelled takes no result, and a rejection that nobody handles would end the process and with it
        // the calls of others.
        setTimeout(() => store().catch(() => {}), 300);
        return { task };
    },
    getTask: ({ taskId, taskStore }) => taskStore.getTask(taskId),
    getTaskResult: ({ taskId, taskStore }) => taskStore.getTaskResult(taskId),
});

await server.connect(new StdioServerTransport());
