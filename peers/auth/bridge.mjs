// The npm bridge mcp-remote logs in to a protected server for a stdio client that knows nothing of it: `(URL | COMMAND ARG…)`.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { assert, Checks, within } from '../check.mjs';
import { bridge } from '../http.mjs';
import { askedWell, isChallenged, MODERN, NEWEST_LEGACY, protectedServer, works } from './login.mjs';

const line = process.argv.slice(2);
if (line.length === 0) {
    console.error('usage: node auth/bridge.mjs (URL | COMMAND [ARG…])');
    process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'trunkline-peers-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** A browser that the bridge finds by `BROWSER`: it notes what it is to open, and does. */
const opened = join(folder, 'opened');
const browser = join(folder, 'browser');
const script = fileURLToPath(new URL('browser.mjs', import.meta.url));
writeFileSync(opened, '');
writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$1" >>'${opened}'\nexec '${process.execPath}' '${script}' "$1"\n`, { mode: 0o700 });
const visited = () => readFileSync(opened, 'utf8').split('\n').filter((url) => url !== '');

const checks = new Checks('auth bridge');
const check = (name, body) => checks.check(name, body, 30_000);

async function connect({ command, args, env }, revision) {
    const options = revision === MODERN ? { versionNegotiation: { mode: 'auto' } } : { supportedProtocolVersions: [revision] };
    const client = new Client({ name: 'peer-bridge', version: '1.0.0' }, options);
    await within(25_000, client.connect(new StdioClientTransport({ command, args, env: { ...env, BROWSER: browser } })));
    return client;
}

const server = await protectedServer(line);
for (const revision of [NEWEST_LEGACY, MODERN]) {
    checks.prefix = `auth bridge ${revision}`;
    const proxy = bridge(server.url);
    const before = visited().length;
    let client;
    await check('opens the browser, logs in and connects', async () => {
        client = await connect(proxy, revision);
        assert.equal(visited().length, before + 1);
        askedWell(new URL(visited().at(-1)), await isChallenged(server.url));
    });
    if (client === undefined) continue;
    await check('lists and calls', () => works(client));
    await check('closes', () => client.close());
    await check('comes back with what it kept', async () => {
        const again = await connect(proxy, revision);
        await works(again);
        await again.close();
        assert.equal(visited().length, before + 1, 'the browser was opened again');
    });
}
checks.prefix = 'auth bridge';
await check('the server ends when it is told', () => server.stop());
checks.end();
