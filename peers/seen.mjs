// What the gateway records of real clients and servers, against what taps on both sides of it saw: the same messages, as
// values, each once. The taps copy bytes and share nothing with the recorder.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { assert, Checks, Inbox, within } from './check.mjs';
import { CAPABILITIES, Person } from './demo.mjs';
import { freePort, serve, start } from './http.mjs';
import { HttpTap, inBodies, inFiles, unanswered } from './seen/taps.mjs';

const [trunkline] = process.argv.slice(2);
if (trunkline === undefined) {
    console.error('usage: node seen.mjs PATH-OF-TRUNKLINE');
    process.exit(2);
}
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const checks = new Checks('seen');
const dir = mkdtempSync(join(tmpdir(), 'trunkline-seen-'));
const EVERYTHING = here('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
/** Known to the catalog as a secret, and repeated by a server. */
const SECRET = 'planted-value-4711';

/** A command with a tee before it, which keeps its copies in a folder of that name. */
function tapped(name, ...words) {
    const folder = join(dir, name);
    mkdirSync(folder);
    return { command: process.execPath, args: [here('seen/tee.mjs'), folder, ...words] };
}

async function gateway(servers) {
    const config = join(dir, 'trunkline.json');
    const recording = { keep: '256MiB' };
    writeFileSync(config, JSON.stringify({ gateway: { admin: { listen: '127.0.0.1:0' }, recording }, mcpServers: servers }));
    const words = ['serve', '--config', config, '--listen', '127.0.0.1:0', '--state', join(dir, 'state')];
    const child = spawn(trunkline, words, { stdio: ['ignore', 'ignore', 'pipe'] });
    const gone = once(child, 'exit');
    const found = {};
    await within(20_000, new Promise((resolve, reject) => {
        createInterface(child.stderr).on('line', (line) => {
            found.link ??= /Console: (http:\S+)/.exec(line)?.[1];
            found.url ??= /(http:\S+\/mcp)\b/.exec(line)?.[1];
            if (found.link !== undefined && found.url !== undefined) resolve();
        });
        child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
    }));
    const link = new URL(found.link);
    const key = new URLSearchParams(link.hash.slice(1)).get('k');
    const entered = await fetch(new URL('/v1/console/enter', link), { method: 'POST', body: JSON.stringify({ key }) });
    assert.equal(entered.status, 200);
    const cookie = entered.headers.getSetCookie().map((it) => it.split(';')[0]).join('; ');
    const ask = (path, init) => fetch(new URL(path, link), { ...init, headers: { cookie } });
    const stop = async () => {
        child.kill('SIGTERM');
        await within(10_000, gone);
    };
    return { url: found.url, ask, stop };
}

/** Follows the stream of calls: what was told of each, when it was told first, and when it was told to be over. */
function follow(ask) {
    const [begun, over, told, abort] = [new Map(), new Map(), new Inbox(), new AbortController()];
    const opened = ask('/v1/traffic/stream', { signal: abort.signal });
    const reading = opened.then(async (answer) => {
        let rest = '';
        for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
            const events = (rest + text).split('\n\n');
            rest = events.pop();
            for (const event of events) {
                const data = /^event: call\ndata: (.*)$/.exec(event)?.[1];
                if (data === undefined) continue;
                const call = JSON.parse(data);
                told.push(call);
                if (!begun.has(call.id)) begun.set(call.id, Date.now());
                // What ends with a question is only a round.
                const isOver = call.state === 'done' && call.outcome !== 'asked';
                if (isOver && !over.has(call.id)) over.set(call.id, { at: Date.now(), call });
            }
        }
    }).catch(() => {});
    return { begun, over, told, opened, stop: () => (abort.abort(), reading) };
}

