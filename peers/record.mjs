// `trunkline record`, `diff` and `replay` with other projects' clients and servers: a tap changes nothing, a replay finds
// nothing, and a client that meets the recording in the server's place hears the same.
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert, Checks, run as runProgram } from './check.mjs';
import { freePort, serve, start } from './http.mjs';

const [trunkline] = process.argv.slice(2);
const venv = process.env.TRUNKLINE_PEERS_VENV;
if (trunkline === undefined || venv === undefined || !existsSync(join(venv, 'bin/mcp-server-time'))) {
    console.error('usage: TRUNKLINE_PEERS_VENV=VENV node record.mjs PATH-OF-TRUNKLINE; `cargo xtask peers` sets it.');
    process.exit(2);
}
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const EVERYTHING = here('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const TIME = [join(venv, 'bin/mcp-server-time'), '--local-timezone', 'UTC'];
const DEMO = [trunkline, 'demo'];
const folder = await mkdtemp(join(tmpdir(), 'trunkline-record-'));
const file = (name) => join(folder, `${name}.jsonl`);

const run = (command, args) => runProgram(command, args, 120_000);

/** A run of our binary that must end with this code; its standard output. */
async function ours(args, code = 0) {
    const outcome = await run(trunkline, args);
    assert.equal(outcome.code, code, outcome.said);
    return outcome.out;
}

// The everything server asks for roots some time after the handshake, if the client is still there.
const CHANCE = ['--ignore', 'the server, unasked:/*'];
const same = async (path, server, ...options) => {
    assert.match(await ours(['replay', path, ...options, ...server]), /^No difference in /);
};
const checks = new Checks('record');
const check = (name, body) => checks.check(name, body, 180_000);

/** Calls through a tap, then the same calls with the recording in the server's place. */
async function server(name, command, calls, ...options) {
    const heard = [];
    await check(`${name}: calls are recorded`, async () => {
        for (const call of calls) {
            heard.push(await ours([...call, '--', trunkline, 'record', file(name), '--append', '--', ...command]));
        }
    });
    await check(`${name}: said again, the answers are the same`, () => same(file(name), ['--', ...command], ...options));
    await check(`${name}: the recording answers as the server did`, async () => {
        for (const [at, call] of calls.entries()) {
            const again = await ours([...call, '--', trunkline, 'replay', file(name), '--as-server']);
            assert.equal(again, heard[at], call.join(' '));
        }
    });
}

/** The whole conversation of an npm client, through taps that each write a file of their own. */
async function client(script) {
    const inside = join(folder, script);
    await run('mkdir', [inside]);
    const tap = ['sh', '-c', 'exec "$0" record "$1/$$.jsonl" -- "$0" demo', trunkline, inside];
    await check(`${script} talks to the demo through a tap`, async () => {
        const { code, said } = await run('node', [here(script), ...tap]);
        assert.equal(code, 0, said);
    });
    const all = file(script);
    await check(`${script}: what it said, said again`, async () => {
        const names = (await readdir(inside)).filter((name) => name.endsWith('.jsonl'));
        assert.ok(names.length >= 4, `${names.length} recordings`);
        for (const name of names) await same(join(inside, name), ['--', ...DEMO]);
        const texts = await Promise.all(names.map((name) => readFile(join(inside, name), 'utf8')));
        await writeFile(all, texts.join(''));
    });
    await check(`${script} talks to the recording of the demo`, async () => {
        const { code, said } = await run('node', [here(script), trunkline, 'replay', all, '--as-server']);
        assert.equal(code, 0, said);
    });
}

await server('time', TIME, [
    ['call', 'get_current_time', 'timezone=UTC'],
    ['call', 'convert_time', 'source_timezone=UTC', 'time=12:00', 'target_timezone=Asia/Tokyo'],
    ['list'],
]);
await server('everything', ['node', EVERYTHING, 'stdio'], [
    ['call', 'get-sum', 'a=1', 'b=2'],
    ['call', 'trigger-long-running-operation', 'duration=1', 'steps=3'],
    ['call', 'trigger-elicitation-request', '--accept', '--answer', 'name=Ada', '--answer', 'check=true'],
    ['call', 'trigger-sampling-request', 'prompt=hi', 'maxTokens=10', '--answer', 'sample=ok'],
    ['call', 'get-tiny-image', '--json'],
    ['list'],
], ...CHANCE);
await check('everything: a changed tool is the only difference', async () => {
    const before = await readFile(file('everything'), 'utf8');
    const words = 'Echoes back the input';
    assert.ok(before.includes(words), 'the tool `echo` is described');
    await writeFile(file('changed'), before.replaceAll(words, 'Repeats the input'));
    const changed = ['--', trunkline, 'replay', file('changed'), '--as-server'];
    const out = await ours(['replay', file('everything'), ...CHANCE, ...changed], 1);
    assert.match(out, /^tool echo\n  \/description\n.*\n.*\n1 difference in /, out);
});
await check('everything over HTTP is recorded, and said again', async () => {
    const port = await freePort();
    const env = { ...process.env, PORT: String(port) };
    const everything = await start('node', [EVERYTHING, 'streamableHttp'], /on port \d+/, env);
    const url = `http://127.0.0.1:${port}/mcp`;
    try {
        const tap = await start(trunkline, ['record', file('http'), url, '--listen', '127.0.0.1:0'], /use (http:\/\/\S+\/mcp);/);
        for (const call of [['call', 'get-sum', 'a=1', 'b=2'], ['call', 'trigger-long-running-operation', 'duration=1', 'steps=3']]) {
            await ours([...call, tap.found[1]]);
        }
        assert.equal(await tap.stop(), 0);
        await same(file('http'), [url], ...CHANCE);
        await same(file('http'), ['--', trunkline, 'replay', file('http'), '--as-server'], ...CHANCE);
    } finally {
        await everything.stop('SIGKILL').catch(() => {});
    }
});
await check('the demo over HTTP is played over HTTP', async () => {
    const demo = await serve(DEMO);
    const tap = await start(trunkline, ['record', file('demo'), String(demo.url), '--listen', '127.0.0.1:0'], /use (http:\/\/\S+\/mcp);/);
    const book = ['call', 'book', 'city=Rome', 'nights=2', '--accept', '--answer', 'name=Ada', '--answer', 'ok=true'];
    const heard = await ours([...book, tap.found[1]]);
    assert.equal(await tap.stop(), 0);
    await demo.stop();
    const stage = await start(trunkline, ['replay', file('demo'), '--as-server', '--listen', '127.0.0.1:0'], /(http:\/\/\S+\/mcp)\./);
    assert.equal(await ours([...book, stage.found[1]]), heard);
    await stage.stop('SIGKILL').catch(() => {});
});
await client('ts1.mjs');
await client('ts2.mjs');
await rm(folder, { recursive: true });
checks.end();
