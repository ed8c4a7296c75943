// Five servers of other projects behind one `trunkline serve`, one of them in two revisions, used through it by both npm
// clients, and by both PyPI clients in `gateway.py`.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { assert, Checks, within } from './check.mjs';
import { CAPABILITIES, Person } from './demo.mjs';
import { start, startGateway, toldOurs } from './http.mjs';

const { trunkline, venv } = toldOurs('gateway.mjs');
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const inVenv = (name) => {
    const path = join(venv, 'bin', name);
    if (!existsSync(path)) throw new Error(`There is no \`${name}\` in the venv; \`cargo xtask peers\` installs it.`);
    return path;
};
const npm = (name) => ({
    command: process.execPath, args: [here(`node_modules/@modelcontextprotocol/${name}/dist/index.js`)],
});

/** What each server is known by: tools that are always there. */
const KNOWN = {
    everything: ['echo', 'get-sum', 'get-tiny-image', 'trigger-long-running-operation'],
    files: ['read_text_file', 'list_directory', 'search_files'],
    time: ['get_current_time', 'convert_time'],
    git: ['git_status', 'git_log'],
    fast: ['add', 'echo', 'count', 'greet'],
    older: ['add', 'echo', 'count', 'greet'],
};

/** A folder that is a repository with one commit. */
async function folder() {
    const dir = await realpath(await mkdtemp(join(tmpdir(), 'trunkline-gateway-')));
    const git = (...words) => execFileSync('git', ['-C', dir, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...words]);
    await writeFile(join(dir, 'hello.txt'), 'hello from a file\n');
    git('init', '--quiet');
    git('add', 'hello.txt');
    git('commit', '--quiet', '--message', 'The first commit');
    return dir;
}

function catalog(dir, fast) {
    const files = npm('server-filesystem');
    return {
        mcpServers: {
            everything: npm('server-everything'),
            files: { ...files, args: [...files.args, dir] },
            time: { command: inVenv('mcp-server-time'), args: ['--local-timezone', 'UTC'] },
            // It starts `git`.
            git: { command: inVenv('mcp-server-git'), args: ['--repository', dir], inherit: ['PATH', 'HOME'] },
            fast: { url: fast },
            // The same in an older revision: FastMCP's `ctx.elicit` refuses 2026-07-28.
            older: { url: fast, protocolVersion: '<=2025-11-25' },
        },
    };
}

/** Either npm client at the gateway; `era` is what it may speak. */
async function connect(sdk, era, url) {
    const person = new Person();
    const info = { name: `peer-${sdk}`, version: '1.0.0' };
    let client;
    if (sdk === 'ts1') {
        client = new Client1(info, { capabilities: CAPABILITIES });
        client.setRequestHandler(ElicitRequestSchema, ({ params }) => person.elicitation(params));
        client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => person.sampling(params));
        client.setRequestHandler(ListRootsRequestSchema, () => person.roots());
    } else {
        // Left alone, this client shakes hands as before 2026-07-28.
        const options = era === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {};
        client = new Client2(info, { capabilities: CAPABILITIES, ...options });
        client.setRequestHandler('elicitation/create', async ({ params }) => person.elicitation(params));
        client.setRequestHandler('sampling/createMessage', async ({ params }) => person.sampling(params));
        client.setRequestHandler('roots/list', async () => person.roots());
    }
    const transport = new (sdk === 'ts1' ? Http1 : Http2)(new URL(url));
    await within(30_000, client.connect(transport));
    const call = (name, args, more = {}) => {
        const params = { name, arguments: args };
        const options = { timeout: 30_000, ...more };
        return sdk === 'ts1' ? client.callTool(params, CallToolResultSchema, options) : client.callTool(params, options);
    };
    return { client, call, person };
}

/** Every page of a list. */
async function all(list, key) {
    const found = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? undefined : { cursor });
        found.push(...page[key]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
}

const text = (result) => result.content.map((block) => block.text ?? '').join('\n');

