// `trunkline record`, `diff` and `replay` with other projects' clients and servers, over stdio and HTTP: a tap changes
// nothing, a replay finds nothing, and a client that meets the recording in the server's place hears the same.
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert } from './check.mjs';
import { freePort, serve, start } from './http.mjs';
import { Taps } from './taps.mjs';

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
const taps = await Taps.begin(trunkline, 'record');
const file = (name) => taps.file(name);

// The everything server asks for roots some time after the handshake, if the client is still there.
const CHANCE = ['--ignore', 'the server, unasked:/*'];

await taps.server('time', TIME, [
    ['call', 'get_current_time', 'timezone=UTC'],
    ['call', 'convert_time', 'source_timezone=UTC', 'time=12:00', 'target_timezone=Asia/Tokyo'],
    ['list'],
]);
await taps.server('everything', ['node', EVERYTHING, 'stdio'], [
    ['call', 'get-sum', 'a=1', 'b=2'],
    ['call', 'trigger-long-running-operation', 'duration=1', 'steps=3'],
    ['call', 'trigger-elicitation-request', '--accept', '--answer', 'name=Ada', '--answer', 'check=true'],
    ['call', 'trigger-sampling-request', 'prompt=hi', 'maxTokens=10', '--answer', 'sample=ok'],
    ['call', 'get-tiny-image', '--json'],
    ['list'],
], ...CHANCE);
await taps.check('everything: a changed tool is the only difference', async () => {
    const before = await readFile(file('everything'), 'utf8');
    const words = 'Echoes back the input';
    assert.ok(before.includes(words), 'the tool `echo` is described');
    await writeFile(file('changed'), before.replaceAll(words, 'Repeats the input'));
    const changed = ['--', trunkline, 'replay', file('changed'), '--as-server'];
    const out = await taps.ours(['replay', file('everything'), ...CHANCE, ...changed], 1);
    assert.match(out, /^tool echo\n  \/description\n.*\n.*\n1 difference in /, out);
});
await taps.check('everything over HTTP is recorded, and said again', async () => {
    const port = await freePort();
    const env = { ...process.env, PORT: String(port) };
    const everything = await start('node', [EVERYTHING, 'streamableHttp'], /on port \d+/, env);
    const url = `http://127.0.0.1:${port}/mcp`;
    try {
        const tap = await start(trunkline, ['record', file('http'), url, '--listen', '127.0.0.1:0'], /use (http:\/\/\S+\/mcp);/);
        for (const call of [['call', 'get-sum', 'a=1', 'b=2'], ['call', 'trigger-long-running-operation', 'duration=1', 'steps=3']]) {
            await taps.ours([...call, tap.found[1]]);
        }
        assert.equal(await tap.stop(), 0);
        await taps.same(file('http'), [url], ...CHANCE);
        await taps.same(file('http'), ['--', trunkline, 'replay', file('http'), '--as-server'], ...CHANCE);
    } finally {
        await everything.stop('SIGKILL').catch(() => {});
    }
});
await taps.check('the demo over HTTP is played over HTTP', async () => {
    const demo = await serve(DEMO);
    const tap = await start(trunkline, ['record', file('demo'), String(demo.url), '--listen', '127.0.0.1:0'], /use (http:\/\/\S+\/mcp);/);
    const book = ['call', 'book', 'city=Rome', 'nights=2', '--accept', '--answer', 'name=Ada', '--answer', 'ok=true'];
    const heard = await taps.ours([...book, tap.found[1]]);
    assert.equal(await tap.stop(), 0);
    await demo.stop();
    const stage = await start(trunkline, ['replay', file('demo'), '--as-server', '--listen', '127.0.0.1:0'], /(http:\/\/\S+\/mcp)\./);
    assert.equal(await taps.ours([...book, stage.found[1]]), heard);
    await stage.stop('SIGKILL').catch(() => {});
});
await taps.client('ts1.mjs', 'node', here('ts1.mjs'));
await taps.client('ts2.mjs', 'node', here('ts2.mjs'));
await taps.clientOverHttp('ts1.mjs', 'node', here('ts1.mjs'));
await taps.clientOverHttp('ts2.mjs', 'node', here('ts2.mjs'));
await taps.end();
