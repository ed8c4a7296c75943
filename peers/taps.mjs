// Conversations through `trunkline record`, and the same with the recording in the place of either end.
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert, Checks, run } from './check.mjs';
import { serve, start } from './http.mjs';
import { HttpTap, inBodies } from './seen/taps.mjs';

export class Taps {
    static async begin(trunkline, name) {
        const taps = new Taps();
        taps.trunkline = trunkline;
        taps.folder = await mkdtemp(join(tmpdir(), 'trunkline-record-'));
        taps.checks = new Checks(name);
        return taps;
    }

    file(name) {
        return join(this.folder, `${name}.jsonl`);
    }

    check(name, body) {
        return this.checks.check(name, body, 180_000);
    }

    /** A run of our binary that must end with this code; its standard output. */
    async ours(args, code = 0) {
        const outcome = await run(this.trunkline, args, 120_000);
        assert.equal(outcome.code, code, outcome.said);
        return outcome.out;
    }

    /** Says again to a server what a recording has; nothing may differ. */
    async same(path, server, ...options) {
        assert.match(await this.ours(['replay', path, ...options, ...server]), /^No difference in /);
    }

    /** Calls through a tap, what is said again to the server, and the same calls with the recording in its place. */
    async server(name, command, calls, ...options) {
        const heard = [];
        const { trunkline } = this;
        const path = this.file(name);
        await this.check(`${name}: calls are recorded`, async () => {
            for (const call of calls) {
                heard.push(await this.ours([...call, '--', trunkline, 'record', path, '--append', '--', ...command]));
            }
        });
        await this.check(`${name}: said again, the answers are the same`, () => this.same(path, ['--', ...command], ...options));
        await this.check(`${name}: the recording answers as the server did`, async () => {
            for (const [at, call] of calls.entries()) {
                const again = await this.ours([...call, '--', trunkline, 'replay', path, '--as-server']);
                assert.equal(again, heard[at], call.join(' '));
            }
        });
    }

    /** The whole conversation of a client with the demo, through taps that each write a file of their own. */
    async client(name, program, script) {
        const { trunkline } = this;
        const inside = join(this.folder, name);
        await mkdir(inside);
        const tap = ['sh', '-c', 'exec "$0" record "$1/$$.jsonl" -- "$0" demo', trunkline, inside];
        await this.check(`${name} talks to the demo through a tap`, async () => {
            const { code, said } = await run(program, [script, ...tap], 120_000);
            assert.equal(code, 0, said);
        });
        const all = this.file(name);
        await this.check(`${name}: what it said, said again`, async () => {
            const names = (await readdir(inside)).filter((it) => it.endsWith('.jsonl'));
            assert.ok(names.length >= 4, `${names.length} recordings`);
            for (const it of names) await this.same(join(inside, it), ['--', trunkline, 'demo']);
            const texts = await Promise.all(names.map((it) => readFile(join(inside, it), 'utf8')));
            await writeFile(all, texts.join(''));
        });
        await this.check(`${name} talks to the recording of the demo`, async () => {
            const { code, said } = await run(program, [script, trunkline, 'replay', all, '--as-server'], 120_000);
            assert.equal(code, 0, said);
        });
    }

    /** The same over HTTP, at a URL: what it asks the recording, and what it hears, is what it asked and heard before. */
    async clientOverHttp(name, program, script) {
        const { trunkline } = this;
        const path = this.file(`${name} over HTTP`);
        let before;
        const demo = await serve([trunkline, 'demo']);
        await this.check(`${name} talks to the demo over HTTP through a tap`, async () => {
            const words = ['record', path, String(demo.url), '--listen', '127.0.0.1:0'];
            const tap = await start(trunkline, words, /use (http:\/\/\S+\/mcp);/);
            try {
                before = await overheard(program, script, tap.found[1]);
            } finally {
                assert.equal(await tap.stop(), 0);
            }
        });
        await this.check(`${name}: what it said over HTTP, said again`, () => this.same(path, [String(demo.url)]));
        await demo.stop();
        await this.check(`${name} talks to the recording over HTTP, and hears the same`, async () => {
            const words = ['replay', path, '--as-server', '--listen', '127.0.0.1:0'];
            const stage = await start(trunkline, words, /(http:\/\/\S+\/mcp)\./);
            try {
                const now = await overheard(program, script, stage.found[1]);
                assert.ok(now.length > 200, `${now.length} requests were answered`);
                assert.deepEqual(now, before);
            } finally {
                await stage.stop('SIGKILL').catch(() => {});
            }
        });
    }

    async end() {
        await rm(this.folder, { recursive: true });
        this.checks.end();
    }
}

/** Runs a client at a URL: each of its requests that was answered, with all that came in the response, as a sorted list of texts. */
async function overheard(program, script, url) {
    // It shares nothing with the recorder.
    const wire = await HttpTap.to(url);
    try {
        const { code, said } = await run(program, [script, '--url', String(wire.url)], 120_000);
        assert.equal(code, 0, said);
        return wire.exchanges.flatMap(answered).sort();
    } finally {
        wire.close();
    }
}

function answered({ request, response }) {
    const [asked] = inBodies([request]);
    const heard = response === null ? [] : inBodies([response]);
    // How much a call has said when it is cancelled is chance.
    if (!heard.some((it) => it.id === asked?.id && it.method === undefined)) return [];
    // Where a client asks the same in two runs, the states that the server made up are all that tells its answers apart.
    return [JSON.stringify([asked, ...heard], (name, value) => (name === 'requestState' ? '' : value))];
}