async function converse(checks, { client, call, person }, isNew, dir) {
    const check = (name, body) => checks.check(name, body, 60_000);
    await check('lists the tools of every server', async () => {
        const tools = await all((params) => client.listTools(params), 'tools');
        const names = new Set(tools.map((tool) => tool.name));
        for (const [server, known] of Object.entries(KNOWN)) {
            for (const name of known) assert.ok(names.has(`${server}.${name}`), `${server}.${name}: ${[...names].join()}`);
        }
        for (const name of names) assert.ok(name.split('.')[0] in KNOWN, name);
        assert.equal(names.size, tools.length, 'a name is there twice');
    });
    await check('calls a tool of each', async () => {
        assert.equal(text(await call('everything.get-sum', { a: 2, b: 40 })), 'The sum of 2 and 40 is 42.');
        assert.equal(text(await call('everything.echo', { message: '☃' })), 'Echo: ☃');
        assert.match(text(await call('files.read_text_file', { path: join(dir, 'hello.txt') })), /hello from a file/);
        const now = JSON.parse(text(await call('time.get_current_time', { timezone: 'Europe/Oslo' })));
        assert.equal(now.timezone, 'Europe/Oslo');
        assert.match(text(await call('git.git_log', { repo_path: dir })), /The first commit/);
        assert.deepEqual((await call('fast.add', { a: 2, b: 40 })).structuredContent, { sum: 42 });
    });
    await check('gets structured content and an image', async () => {
        const weather = await call('everything.get-structured-content', { location: 'Chicago' });
        assert.equal(typeof weather.structuredContent.temperature, 'number');
        const image = await call('everything.get-tiny-image', {});
        assert.ok(image.content.some((block) => block.type === 'image' && block.mimeType === 'image/png'));
    });
    await check('a tool that fails says so in its result', async () => {
        const outside = await call('files.read_text_file', { path: '/etc/hostname' });
        assert.equal(outside.isError, true);
        const failed = await call('fast.fail', { message: 'no luck' });
        assert.equal(failed.isError, true);
        assert.match(text(failed), /no luck/);
    });
    await check('calls of all servers at once are each answered with their own', async () => {
        const calls = Array.from({ length: 40 }, (_, i) => (i % 2 === 0
            ? call('everything.echo', { message: `call ${i}` })
            : call('fast.echo', { text: `Echo: call ${i}` })));
        assert.deepEqual((await Promise.all(calls)).map(text), calls.map((_, i) => `Echo: call ${i}`));
    });
    await check('reads resources of both who have them', async () => {
        const resources = await all((params) => client.listResources(params), 'resources');
        const at = (end) => resources.find((resource) => resource.uri.endsWith(end))?.uri;
        assert.ok(at('features.md') && at('readme'), resources.map((resource) => resource.uri).join());
        const features = await client.readResource({ uri: at('features.md') });
        assert.match(features.contents[0].text, /Everything/);
        assert.equal((await client.readResource({ uri: at('readme') })).contents[0].text, 'Made with FastMCP.');
        assert.match((await client.readResource({ uri: 'demo://resource/dynamic/text/1' })).contents[0].text, /Resource 1/);
    });
    await check('gets prompts of both who have them', async () => {
        const prompts = (await all((params) => client.listPrompts(params), 'prompts')).map((prompt) => prompt.name);
        assert.ok(prompts.includes('everything.args-prompt') && prompts.includes('fast.review'), prompts.join());
        const weather = await client.getPrompt({ name: 'everything.args-prompt', arguments: { city: 'Paris' } });
        assert.match(weather.messages[0].content.text, /Paris/);
        const review = await client.getPrompt({ name: 'fast.review', arguments: { code: 'fn main() {}' } });
        assert.match(review.messages[0].content.text, /fn main/);
    });
    await check('completes', async () => {
        const { completion } = await client.complete({
            ref: { type: 'ref/prompt', name: 'everything.completable-prompt' }, argument: { name: 'department', value: 'Eng' },
        });
        assert.deepEqual(completion.values, ['Engineering']);
    });
    await check('hears of progress, over stdio and over HTTP behind it', async () => {
        const seen = [];
        const onprogress = ({ progress, total }) => {
            // The 2.x client also tells of each question that it answers; the everything server asks for roots when it starts.
            if (total !== undefined) seen.push([progress, total]);
        };
        await call('everything.trigger-long-running-operation', { duration: 1, steps: 4 }, { onprogress });
        // The SDK forgets a call's `onprogress` when its answer is read; the steps before the last come long before.
        assert.deepEqual(seen.slice(0, 3), [[1, 4], [2, 4], [3, 4]]);
        seen.length = 0;
        assert.equal(text(await call('fast.count', { steps: 3 }, { onprogress })), 'done');
        assert.deepEqual(seen, [[1, 3], [2, 3], [3, 3]].slice(0, seen.length));
    });
    await check('answers an elicitation', async () => {
        person.accepts({ name: 'Ada', check: true });
        const result = await call('everything.trigger-elicitation-request', {});
        assert.match(text(result), /Name: Ada/);
        assert.equal(person.asked.length, 1);
        person.does('decline');
        assert.match(text(await call('everything.trigger-elicitation-request', {})), /declined/i);
    });
    await check('answers a sampling request', async () => {
        person.asked.length = 0;
        const result = await call('everything.trigger-sampling-request', { prompt: 'two and two?', maxTokens: 10 });
        assert.match(text(result), /four/);
        assert.equal(person.asked.length, 1);
    });
    await check('answers the question of a server over HTTP', async () => {
        person.accepts({ value: 'Ada' });
        assert.equal(text(await call('older.greet', {})), 'Hello, Ada!');
    });
    await check('hears from a server of both eras what it would without the gateway', async () => {
        person.accepts({ value: 'Ada' });
        const said = text(await call('fast.greet', {}));
        assert.match(said, isNew ? /unavailable on 2026-07-28/ : /^Hello, Ada!$/);
    });
}