/** The npm client, of 2026-07-28 or of the revisions before. */
async function connect(url, era) {
    const person = new Person();
    person.accepts({ name: 'Ada', check: true, integer: 4 });
    const options = era === 'new' ? { versionNegotiation: { mode: 'auto' } } : {};
    const client = new Client({ name: `seen-${era}`, version: '1.0.0' }, { capabilities: CAPABILITIES, ...options });
    client.setRequestHandler('elicitation/create', async ({ params }) => person.elicitation(params));
    client.setRequestHandler('sampling/createMessage', async ({ params }) => person.sampling(params));
    client.setRequestHandler('roots/list', async () => person.roots());
    client.onerror = () => {};
    await within(20_000, client.connect(new StreamableHTTPClientTransport(new URL(url))));
    assert.equal(client.getProtocolEra(), era === 'new' ? 'modern' : 'legacy');
    return client;
}

/** Everything that a client does: lists, tools, prompts, resources, questions, progress, logs, a call that it cancels. */
async function use(client, era, { told }, ended) {
    const call = async (name, args = {}, options = {}, more = {}) => {
        const before = taps.client.exchanges.length;
        const result = await client.callTool({ name, arguments: args, ...more }, { timeout: 20_000, ...options });
        // From bytes to bytes: a client takes up to 300 ms until it sends its first call.
        const own = taps.client.exchanges.slice(before).filter(({ request }) => request.chunks.length > 0);
        const at = Math.max(...own.map(({ response }) => response?.at ?? 0));
        ended.push({ name, began: own[0].request.at, at, client: `seen-${era}` });
        return result;
    };
    await client.listTools();
    await client.listPrompts();
    const { resources } = await client.listResources();
    await client.listResourceTemplates();
    for (const server of ['everything', 'overhttp']) {
        await call(`${server}.echo`, { message: 'salve ☃ "\\' });
        await call(`${server}.get-sum`, { a: 0.1, b: 2e3 });
        await call(`${server}.get-structured-content`, { location: 'Chicago' });
        await client.getPrompt({ name: `${server}.simple-prompt` });
        const progress = { onprogress: () => {} };
        await call(`${server}.trigger-long-running-operation`, { duration: 0.3, steps: 3 }, progress);
        await call(`${server}.trigger-elicitation-request`);
        await call(`${server}.trigger-sampling-request`, { prompt: 'two and two', maxTokens: 10 });
    }
    await call('everything.get-env');
    for (const server of ['demo', 'newhttp']) {
        await call(`${server}.sum`, { a: 1, b: 2 });
        await call(`${server}.fail`, { message: 'as planned' });
        await call(`${server}.greet`);
        await call(`${server}.progress`, { steps: 3 }, { onprogress: () => {} });
        const level = era === 'new' ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {};
        await call(`${server}.log`, { level: 'error', message: 'a line' }, {}, level);
        const leave = new AbortController();
        const left = call(`${server}.sleep`, { ms: 60_000 }, { signal: leave.signal }).catch(() => {});
        const isIt = ({ name, client: it }) => name === `${server}.sleep` && it?.name === `seen-${era}`;
        const { id } = await told.next((it) => isIt(it) && it.serverRevision !== null);
        leave.abort();
        await left;
        await told.next((it) => it.id === id && it.outcome === 'cancelled');
    }
    const readme = resources.find(({ uri }) => uri.startsWith('demo://')) ?? resources[0];
    await client.readResource({ uri: readme.uri });
    await client.callTool({ name: 'nobody.knows', arguments: {} }).catch(() => {});
    if (era === 'older') {
        await client.ping();
        await client.setLoggingLevel('warning');
    }
}

/** A value as text, whatever the order of its members. */
function spelled(value) {
    const sorted = (_, it) =>
        it !== null && typeof it === 'object' && !Array.isArray(it)
            ? Object.fromEntries(Object.entries(it).sort(([a], [b]) => (a < b ? -1 : 1)))
            : it;
    return JSON.stringify(value, sorted);
}

/** What one has and the other has not; each message counts as often as it is there. */
function differences(one, other) {
    const left = [...other];
    const missing = [];
    for (const it of one) {
        const at = left.indexOf(it);
        if (at < 0) missing.push(it);
        else left.splice(at, 1);
    }
    return { missing, left };
}

