// `trunkline` as a client of other projects' servers, over stdio and HTTP, and of its own demo, in every revision.
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert, Checks, REVISIONS, run as runProgram } from './check.mjs';
import { freePort, serve, start, Wire } from './http.mjs';

const overHttp = process.argv[2] === '--http';
const [trunkline] = process.argv.slice(overHttp ? 3 : 2);
if (trunkline === undefined) {
    console.error('usage: node cli.mjs [--http] PATH-OF-TRUNKLINE');
    process.exit(2);
}
const server = (name) => fileURLToPath(new URL(`node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url));
const EVERYTHING = ['node', server('server-everything')];
const venv = process.env.TRUNKLINE_PEERS_VENV;
if (venv === undefined || !existsSync(join(venv, 'bin/mcp-server-time'))) {
    console.error('TRUNKLINE_PEERS_VENV must name the venv that holds `mcp-server-time`; `cargo xtask peers` sets it.');
    process.exit(2);
}
const TIME = [join(venv, 'bin/mcp-server-time'), '--local-timezone', 'UTC'];
const DEMO = [trunkline, 'demo'];

/** Runs `trunkline ARGS… -- COMMAND…` or `trunkline ARGS… URL`. */
function run(args, server, ms = 20_000) {
    const words = Array.isArray(server) ? [...args, '--', ...server] : [...args, ...(server ? [String(server)] : [])];
    return runProgram(trunkline, words, ms);
}

/** A run that must end well; its standard output. */
async function good(args, command) {
    const { code, out, said } = await run(args, command);
    assert.equal(code, 0, said);
    assert.equal(out.includes('\u001b['), false, 'colours where there is no terminal');
    return out;
}

/** A run with `--json` that must end well; what the JSON says. */
async function json(args, command) {
    return JSON.parse(await good([...args, '--json'], command));
}

/** A run that must end with this code and say why. */
async function bad(code, says, args, command, ms) {
    const outcome = await run(args, command, ms);
    assert.equal(outcome.code, code, outcome.said);
    assert.match(outcome.err, says);
    return outcome;
}

const texts = (result) => result.content.map((block) => block.text);
const checks = new Checks('cli');
const check = (name, body) => checks.check(name, body, 60_000);

async function everything(over, server) {
    checks.prefix = `cli ${over} everything`;
    await check('lists tools', async () => {
        const out = await good(['list', 'tools'], server);
        for (const name of ['echo', 'get-sum', 'get-tiny-image']) assert.match(out, new RegExp(`\\b${name}\\b`));
        const { tools } = await json(['list', 'tools'], server);
        assert.ok(tools.some((tool) => tool.name === 'echo' && tool.inputSchema.type === 'object'));
    });
    await check('lists resources, templates and prompts', async () => {
        assert.match(await good(['list', 'resources'], server), /demo:\/\/resource\/static\/document\/features\.md/);
        assert.match(await good(['list', 'templates'], server), /demo:\/\/resource\/dynamic\/text\/\{resourceId\}/);
        assert.match(await good(['list', 'prompts'], server), /args-prompt/);
    });
    await check('lists everything at once', async () => {
        const out = await good(['list'], server);
        for (const word of ['get-sum', 'features.md', 'resourceId', 'args-prompt']) assert.ok(out.includes(word), word);
    });
    await check('calls with key=value', async () => {
        assert.match(await good(['call', 'get-sum', 'a=2', 'b=40'], server), /The sum of 2 and 40 is 42\./);
        assert.deepEqual(texts(await json(['call', 'echo', 'message=hello there'], server)), ['Echo: hello there']);
    });
    await check('calls with --args', async () => {
        const result = await json(['call', 'echo', '--args', '{"message":"☃"}'], server);
        assert.deepEqual(texts(result), ['Echo: ☃']);
    });
    await check('shows structured content and images', async () => {
        const weather = await json(['call', 'get-structured-content', 'location=Chicago'], server);
        assert.equal(typeof weather.structuredContent.temperature, 'number');
        const image = await json(['call', 'get-tiny-image'], server);
        assert.ok(image.content.some((block) => block.type === 'image' && block.mimeType === 'image/png'));
        await good(['call', 'get-tiny-image'], server);
    });
    await check('waits for a long call', async () => {
        const out = await good(['call', 'trigger-long-running-operation', 'duration=1', 'steps=4'], server);
        assert.match(out, /Long running operation completed/);
    });
    await check('reads text and bytes', async () => {
        const uri = 'demo://resource/dynamic/text/1';
        const { contents } = await json(['read', uri], server);
        assert.equal(contents[0].uri, uri);
        assert.match(contents[0].text, /Resource 1/);
        // The text has the time in it.
        assert.match(await good(['read', uri], server), /Resource 1/);
        const blob = await json(['read', 'demo://resource/dynamic/blob/2'], server);
        assert.match(Buffer.from(blob.contents[0].blob, 'base64').toString(), /Resource 2/);
    });
    await check('gets prompts', async () => {
        const { messages } = await json(['prompt', 'args-prompt', 'city=Paris'], server);
        assert.match(messages[0].content.text, /Paris/);
        assert.match(await good(['prompt', 'simple-prompt'], server), /simple prompt/);
    });
    await check('completes', async () => {
        assert.match(await good(['complete', 'prompt:completable-prompt', 'department', 'E'], server), /Engineering/);
        const template = 'demo://resource/dynamic/text/{resourceId}';
        const { completion } = await json(['complete', template, 'resourceId', '1'], server);
        assert.deepEqual(completion.values, ['1']);
    });
    await check('pings', async () => {
        assert.match(await good(['ping'], server), /\bms\b|µs/);
    });
    for (const revision of REVISIONS.slice(0, 4)) {
        await check(`speaks ${revision}`, async () => {
            const result = await json(['call', 'echo', 'message=hi', '--protocol', revision], server);
            assert.deepEqual(texts(result), ['Echo: hi']);
        });
    }
    await check('a revision the server lacks is a failed handshake', () =>
        bad(3, over === 'stdio' ? /2026-07-28/ : /handshake failed/, ['ping', '--protocol', '2026-07-28'], server));
    await check('arguments that do not fit are the tool\'s error', () =>
        run(['call', 'get-sum', 'a:="two"', 'b=3'], server).then(({ code, said }) => assert.equal(code, 1, said)));
    await check('an unknown resource is the server\'s error', () => bad(4, /-32602/, ['read', 'demo://nothing'], server));
    await check('an unknown prompt is the server\'s error', () => bad(4, /-32602/, ['prompt', 'nothing'], server));
}

async function filesystem(folder) {
    checks.prefix = 'cli stdio filesystem';
    const command = ['node', server('server-filesystem'), folder];
    const path = (name) => join(folder, name);
    await writeFile(path('old.txt'), 'old text\n');
    await check('lists its tools and nothing else', async () => {
        const out = await good(['list'], command);
        for (const name of ['read_text_file', 'write_file', 'list_directory']) assert.ok(out.includes(name), name);
    });
    await check('lists a directory', async () => {
        assert.match(await good(['call', 'list_directory', `path=${folder}`], command), /\[FILE\] old\.txt/);
    });
    await check('reads a file', async () => {
        const result = await json(['call', 'read_text_file', `path=${path('old.txt')}`], command);
        assert.deepEqual(texts(result), ['old text\n']);
    });
    await check('writes a file', async () => {
        const args = JSON.stringify({ path: path('new.txt'), content: 'new = "text"\n☃' });
        await good(['call', 'write_file', '--args', args], command);
        assert.equal(await readFile(path('new.txt'), 'utf8'), 'new = "text"\n☃');
    });
    await check('makes a directory and finds it', async () => {
        await good(['call', 'create_directory', `path=${path('sub')}`], command);
        assert.match(await good(['call', 'list_directory', `path=${folder}`], command), /\[DIR\] sub/);
    });
    await check('a file that is not there is the tool\'s error', async () => {
        const { code, out, err, said } = await run(['call', 'read_text_file', `path=${path('absent')}`], command);
        assert.equal(code, 1, said);
        assert.match(out + err, /ENOENT|no such file/i);
    });
    await check('a file outside is the tool\'s error', async () => {
        const { code, said } = await run(['call', 'read_text_file', 'path=/etc/hostname'], command);
        assert.equal(code, 1, said);
    });
    await check('no server survives its client', async () => {
        assert.deepEqual(await processesWith(folder), []);
    });
}

async function time() {
    checks.prefix = 'cli stdio time';
    await check('lists its tools', async () => {
        assert.match(await good(['list', 'tools'], TIME), /get_current_time[^]*convert_time/);
    });
    await check('tells the time', async () => {
        const result = await json(['call', 'get_current_time', 'timezone=UTC'], TIME);
        const [now] = texts(result).map((text) => JSON.parse(text));
        assert.equal(now.timezone, 'UTC');
        assert.ok(Math.abs(Date.parse(now.datetime) - Date.now()) < 60_000, now.datetime);
    });
    await check('converts a time', async () => {
        const args = ['source_timezone=UTC', 'time=12:00', 'target_timezone=Asia/Tokyo'];
        assert.match(await good(['call', 'convert_time', ...args], TIME), /21:00/);
    });
    await check('an unknown zone is the tool\'s error', async () => {
        const { code, said } = await run(['call', 'get_current_time', 'timezone=Mars/Olympus'], TIME);
        assert.equal(code, 1, said);
    });
    for (const revision of REVISIONS) {
        await check(`speaks ${revision}`, async () => {
            const result = await json(['call', 'get_current_time', 'timezone=UTC', '--protocol', revision], TIME);
            assert.equal(JSON.parse(texts(result)[0]).timezone, 'UTC');
        });
    }
}

async function demo(over, server) {
    checks.prefix = `cli ${over} demo`;
    for (const revision of REVISIONS) {
        const pinned = ['--protocol', revision];
        await check(`every command in ${revision}`, async () => {
            assert.match(await good(['list', ...pinned], server), /echo[^]*demo:\/\/readme[^]*review/);
            const sum = await json(['call', 'sum', 'a=1', 'b=2', ...pinned], server);
            assert.deepEqual(JSON.parse(sum.content[0].text), { sum: 3 });
            const { contents } = await json(['read', 'demo://greeting/Ada', ...pinned], server);
            assert.equal(contents[0].text, 'Hello, Ada!');
            const { messages } = await json(['prompt', 'review', 'code=x', ...pinned], server);
            assert.equal(messages.length, 1);
            const { completion } = await json(['complete', 'prompt:review', 'language', 'ru', ...pinned], server);
            assert.deepEqual(completion.values.sort(), ['ruby', 'rust']);
            await good(['ping', ...pinned], server);
        });
    }
    await check('a tool\'s error is exit 1', async () => {
        const { code, out, err } = await run(['call', 'fail', 'message=no luck'], server);
        assert.equal(code, 1);
        assert.match(out + err, /no luck/);
    });
    await check('a panic is exit 1, and its text stays inside', async () => {
        const { code, out, err } = await run(['call', 'boom'], server);
        assert.equal(code, 1);
        assert.match(out + err, /`boom` failed unexpectedly/);
    });
    await check('a call that never ends is exit 5', () =>
        bad(5, /\S/, ['call', 'sleep', 'ms=60000', '--timeout', '1'], server, 15_000));
}

async function misuse() {
    checks.prefix = 'cli stdio misuse';
    await check('no command is usage', () => bad(2, /--/, ['list']));
    await check('an unknown option is usage', () => bad(2, /--nonsense/, ['list', '--nonsense'], DEMO));
    await check('an unknown revision is usage', () => bad(2, /1999-01-01/, ['list', '--protocol', '1999-01-01'], DEMO));
    await check('arguments that are not JSON are usage', () => bad(2, /JSON/i, ['call', 'echo', '--args', '{'], DEMO));
    await check('a program that is not there did not start', () =>
        bad(3, /no-such-program/, ['ping'], ['no-such-program']));
    await check('a program that leaves at once says its last words', () =>
        bad(3, /cannot find the map/, ['ping'], ['sh', '-c', 'echo cannot find the map >&2; exit 7']));
    await check('a program that is no server times out, and is gone', async () => {
        const unlike = `600.${process.pid}`;
        await bad(5, /\S/, ['ping', '--timeout', '1'], ['sleep', unlike], 15_000);
        assert.deepEqual(await processesWith(unlike), []);
    });
    await check('a program that talks nonsense is refused', async () => {
        const { code, said } = await run(['ping', '--timeout', '3'], ['sh', '-c', 'while echo nonsense; do sleep 0.1; done'], 15_000);
        assert.ok(code === 3 || code === 5, said);
    });
}

/** The processes whose command line names a text, by /proc. */
async function processesWith(text) {
    const found = [];
    for (const id of await readdir('/proc')) {
        if (!/^\d+$/.test(id) || Number(id) === process.pid) continue;
        const line = await readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '');
        if (line.includes(text)) found.push(`${id}: ${line.replaceAll('\0', ' ')}`);
    }
    return found;
}

async function asking(over, server, revisions) {
    checks.prefix = `cli ${over} asking`;
    for (const revision of revisions) {
        const pinned = ['--protocol', revision];
        await check(`answers, progress and logs in ${revision}`, async () => {
            if (revision >= '2025-06-18') {
                assert.match(await good(['call', 'greet', '--answer', 'name=Ada', ...pinned], server), /Hello, Ada!/);
                const booking = ['call', 'book', 'city=Paris', 'nights=2', '--answer', 'ok=true', '--answer', 'name=Ada'];
                assert.equal((await json([...booking, ...pinned], server)).structuredContent.total, 198);
            }
            assert.match(await good(['call', 'progress', 'steps=3', ...pinned], server), /done/);
            const { err, said } = await run(['call', 'log', 'level=error', 'message=loud', '--log', 'warning', ...pinned], server);
            assert.match(err, /loud/, said);
        });
    }
}

async function fast(over, server) {
    checks.prefix = `cli ${over} fastmcp`;
    await check('lists everything', async () => {
        const out = await good(['list'], server);
        for (const word of ['add', 'fast://readme', 'fast://square/{number}', 'review']) assert.ok(out.includes(word), word);
    });
    await check('calls', async () => {
        assert.deepEqual((await json(['call', 'add', 'a=2', 'b=40'], server)).structuredContent, { sum: 42 });
        assert.deepEqual(texts(await json(['call', 'echo', 'text=☃'], server)), ['☃']);
        assert.match(await good(['call', 'count', 'steps=20'], server), /done/);
    });
    await check('a tool\'s error is exit 1', async () => {
        const { code, out, err, said } = await run(['call', 'fail', 'message=no luck'], server);
        assert.equal(code, 1, said);
        assert.match(out + err, /no luck/);
    });
    await check('reads, prompts and pings', async () => {
        assert.match(await good(['read', 'fast://readme'], server), /Made with FastMCP/);
        assert.equal((await json(['read', 'fast://square/7'], server)).contents[0].text, '49');
        assert.match(await good(['prompt', 'review', 'code=fn main'], server), /Please review: fn main/);
        await good(['ping'], server);
    });
    await check('an unknown prompt is the server\'s error', () => bad(4, /-32602/, ['prompt', 'nothing'], server));
    const revisions = over === 'sse' ? REVISIONS.slice(0, 4) : REVISIONS;
    for (const revision of revisions) {
        await check(`speaks ${revision}`, async () => {
            const pinned = ['--protocol', revision];
            assert.deepEqual(texts(await json(['call', 'echo', 'text=hi', ...pinned], server)), ['hi']);
            // Since 2026-07-28 its own way to ask is gone.
            if (revision < '2025-06-18' || revision > '2025-11-25') return;
            assert.match(await good(['call', 'greet', '--answer', 'value=Ada', ...pinned], server), /Hello, Ada!/);
        });
    }
}

async function unreachable() {
    checks.prefix = 'cli http misuse';
    const url = (port, path = '/mcp') => `http://127.0.0.1:${port}${path}`;
    const nobody = await freePort();
    await check('a server that is not there cannot be reached', () =>
        bad(3, new RegExp(`127\\.0\\.0\\.1:${nobody}`), ['ping'], url(nobody)));
    const demo = await serve(DEMO);
    await check('a path where there is no server is a failed handshake', () =>
        bad(3, /nothing at this path/, ['ping'], url(demo.url.port, '/nothing')));
    await check('a header that is none is usage', () => bad(2, /header/i, ['ping', '--header', 'nonsense'], demo.url));
    const silent = await Wire.toNobody();
    await check('a server that says nothing times out', () => bad(5, /\S/, ['ping', '--timeout', '1'], silent.url, 15_000));
    silent.close();
    await demo.stop();
}

/** Runs `body` against a server over HTTP, which it starts and stops. */
async function against(starting, body) {
    const server = await starting;
    try {
        await body(server);
    } finally {
        await server.stop();
    }
}

async function everythingAt(kind, path) {
    const port = await freePort();
    const env = { ...process.env, PORT: String(port) };
    const { stop } = await start('node', [server('server-everything'), kind], /on port \d+/, env);
    return { url: `http://127.0.0.1:${port}${path}`, stop: () => stop('SIGKILL') };
}

async function fastAt(kind, path) {
    const script = fileURLToPath(new URL('fast_server.py', import.meta.url));
    const { found, stop } = await start(join(venv, 'bin/python'), [script, kind], /http:\/\/\S+/);
    return { url: `${found[0]}${path}`, stop };
}

if (overHttp) {
    await against(serve(DEMO), async ({ url, sse }) => {
        await demo('http', url);
        await asking('http', url, REVISIONS);
        await asking('sse', sse, REVISIONS.slice(0, 4));
    });
    await unreachable();
    await against(everythingAt('streamableHttp', '/mcp'), ({ url }) => everything('http', url));
    await against(everythingAt('sse', '/sse'), ({ url }) => everything('sse', url));
    await against(fastAt('http', '/mcp'), ({ url }) => fast('http', url));
    await against(fastAt('sse', '/sse'), ({ url }) => fast('sse', url));
} else {
    const folder = await mkdtemp(join(tmpdir(), 'trunkline-peers-'));
    try {
        await demo('stdio', DEMO);
        await asking('stdio', DEMO, REVISIONS);
        await misuse();
        await everything('stdio', EVERYTHING);
        await filesystem(folder);
        await time();
    } finally {
        await rm(folder, { recursive: true });
    }
}
checks.end();