/** Every process below another. */
async function below(pid) {
    const parents = new Map();
    for (const entry of await readdir('/proc')) {
        if (!/^\d+$/.test(entry)) continue;
        const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '');
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (state !== 'Z' && parent !== undefined) parents.set(Number(entry), Number(parent));
    }
    const found = [pid];
    for (const top of found) for (const [child, parent] of parents) if (parent === top) found.push(child);
    return found.slice(1);
}

const checks = new Checks('gateway');
const dir = await folder();
const fast = await start(inVenv('python'), [here('fast_server.py')], /(http:\/\/\S+)/);
try {
    const config = join(dir, '.git', 'trunkline.yaml');
    await writeFile(config, JSON.stringify(catalog(dir, `${fast.found[1]}/mcp`)));
    const state = join(dir, '.git', 'state');
    const gateway = await startGateway(trunkline, config, state);
    const { url } = gateway;
    // `server-everything` announces a change of its lists whenever it starts. What several start is each one's own affair.
    if (gateway.isOne) await checks.check('while nobody calls, each server is started once, and none stays', async () => {
        for (;;) {
            const { servers } = JSON.parse(execFileSync(trunkline, ['ps', '--json', '--state', state]));
            const starts = servers.map(({ name, starts }) => [name, Object.values(starts).reduce((one, other) => one + other, 0)]);
            for (const [name, count] of starts) assert.ok(count <= 1, `${name} was started ${count} times`);
            if (servers.every(({ tools, instances }) => tools !== null && instances.length === 0)) break;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }, 60_000);
    for (const [sdk, era] of [['ts1', 'legacy'], ['ts2', 'auto'], ['ts2', 'legacy']]) {
        checks.prefix = `gateway ${sdk} ${era}`;
        await checks.check('connects and closes', async () => {
            const peer = await connect(sdk, era, url);
            await converse(checks, peer, era === 'auto', dir);
            await peer.client.close();
        }, 240_000);
    }
    checks.prefix = 'gateway';
    await checks.check('the PyPI clients see the same', async () => {
        const python = spawn(inVenv('python'), [here('gateway.py'), url, dir], { stdio: ['ignore', 'inherit', 'inherit'] });
        const [code] = await once(python, 'exit');
        assert.equal(code, 0);
    }, 240_000);
    await checks.check('it stops when told to, and leaves no process behind', async () => {
        const children = await below(gateway.pid);
        assert.ok(children.length >= 4, `${children.length} processes run`);
        assert.equal(await gateway.stop(), 0);
        const left = () => children.filter((pid) => existsSync(`/proc/${pid}`));
        // Several are killed by the one that started them, and their servers a moment later.
        while (!gateway.isOne && left().length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
        assert.deepEqual(left(), []);
    }, 20_000);
} finally {
    await fast.stop('SIGKILL');
    await rm(dir, { recursive: true, force: true });
}
checks.end();