/**
 * The exception, as in docs/console.md: an error of an HTTP server that names no request, such as the refusal of a probe by
 * a server of the older revisions. It is recorded with the id of the request whose response it came in.
 */
const namesNoRequest = (message) => message.error !== undefined && (message.id === null || message.id === undefined);

/** What the taps saw and the recorder has not, and the other way round. */
function compare(wire, record) {
    const { missing, left } = differences(wire, record);
    const nameless = missing.filter((it) => namesNoRequest(JSON.parse(it)));
    for (const it of nameless) {
        const { error } = JSON.parse(it);
        const at = left.findIndex((other) => spelled(JSON.parse(other).error) === spelled(error));
        if (at >= 0) left.splice(at, 1);
    }
    return { missing: missing.filter((it) => !nameless.includes(it)), left };
}

const PLACES = ['client in', 'client out', 'server out', 'server in'];

async function recorded(ask) {
    const { calls } = await (await ask('/v1/traffic?limit=10000')).json();
    const shown = await Promise.all(calls.map(async ({ id }) => (await ask(`/v1/calls/${id}`)).json()));
    const detail = Object.fromEntries(PLACES.map((place) => [place, []]));
    for (const { messages, note } of shown) {
        assert.equal(note, null);
        for (const { side, dir, message } of messages) detail[`${side} ${dir}`].push(spelled(message));
    }
    const exported = Object.fromEntries(PLACES.map((place) => [place, []]));
    for (const line of (await (await ask('/v1/traffic/export')).text()).trim().split('\n').map((it) => JSON.parse(it))) {
        if (line.message !== undefined) exported[`${line.side} ${line.dir}`].push(spelled(line.message));
    }
    return { shown, detail, exported };
}

const port = await freePort();
const env = { ...process.env, PORT: String(port) };
const older = await start(process.execPath, [EVERYTHING, 'streamableHttp'], /listening on port/i, env);
const newer = await serve([trunkline, 'demo']);
const taps = {
    older: await HttpTap.to(`http://127.0.0.1:${port}/mcp`),
    newer: await HttpTap.to(newer.url),
};
const served = await gateway({
    everything: { ...tapped('everything', process.execPath, EVERYTHING), env: { PLANTED: SECRET } },
    demo: tapped('demo', trunkline, 'demo'),
    overhttp: { url: String(taps.older.url) },
    newhttp: { url: String(taps.newer.url) },
});
taps.client = await HttpTap.to(served.url);

const seen = () => {
    const all = {
        'client in': inBodies(taps.client.requests),
        'client out': inBodies(taps.client.responses),
        'server out': inBodies([...taps.older.requests, ...taps.newer.requests]),
        'server in': inBodies([...taps.older.responses, ...taps.newer.responses]),
    };
    for (const folder of ['everything', 'demo']) {
        all['server out'].push(...inFiles(join(dir, folder), 'out'));
        all['server in'].push(...inFiles(join(dir, folder), 'in'));
    }
    const masked = (message) => spelled(message).replaceAll(SECRET, '***');
    return Object.fromEntries(Object.entries(all).map(([place, it]) => [place, it.map(masked)]));
};

/**
 * What a process asked and nobody answered: the gateway answers each question that it reads, so it had hung up. The everything
 * server asks for roots 350 ms after the handshake, which is about when one that was started for its lists is done.
 */
const unheard = () => ['everything', 'demo'].flatMap((folder) => unanswered(join(dir, folder)).map(spelled));

