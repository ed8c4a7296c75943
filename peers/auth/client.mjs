// The npm clients log in to a protected server by their own OAuth code: `ts1|ts2 (URL | COMMAND ARG…)`.
import * as ts2 from '@modelcontextprotocol/client';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { assert, Checks, failure, within } from '../check.mjs';
import { noting } from '../http.mjs';
import { askedWell, isChallenged, Login, MODERN, NEWEST_LEGACY, protectedServer, works } from './login.mjs';

const [which, ...line] = process.argv.slice(2);
if (!['ts1', 'ts2'].includes(which) || line.length === 0) {
    console.error('usage: node auth/client.mjs ts1|ts2 (URL | COMMAND [ARG…])');
    process.exit(2);
}
const me = { name: `peer-${which}`, version: '1.0.0' };

/** Each client, under names that both have. */
const SDK = which === 'ts1'
    ? {
        Unauthorized: UnauthorizedError,
        client: () => new Client(me),
        http: (url, options) => new StreamableHTTPClientTransport(url, options),
        sse: (url, options) => new SSEClientTransport(url, options),
        finish: (transport, params) => transport.finishAuth(params.get('code')),
    }
    : {
        Unauthorized: ts2.UnauthorizedError,
        client: (revision) => new ts2.Client(me, revision === MODERN
            ? { versionNegotiation: { mode: 'auto' } } : { supportedProtocolVersions: [revision] }),
        http: (url, options) => new ts2.StreamableHTTPClientTransport(url, options),
        sse: (url, options) => new ts2.SSEClientTransport(url, options),
        finish: (transport, params) => transport.finishAuth(params),
    };

const checks = new Checks(`auth ${which}`);
const check = (name, body) => checks.check(name, body, 20_000);

/** Connects, is sent to log in, does so, and connects again. */
async function logIn(way, url, revision, login) {
    const { log, fetch } = noting();
    const options = { authProvider: login, fetch };
    const first = SDK[way](url, options);
    const error = await failure(within(10_000, SDK.client(revision).connect(first)));
    assert.ok(error instanceof SDK.Unauthorized, String(error));
    assert.equal(login.asked.length, 1);
    await SDK.finish(first, await login.approved());
    await first.close();
    const client = SDK.client(revision);
    const transport = SDK[way](url, options);
    await within(10_000, client.connect(transport));
    return { client, transport, log };
}

async function conversation(way, url, revision) {
    checks.prefix = `auth ${which} ${way} ${revision}`;
    const login = new Login(`Peer ${which}`);
    let resource;
    await check('is told where to log in', async () => { resource = await isChallenged(url); });
    let peer;
    await check('registers, logs in and connects', async () => {
        peer = await logIn(way, url, revision, login);
        askedWell(login.asked[0], resource);
        assert.equal(login.registered, 1);
        assert.equal(login.saved, 1);
    });
    if (peer === undefined) return;
    await check('lists and calls', () => works(peer.client));
    await check('refreshes when its token is refused', async () => {
        const before = login.spoil();
        await works(peer.client);
        assert.equal(login.saved, 2);
        assert.notEqual(login.held.access_token, before.access_token);
        assert.equal(login.asked.length, 1, 'nobody was asked again');
    });
    // The 1.x client renews its token instead, and ends there; the 2.x client does not step up at `/sse`.
    if (which === 'ts2' && way === 'http' && server.isDemo) await check('asks for the scope that a tool needs', () => stepsUp(peer, login));
    const { length } = login.asked;
    await check('closes', () => peer.client.close());
    await check('comes back with what it kept', async () => {
        const client = SDK.client(revision);
        await within(10_000, client.connect(SDK[way](url, { authProvider: login })));
        await works(client);
        await client.close();
        assert.equal(login.asked.length, length, 'nobody was asked again');
    });
}

async function stepsUp({ client, transport }, login) {
    const announce = { name: 'announce', arguments: { kind: 'tools' } };
    const error = await failure(client.callTool(announce));
    assert.ok(error instanceof SDK.Unauthorized, String(error));
    assert.equal(login.asked.length, 2);
    assert.deepEqual(login.asked[1].searchParams.get('scope').split(' ').sort(), ['demo', 'demo:write']);
    await SDK.finish(transport, await login.approved());
    assert.equal((await client.callTool(announce)).content[0].text, 'announced');
    assert.equal(login.registered, 1, 'it is still the same client');
}

async function withDpop(url) {
    checks.prefix = `auth ${which} http ${MODERN} DPoP`;
    const login = new Login('Peer ts2 with a key');
    const session = ts2.DpopSession.create();
    login.dpop = () => session;
    let peer;
    await check('logs in for a token bound to its key', async () => {
        peer = await logIn('http', url, MODERN, login);
        assert.equal(login.held.token_type.toLowerCase(), 'dpop');
    });
    if (peer === undefined) return;
    await check('lists and calls', () => works(peer.client));
    await check('the token is no good without the key', async () => {
        const headers = {
            authorization: `Bearer ${login.held.access_token}`,
            'content-type': 'application/json', accept: 'application/json, text/event-stream',
        };
        const response = await fetch(url, { method: 'POST', headers, body: '{}' });
        await response.body?.cancel();
        assert.equal(response.status, 401);
        assert.match(response.headers.get('www-authenticate'), /error="invalid_token"/);
    });
    await check('refreshes with the key', async () => {
        login.spoil();
        await works(peer.client);
        assert.equal(login.saved, 2);
    });
    await check('closes', () => peer.client.close());
}

const server = await protectedServer(line);
await conversation('http', server.url, NEWEST_LEGACY);
if (which === 'ts2') await conversation('http', server.url, MODERN);
if (which === 'ts2' && server.isDemo) await withDpop(server.url);
if (server.sse) await conversation('sse', server.sse, NEWEST_LEGACY);
checks.prefix = `auth ${which}`;
await check('the server ends when it is told', () => server.stop());
checks.end();
