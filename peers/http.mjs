// A server's command line into that server over HTTP, and what lies between it and a client: a log, and a wire to cut.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { assert, Inbox, within } from './check.mjs';

/** What a script is told: `[--http|--bridge] COMMAND [ARG…]`, the server's command line and how to reach it; or `--url URL`, where it is. */
export function told(script) {
    const words = process.argv.slice(2);
    const over = /^--(http|bridge|url)$/.exec(words[0])?.[1] ?? 'stdio';
    const line = over === 'stdio' ? words : words.slice(1);
    if (line.length === 0) {
        console.error(`usage: node ${script} [--http|--bridge] COMMAND [ARG…] | --url URL`);
        process.exit(2);
    }
    return { over, line };
}

/** What a script is told that needs our binary and the venv of the other projects. */
export function toldOurs(script) {
    const [trunkline] = process.argv.slice(2);
    const venv = process.env.TRUNKLINE_PEERS_VENV;
    if (trunkline === undefined || venv === undefined) {
        console.error(`usage: TRUNKLINE_PEERS_VENV=DIR node ${script} PATH-OF-TRUNKLINE; \`cargo xtask peers\` sets both.`);
        process.exit(2);
    }
    return { trunkline, venv };
}

/** Starts a program and waits for the line that says it listens; `found` is what the pattern caught of it. */
export async function start(command, args, pattern, env = process.env) {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    const gone = once(child, 'exit');
    const said = [];
    const listening = new Promise((resolve, reject) => {
        createInterface(child.stderr).on('line', (line) => {
            said.push(line);
            const found = pattern.exec(line);
            if (found !== null) resolve(found);
        });
        child.once('error', reject);
        child.once('exit', (code) => reject(new Error(`\`${command}\` ended with ${code}: ${said.join(' ')}`)));
    });
    let found;
    try {
        found = await within(20_000, listening);
    } catch (error) {
        child.kill('SIGKILL');
        throw error;
    }
    const stop = async (signal = 'SIGTERM') => {
        child.kill(signal);
        const [code] = await within(10_000, gone).catch((error) => {
            child.kill('SIGKILL');
            throw error;
        });
        return code;
    };
    return { found, stop, pid: child.pid };
}

/**
 * The gateway of a catalog in JSON; or three as one, behind a balancer, started by the program that `TRUNKLINE_STAGE` names.
 * Those end with their input.
 */
export async function startGateway(trunkline, config, state) {
    const stage = process.env.TRUNKLINE_STAGE;
    if (stage === undefined) {
        const words = ['serve', '--config', config, '--listen', '127.0.0.1:0', '--state', state];
        const gateway = await start(trunkline, words, /(http:\/\/\S+\/mcp)/);
        return { ...gateway, url: gateway.found[1], isOne: true };
    }
    const env = { ...process.env, TRUNKLINE_REPLICAS: '3' };
    const child = spawn(stage, ['stage', config], { stdio: ['pipe', 'pipe', 'inherit'], env });
    const gone = once(child, 'exit');
    const said = new Promise((resolve, reject) => {
        createInterface(child.stdout).on('line', (line) => {
            const found = /(http:\/\/\S+)/.exec(line);
            if (found !== null) resolve(`${found[1]}/mcp`);
        });
        gone.then(([code]) => reject(new Error(`\`${stage}\` ended with ${code}.`)), reject);
    });
    const url = await within(60_000, said);
    const stop = async () => {
        child.stdin.end();
        const [code] = await within(20_000, gone);
        return code;
    };
    return { url, isOne: false, stop, pid: child.pid };
}

/** Serves over HTTP what `COMMAND ARG…` serves over stdio. */
export async function serve([command, ...args], ...more) {
    const server = await start(command, [...args, '--http', '127.0.0.1:0', ...more], /(http:\/\/\S+)\/mcp/);
    const [, origin] = server.found;
    return {
        url: new URL('/mcp', origin),
        sse: new URL('/sse', origin),
        stop: async () => assert.equal(await server.stop(), 0, 'the server did not end well'),
    };
}

/** How to start the bridge `mcp-remote`, which speaks HTTP to a URL for whoever speaks stdio to it. */
export function bridge(url, ...more) {
    const script = fileURLToPath(new URL('node_modules/mcp-remote/dist/proxy.js', import.meta.url));
    // It keeps what it knows of servers in a folder, by default in the user's home.
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-peers-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    const env = { MCP_REMOTE_CONFIG_DIR: folder };
    return { command: 'node', args: [script, String(url), '--allow-http', '--silent', ...more], env };
}

/** A port that nobody listens at, below those that Linux gives to connections: none takes it before it is used. */
export async function freePort() {
    for (;;) {
        const port = 20_000 + Math.floor(Math.random() * 10_000);
        const server = createServer();
        const isFree = await new Promise((tell) => {
            server.once('listening', () => tell(true)).once('error', () => tell(false));
            server.listen(port, '127.0.0.1');
        });
        if (!isFree) continue;
        server.close();
        await once(server, 'close');
        return port;
    }
}

/** A `fetch` that notes each exchange that was answered: method, path, status, media type, session, and the id it resumed from. */
export function noting() {
    const log = new Inbox();
    const fetchNoting = async (url, init) => {
        const headers = new Headers(init?.headers);
        const entry = {
            method: init?.method ?? 'GET',
            path: new URL(url).pathname,
            session: headers.get('mcp-session-id'),
            resumed: headers.get('last-event-id'),
            body: typeof init?.body === 'string' ? init.body : undefined,
        };
        const response = await fetch(url, init);
        entry.status = response.status;
        entry.type = response.headers.get('content-type')?.split(';')[0] ?? null;
        log.push(entry);
        return response;
    };
    return { log, fetch: fetchNoting };
}

/** A TCP proxy whose connections can be cut; while it is `down` it lets nobody in. */
export class Wire {
    static async to(url) {
        const wire = new Wire();
        wire.pairs = new Set();
        wire.down = false;
        wire.server = createServer((near) => {
            if (wire.down) {
                near.destroy();
                return;
            }
            const far = connect(Number(url.port), url.hostname);
            const pair = [near, far];
            wire.pairs.add(pair);
            const end = () => {
                wire.pairs.delete(pair);
                for (const socket of pair) socket.destroy();
            };
            for (const socket of pair) socket.on('error', end).on('close', end);
            near.pipe(far);
            far.pipe(near);
        });
        wire.server.listen(0, '127.0.0.1');
        await once(wire.server, 'listening');
        wire.url = new URL(url);
        wire.url.port = String(wire.server.address().port);
        return wire;
    }

    /** A place that lets everybody in and never says a word. */
    static async toNobody() {
        const wire = new Wire();
        wire.pairs = new Set();
        wire.server = createServer((near) => wire.pairs.add([near.on('error', () => {}), near]));
        wire.server.listen(0, '127.0.0.1');
        await once(wire.server, 'listening');
        wire.url = new URL(`http://127.0.0.1:${wire.server.address().port}/mcp`);
        return wire;
    }

    /** Cuts every connection there is, on both sides; says how many. */
    cut() {
        const { size } = this.pairs;
        for (const [near, far] of this.pairs) {
            near.resetAndDestroy();
            far.resetAndDestroy();
        }
        return size;
    }

    close() {
        this.server.close();
        this.cut();
    }
}

/** What makes the npm clients come back at once, and often. */
export const PROMPTLY = {
    initialReconnectionDelay: 20, maxReconnectionDelay: 200, reconnectionDelayGrowFactor: 1.5, maxRetries: 20,
};
