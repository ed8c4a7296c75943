// The npm clients with open sessions at a gateway that is told to stop, to read its catalog anew, or killed, and started
// again: they go on by themselves, within two seconds.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { Checks, assert, within } from './check.mjs';

const [trunkline] = process.argv.slice(2);
if (trunkline === undefined) {
    console.error('usage: node restart.mjs TRUNKLINE');
    process.exit(2);
}

/** A gateway with the demo, at a port that stays the same. */
class Gateway {
    port = 0;

    async start(dir) {
        const words = ['serve', '--listen', `127.0.0.1:${this.port}`, '--state', join(dir, 'state')];
        const env = { ...process.env, XDG_CONFIG_HOME: dir };
        this.process = spawn(trunkline, words, { cwd: dir, env, stdio: ['ignore', 'ignore', 'pipe'] });
        this.exited = once(this.process, 'exit');
        let said = '';
        const found = new Promise((resolve) => {
            this.process.stderr.on('data', (data) => {
                said += data;
                const at = said.match(/http:\/\/127\.0\.0\.1:(\d+)\/mcp/);
                if (at !== null) resolve(at[1]);
            });
        });
        this.port = await within(20_000, Promise.race([found, this.exited.then(() => Promise.reject(new Error(said)))]));
    }

    /** Sends a signal; one that ends it is followed by a start. */
    async signal(name, dir) {
        this.process.kill(name);
        if (name === 'SIGHUP') return;
        await within(20_000, this.exited);
        await this.start(dir);
    }
}

async function connect(sdk, era, port) {
    const options = sdk === 'ts2' && era === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {};
    const client = new (sdk === 'ts1' ? Client1 : Client2)({ name: 'restart', version: '1.0.0' }, { capabilities: {}, ...options });
    // A stream that breaks off is no news here.
    client.onerror = () => {};
    const transport = new (sdk === 'ts1' ? Http1 : Http2)(new URL(`http://127.0.0.1:${port}/mcp`));
    await within(20_000, client.connect(transport));
    return client;
}

const sum = async (client) => (await client.callTool({ name: 'demo.sum', arguments: { a: 2, b: 3 } })).content[0].text;

const checks = new Checks('restart');
const dir = await mkdtemp(join(tmpdir(), 'trunkline-restart-'));
const gateway = new Gateway();
try {
    await gateway.start(dir);
    for (const [sdk, era] of [['ts1', 'legacy'], ['ts2', 'legacy'], ['ts2', 'auto']]) {
        for (const name of ['SIGTERM', 'SIGHUP', 'SIGKILL']) {
            checks.prefix = `restart ${sdk} ${era} ${name}`;
            await checks.check('goes on within two seconds', async () => {
                const client = await connect(sdk, era, gateway.port);
                const before = await sum(client);
                await gateway.signal(name, dir);
                assert.equal(await within(2_000, sum(client)), before);
                await client.close();
            }, 60_000);
        }
    }
} finally {
    gateway.process?.kill('SIGKILL');
    await gateway.exited;
    await rm(dir, { recursive: true, force: true });
}
checks.end();
