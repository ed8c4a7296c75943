// The npm client @modelcontextprotocol/sdk (the 1.x line) against the server whose command line is given.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { assert, Checks, Inbox, overhear, REVISIONS, within } from './check.mjs';
import { CAPABILITIES, converse, converseWithoutCapabilities, Person, text } from './demo.mjs';
import { bridge, noting, PROMPTLY, serve, told } from './http.mjs';
import { ends, handsOnProgress, keepsItsSession, resumes, staysStateless } from './sessions.mjs';

const { over, line } = told('ts1.mjs');

/** The ways to reach the server: a name, and a new transport each time. */
const stdio = ([command, ...args]) => ({ name: 'stdio', transport: () => new StdioClientTransport({ command, args }) });
const streamable = (url) => ({
    name: 'http', transport: (fetch) => new StreamableHTTPClientTransport(url, { fetch, reconnectionOptions: PROMPTLY }),
});
const sse = (url) => ({ name: 'sse', transport: (fetch) => new SSEClientTransport(url, { fetch }) });
const bridged = (name, bridge) => ({ name, transport: () => new StdioClientTransport(bridge) });

// This client offers its newest revision alone, so an older one is written into its first message.
async function connect(way, revision, capabilities) {
    const person = new Person();
    const inbox = new Inbox();
    const wire = new Inbox();
    const errors = [];
    const client = new Client({ name: 'peer-ts1', version: '1.0.0' }, { capabilities });
    if (capabilities.elicitation) {
        client.setRequestHandler(ElicitRequestSchema, (request) => person.elicitation(request.params));
        client.setRequestHandler(CreateMessageRequestSchema, (request) => person.sampling(request.params));
        client.setRequestHandler(ListRootsRequestSchema, () => person.roots());
    }
    client.fallbackNotificationHandler = async (notification) => inbox.push(notification);
    client.onerror = (error) => {
        // It forgets a call's `onprogress` when its answer is read, before it has run it for what came in the same chunk.
        if (!/progress notification for an unknown token/.test(error)) errors.push(String(error));
    };

    const { log, fetch } = noting();
    const transport = way.transport(fetch);
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
        if (message.method === 'initialize') message.params.protocolVersion = revision;
        return send(message, options);
    };
    let negotiated;
    const settle = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
        negotiated = version;
        settle?.(version);
    };
    await within(10_000, client.connect(transport));
    overhear(transport, wire);
    const call = (name, args, options = {}, more = {}) =>
        client.callTool({ name, arguments: args, ...more }, CallToolResultSchema, { timeout: 10_000, ...options });
    return { client, transport, person, inbox, wire, call, negotiated, log, errors };
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
        // Over HTTP nobody is known by name, so nobody gets a list.
        if (client.getServerCapabilities().tasks.list === undefined) return;
        const { tasks } = await client.experimental.tasks.listTasks();
        assert.ok(tasks.some((task) => task.taskId === taskId), 'the task is listed');
    });
}

const all = new Checks('ts1');

async function conversation(way, revision) {
    all.prefix = `ts1 ${way.name} ${revision}`;
    let peer;
    await all.check('connects', async () => {
        peer = await connect(way, revision, CAPABILITIES);
        assert.equal(peer.negotiated, revision);
    });
    if (peer === undefined) return;
    await converse(all, peer, revision);
    if (revision === '2025-11-25') await tasks(all, peer);
    if (way.name === 'http') {
        await keepsItsSession(all, peer);
        if (over === 'http') {
            await handsOnProgress(all, peer);
            await ends(all, peer);
        }
    }
    await all.check('closes', () => peer.client.close());

    const silent = await connect(way, revision, {});
    await converseWithoutCapabilities(all, silent);
    await silent.client.close();
}

const revisions = REVISIONS.filter((revision) => revision < '2026-07-28');
if (over === 'stdio') {
    for (const revision of revisions) await conversation(stdio(line), revision);
} else if (over === 'url') {
    for (const revision of revisions) await conversation(streamable(new URL(line[0])), revision);
} else {
    const server = await serve(line);
    if (over === 'bridge') {
        for (const revision of revisions) await conversation(bridged('bridge', bridge(server.url)), revision);
        const old = bridge(server.sse, '--transport', 'sse-only');
        await conversation(bridged('bridge to sse', old), revisions[0]);
    } else {
        for (const revision of revisions) await conversation(streamable(server.url), revision);
        for (const revision of revisions) await conversation(sse(server.sse), revision);
        for (const revision of revisions) {
            all.prefix = `ts1 http ${revision}`;
            await resumes(all, server.url, (url) => connect(streamable(url), revision, CAPABILITIES), revision);
        }
        const plain = await serve(line, '--stateless');
        for (const revision of revisions) {
            all.prefix = `ts1 stateless ${revision}`;
            await staysStateless(all, () => connect(streamable(plain.url), revision, CAPABILITIES), revision);
        }
        await plain.stop();
    }
    all.prefix = `ts1 ${over}`;
    await all.check('the server ends when it is told', () => server.stop());
}
all.end();
