// The npm client @modelcontextprotocol/client (the 2.x line) against the server whose command line is given.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { assert, Checks, Inbox, overhear, REVISIONS, within } from './check.mjs';
import { CAPABILITIES, converse, converseWithoutCapabilities, Person } from './demo.mjs';
import { bridge, noting, PROMPTLY, serve, told } from './http.mjs';
import { ends, handsOnProgress, keepsItsSession, leavesNothing, resumes } from './sessions.mjs';

const { over, line } = told('ts2.mjs');
const MODERN = '2026-07-28';
const HEARD = [
    'notifications/message', 'notifications/resources/updated', 'notifications/tools/list_changed',
    'notifications/prompts/list_changed', 'notifications/resources/list_changed',
];

/** How the client is told which revision to speak. */
const pinned = (revision) => ({
    choice: `pinned to ${revision}`, revision, options: { supportedProtocolVersions: [revision] },
});
const LEGACY = REVISIONS.filter((revision) => revision < MODERN).map(pinned);
const CHOICES = [
    ...LEGACY,
    { choice: `pinned to ${MODERN}`, revision: MODERN, options: { versionNegotiation: { mode: { pin: MODERN } } } },
    { choice: 'left to choose', revision: MODERN, options: { versionNegotiation: { mode: 'auto' } } },
];

/** The ways to reach the server: a name, and a new transport each time. */
const stdio = (Transport) => {
    const [command, ...args] = line;
    return { name: 'stdio', transport: () => new Transport({ command, args }) };
};
const streamable = (url) => ({
    name: 'http', transport: (fetch) => new StreamableHTTPClientTransport(url, { fetch, reconnectionOptions: PROMPTLY }),
});
// The bridge sends on that a call was cancelled, but 2026-07-28 over HTTP says so by closing its stream.
const bridged = (bridge) => ({ name: 'bridge', lingers: true, transport: () => new StdioClientTransport(bridge) });
const sse = (url) => ({ name: 'sse', transport: (fetch) => new SSEClientTransport(url, { fetch }) });

/** A subclass of the transport is probed in place: discover and the session are one process. */
class InPlace extends StdioClientTransport {}

async function connect(way, { options }, capabilities) {
    const person = new Person();
    const inbox = new Inbox();
    const wire = new Inbox();
    const errors = [];
    const client = new Client({ name: 'peer-ts2', version: '1.0.0' }, { capabilities, ...options });
    if (capabilities.elicitation) {
        client.setRequestHandler('elicitation/create', async (request) => person.elicitation(request.params));
        client.setRequestHandler('sampling/createMessage', async (request) => person.sampling(request.params));
        client.setRequestHandler('roots/list', async () => person.roots());
    }
    for (const method of HEARD) client.setNotificationHandler(method, (notification) => inbox.push(notification));
    client.onerror = (error) => {
        // It forgets a call's `onprogress` when its answer is read, before it has run it for what came in the same chunk.
        if (!/progress notification for an unknown token/.test(error)) errors.push(String(error));
    };
    const { log, fetch } = noting();
    const transport = way.transport(fetch);
    await within(15_000, client.connect(transport));
    overhear(transport, wire);
    const call = (name, args, more = {}, params = {}) =>
        client.callTool({ name, arguments: args, ...params }, { timeout: 10_000, ...more });
    return { client, transport, person, inbox, wire, call, log, errors, listen: (filter) => client.listen(filter) };
}

async function discovery(checks, { client }) {
    await checks.check('discover names every revision', async () => {
        const { supportedVersions } = await client.discover();
        assert.ok(supportedVersions.includes(MODERN), supportedVersions.join());
        assert.equal(client.getProtocolEra(), 'modern');
    });
}

const all = new Checks('ts2');

async function conversation(way, choice) {
    all.prefix = `ts2 ${way.name} ${choice.choice}`;
    let peer;
    await all.check('connects', async () => {
        peer = await connect(way, choice, CAPABILITIES);
        assert.equal(peer.client.getNegotiatedProtocolVersion(), choice.revision);
    }, 20_000);
    if (peer === undefined) return;
    await converse(all, { ...peer, lingers: way.lingers }, choice.revision);
    if (choice.revision === MODERN) await discovery(all, peer);
    if (way.name === 'http') {
        await (choice.revision === MODERN ? leavesNothing : keepsItsSession)(all, peer);
        if (over === 'http') await handsOnProgress(all, peer);
        if (over === 'http' && choice.revision !== MODERN) await ends(all, peer);
    }
    await all.check('closes', () => peer.client.close());

    const silent = await connect(way, choice, {});
    await converseWithoutCapabilities(all, silent);
    await silent.client.close();
}

if (over === 'stdio') {
    for (const choice of CHOICES) await conversation(stdio(StdioClientTransport), choice);
    await conversation(stdio(InPlace), { ...CHOICES.at(-1), choice: 'probing in place' });
} else if (over === 'url') {
    for (const choice of CHOICES) await conversation(streamable(new URL(line[0])), choice);
} else {
    const server = await serve(line);
    if (over === 'bridge') {
        await conversation(bridged(bridge(server.url)), CHOICES.at(-1));
    } else {
        for (const choice of CHOICES) await conversation(streamable(server.url), choice);
        for (const choice of LEGACY) await conversation(sse(server.sse), choice);
        for (const choice of LEGACY) {
            all.prefix = `ts2 http ${choice.choice}`;
            await resumes(all, server.url, (url) => connect(streamable(url), choice, CAPABILITIES), choice.revision);
        }
    }
    all.prefix = `ts2 ${over}`;
    await all.check('the server ends when it is told', () => server.stop());
}
all.end();
