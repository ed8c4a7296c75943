// The npm client @modelcontextprotocol/sdk (the 1.x line) against the server whose command line is given.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
    CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { assert, Checks, Inbox, REVISIONS, within } from './check.mjs';
import { CAPABILITIES, converse, converseWithoutCapabilities, Person, text } from './demo.mjs';

const [command, ...args] = process.argv.slice(2);
if (command === undefined) {
    console.error('usage: node ts1.mjs COMMAND [ARG…]');
    process.exit(2);
}

// This client offers its newest revision alone, so an older one is written into its first message.
async function connect(revision, capabilities) {
    const person = new Person();
    const inbox = new Inbox();
    const wire = new Inbox();
    const client = new Client({ name: 'peer-ts1', version: '1.0.0' }, { capabilities });
    if (capabilities.elicitation) {
        client.setRequestHandler(ElicitRequestSchema, (request) => person.elicitation(request.params));
        client.setRequestHandler(CreateMessageRequestSchema, (request) => person.sampling(request.params));
        client.setRequestHandler(ListRootsRequestSchema, () => person.roots());
    }
    client.fallbackNotificationHandler = async (notification) => inbox.push(notification);

    const transport = new StdioClientTransport({ command, args });
    const send = transport.send.bind(transport);
    transport.send = (message) => {
        if (message.method === 'initialize') message.params.protocolVersion = revision;
        return send(message);
    };
    let negotiated;
    transport.setProtocolVersion = (version) => { negotiated = version; };
    await within(10_000, client.connect(transport));
    const receive = transport.onmessage;
    transport.onmessage = (message, extra) => {
        wire.push(message);
        return receive(message, extra);
    };
    const call = (name, args, options = {}, more = {}) =>
        client.callTool({ name, arguments: args, ...more }, CallToolResultSchema, { timeout: 10_000, ...options });
    return { client, person, inbox, wire, call, negotiated };
}

async function tasks(checks, { client }) {
    await checks.check('work as a task', async () => {
        const params = { name: 'work', arguments: { steps: 3 } };
        const seen = [];
        for await (const message of client.experimental.tasks.callToolStream(params, CallToolResultSchema, { task: { ttl: 60_000 } })) {
            seen.push(message);
        }
        assert.equal(seen[0].type, 'taskCreated');
        assert.equal(seen.at(-1).type, 'result', JSON.stringify(seen.at(-1)));
        assert.equal(text(seen.at(-1).result), 'worked 3 steps');
        const { taskId } = seen[0].task;
        assert.equal((await client.experimental.tasks.getTask(taskId)).status, 'completed');
        const { tasks } = await client.experimental.tasks.listTasks();
        assert.ok(tasks.some((task) => task.taskId === taskId), 'the task is listed');
    });
}

const all = new Checks('ts1');
for (const revision of REVISIONS.filter((revision) => revision < '2026-07-28')) {
    all.prefix = `ts1 ${revision}`;
    let peer;
    await all.check('connects', async () => {
        peer = await connect(revision, CAPABILITIES);
        assert.equal(peer.negotiated, revision);
    });
    if (peer === undefined) continue;
    await converse(all, peer, revision);
    if (revision === '2025-11-25') await tasks(all, peer);
    await all.check('closes', () => peer.client.close());

    const silent = await connect(revision, {});
    await converseWithoutCapabilities(all, silent);
    await silent.client.close();
}
all.end();
