// Recordings of the PyPI clients and of our own, over stdio and HTTP, each in every era that it speaks, questions included:
// the same run against the recording has the same answers. And a server with one changed tool differs from its recording in that tool alone.
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert, REVISIONS } from './check.mjs';
import { serve, start } from './http.mjs';
import { Taps } from './taps.mjs';

const [trunkline] = process.argv.slice(2);
const python = join(process.env.TRUNKLINE_PEERS_VENV ?? '', 'bin/python');
if (trunkline === undefined || !existsSync(python)) {
    console.error('usage: TRUNKLINE_PEERS_VENV=VENV node replay.mjs PATH-OF-TRUNKLINE; `cargo xtask peers` sets it.');
    process.exit(2);
}
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const taps = await Taps.begin(trunkline, 'replay');

/** What our client asks the demo in a revision: with questions, where it has them. */
function calls(revision) {
    const asking = revision < '2025-06-18' ? [] : [
        ['call', 'greet', '--accept', '--answer', 'name=Ada'],
        ['call', 'book', 'city=Rome', 'nights=2', '--accept', '--answer', 'name=Ada', '--answer', 'ok=true'],
    ];
    const all = [['call', 'sum', 'a=1', 'b=2'], ...asking, ['call', 'sample', 'prompt=hi', '--answer', 'sample=ok'], ['list']];
    return all.map((call) => [...call, '--protocol', revision]);
}

for (const revision of REVISIONS) await taps.server(`ours ${revision}`, [trunkline, 'demo'], calls(revision));

await taps.check('ours over HTTP, both eras', async () => {
    const demo = await serve([trunkline, 'demo']);
    const path = taps.file('http');
    const tap = await start(trunkline, ['record', path, String(demo.url), '--listen', '127.0.0.1:0'], /use (http:\/\/\S+\/mcp);/);
    const both = ['2025-11-25', '2026-07-28'].flatMap(calls);
    const heard = [];
    for (const call of both) heard.push(await taps.ours([...call, tap.found[1]]));
    assert.equal(await tap.stop(), 0);
    await taps.same(path, [String(demo.url)]);
    await demo.stop();
    const played = await start(trunkline, ['replay', path, '--as-server', '--listen', '127.0.0.1:0'], /(http:\/\/\S+\/mcp)\./);
    try {
        for (const [at, call] of both.entries()) {
            assert.equal(await taps.ours([...call, played.found[1]]), heard[at], call.join(' '));
        }
    } finally {
        await played.stop('SIGKILL').catch(() => {});
    }
});

await taps.check('a server with one changed tool differs in that tool alone', async () => {
    const words = taps.file('description');
    const changing = ['node', here('console/changing_server.mjs'), words];
    const path = taps.file('changing');
    await writeFile(words, 'Takes a note.');
    for (const call of [['call', 'note'], ['list']]) {
        await taps.ours([...call, '--', trunkline, 'record', path, '--append', '--', ...changing]);
    }
    await taps.same(path, ['--', ...changing]);
    await writeFile(words, 'Takes a note, and sends it to everybody.');
    const out = await taps.ours(['replay', path, '--', ...changing], 1);
    const difference = ['tool note', '  /description', '    - "Takes a note."', '    + "Takes a note, and sends it to everybody."'];
    assert.ok(out.startsWith(`${difference.join('\n')}\n1 difference in `), out);
});

await taps.client('py.py', python, here('py.py'));
for (const script of ['py.py', 'fast.py']) await taps.clientOverHttp(script, python, here(script));
await taps.end();
