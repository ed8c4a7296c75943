// The npm client @modelcontextprotocol/client (the 2.x line) against the server whose command line is given.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { assert, Checks, Inbox, REVISIONS, within } from './check.mjs';
import { CAPABILITIES, converse, converseWithoutCapabilities, Person } from './demo.mjs';

const [command, ...args] = process.argv.slice(2);
if (command === undefined) {
    console.error('usage: node ts2.mjs COMMAND [ARG…]');
    process.exit(2);
}
const MODERN = '2026-07-28';
const HEARD = [
    'notifications/message', 'notifications/resources/updated', 'notifications/tools/list_changed',
    'notifications/prompts/list_changed', 'notifications/resources/list_changed',
];

/** How the client is told which revision to speak. */
const WAYS = [
    ...REVISIONS.filter((revision) => revision < MODERN).map((revision) => ({
        way: `pinned to ${revision}`, revision, options: { supportedProtocolVersions: [revision] },
    })),
    { way: `pinned to ${MODERN}`, revision: MODERN, options: { versionNegotiation: { mode: { pin: MODERN } } } },
    { way: 'left to choose', revision: MODERN, options: { versionNegotiation: { mode: 'auto' } } },
    // A subclass of the transport is probed in place: discover and the session are one process.
    { way: 'probing in place', revision: MODERN, options: { versionNegotiation: { mode: 'auto' } }, inPlace: true },
];

class InPlace extends StdioClientTransport {}

async function connect({ options, inPlace }, capabilities) {
    const person = new Person();
    const inbox = new Inbox();
    const wire = new Inbox();
    const client = new Client({ name: 'peer-ts2', version: '1.0.0' }, { capabilities, ...options });
    if (capabilities.elicitation) {
        client.setRequestHandler('elicitation/create', async (request) => person.elicitation(request.params));
        client.setRequestHandler('sampling/createMessage', async (request) => person.sampling(request.params));
        client.setRequestHandler('roots/list', async () => person.roots());
    }
    for (const method of HEARD) client.setNotificationHandler(method, (notification) => inbox.push(notification));
    const transport = new (inPlace ? InPlace : StdioClientTransport)({ command, args });
    await within(15_000, client.connect(transport));
    const receive = transport.onmessage;
    transport.onmessage = (message, extra) => {
        wire.push(message);
        return receive(message, extra);
    };
    const call = (name, args, more = {}, params = {}) =>
        client.callTool({ name, arguments: args, ...params }, { timeout: 10_000, ...more });
    return { client, person, inbox, wire, call, listen: (filter) => client.listen(filter) };
}

async function discovery(checks, { client }) {
    await checks.check('discover names every revision', async () => {
        const { supportedVersions } = await client.discover();
        assert.ok(supportedVersions.includes(MODERN), supportedVersions.join());
        assert.equal(client.getProtocolEra(), 'modern');
    });
}

const all = new Checks('ts2');
for (const way of WAYS) {
    all.prefix = `ts2 ${way.way}`;
    let peer;
    await all.check('connects', async () => {
        peer = await connect(way, CAPABILITIES);
        assert.equal(peer.client.getNegotiatedProtocolVersion(), way.revision);
    }, 20_000);
    if (peer === undefined) continue;
    await converse(all, peer, way.revision);
    if (way.revision === MODERN) await discovery(all, peer);
    await all.check('closes', () => peer.client.close());

    const silent = await connect(way, {});
    await converseWithoutCapabilities(all, silent);
    await silent.client.close();
}
all.end();