try {
    const stream = follow(served.ask);
    assert.equal((await stream.opened).status, 200);
    const ended = [];
    for (const era of ['new', 'older']) {
        await checks.check(`a client of the ${era === 'new' ? 'newest revision' : 'revisions before'} does all it can`, async () => {
            const client = await connect(taps.client.url, era);
            await use(client, era, stream, ended);
            await client.close();
        }, 60_000);
    }
    await checks.check('each of its calls is in the stream within 200 ms of its beginning, and again of its end', async () => {
        const late = ended.flatMap(({ name, began, at, client }) => {
            const told = [...stream.over.values()].filter(({ call }) => call.name === name && call.client?.name === client);
            assert.equal(told.length, 1, `${name} of ${client}`);
            const [over] = told;
            return [stream.begun.get(over.call.id) - began, Math.max(0, over.at - at)];
        }).sort((one, other) => one - other);
        const within = (share) => late[Math.ceil(late.length * share) - 1];
        console.log(`   ${late.length / 2} calls: half within ${within(0.5)} ms, 95 % within ${within(0.95)} ms, all within ${late.at(-1)} ms`);
        assert.ok(late.at(-1) <= 200, late.join());
    });
    let last;
    for (const [what, of] of [['a call shows', 'detail'], ['an export has', 'exported']]) {
        await checks.check(`${what} each message that the taps saw on both sides, once, and no other`, async () => {
            const faults = async () => {
                const [wire, record] = [seen(), await recorded(served.ask)];
                last = { wire, record };
                return PLACES.flatMap((place) => {
                    const { missing: all, left } = compare(wire[place], record[of][place]);
                    const missing = place === 'server in' ? all.filter((it) => !unheard().includes(it)) : all;
                    const lines = (word, all) => all.slice(0, 3).map((it) => `${place} ${word}: ${it.slice(0, 300)}`);
                    return [...lines(`${missing.length} not recorded`, missing), ...lines(`${left.length} not on the wire`, left)];
                });
            };
            // What was said last may still be on its way.
            const until = Date.now() + 10_000;
            let found = await faults();
            while (found.length > 0 && Date.now() < until) found = await faults();
            assert.deepEqual(found, []);
            const counts = PLACES.map((place) => `${place} ${last.wire[place].length}`);
            console.log(`   ${counts.join(', ')}`);
            assert.ok(PLACES.every((place) => last.wire[place].length > 40), counts.join());
        }, 20_000);
    }
    await checks.check('handshakes, lists, questions and cancellations are among them, and no secret is', async () => {
        const methods = new Set(PLACES.flatMap((place) => last.record.detail[place].map((it) => JSON.parse(it).method)));
        const wanted = [
            'initialize', 'notifications/initialized', 'server/discover', 'tools/list', 'ping', 'tools/call', 'prompts/get',
            'resources/read', 'elicitation/create', 'sampling/createMessage', 'notifications/progress',
            'notifications/cancelled', 'logging/setLevel',
        ];
        assert.deepEqual(wanted.filter((it) => !methods.has(it)), []);
        const all = JSON.stringify(last.record);
        assert.ok(all.includes('***') && !all.includes(SECRET), 'the secret is there');
    });
    await checks.check('a call has its own messages, on both sides, with the ids that they had', async () => {
        const greets = last.record.shown.filter(({ name }) => name === 'demo.greet');
        assert.equal(greets.length, 2, 'one for each client');
        for (const { messages, revision } of greets) {
            const of = (side) => messages.filter((it) => it.side === side).map(({ dir, message }) => [dir, message]);
            const [client, server] = [of('client'), of('server')];
            const [[, asked]] = client;
            const [, answer] = client.at(-1);
            assert.equal(asked.method, 'tools/call');
            // From 2026-07-28 on a question ends a round, and the answer is another request.
            const rounds = client.filter(([dir, it]) => dir === 'in' && it.method === 'tools/call');
            assert.equal(rounds.length, revision === '2026-07-28' ? 2 : 1);
            assert.equal(answer.id, rounds.at(-1)[1].id);
            assert.ok(server.length >= 2 && server[0][1].method === 'tools/call', JSON.stringify(server));
        }
    });
    await stream.stop();
} finally {
    await served.stop();
    for (const tap of Object.values(taps)) tap.close();
    await older.stop().catch(() => {});
    await newer.stop().catch(() => {});
    rmSync(dir, { recursive: true, force: true });
}
checks.end();
