// `trunkline` logs in to servers of other projects, and to one of ours that trusts another project's authorization server:
// `fastmcp|oidc PATH-OF-TRUNKLINE`.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert, Checks } from '../check.mjs';
import { start } from '../http.mjs';
import { visit } from './browser.mjs';

const [which, trunkline] = process.argv.slice(2);
if (!['fastmcp', 'oidc'].includes(which) || trunkline === undefined) {
    console.error('usage: node auth/cli.mjs fastmcp|oidc PATH-OF-TRUNKLINE');
    process.exit(2);
}
const python = join(process.env.TRUNKLINE_PEERS_VENV ?? '', 'bin/python');
if (which === 'fastmcp' && !existsSync(python)) {
    console.error('TRUNKLINE_PEERS_VENV must name the venv that holds `fastmcp`; `cargo xtask peers` sets it.');
    process.exit(2);
}

/** Somebody who never used `trunkline` before, on a machine without a keyring. */
class User {
    constructor() {
        this.home = mkdtempSync(join(tmpdir(), 'trunkline-peers-'));
        process.on('exit', () => rmSync(this.home, { recursive: true, force: true }));
        const { PATH } = process.env;
        this.env = { PATH, HOME: this.home, TRUNKLINE_LOGINS: join(this.home, 'logins') };
    }

    /** Runs `trunkline ARGS…`: its exit code, and what it wrote. `reads` is told what it wrote so far. */
    run(args, reads = () => {}, ms = 20_000) {
        return new Promise((resolve, reject) => {
            const child = spawn(trunkline, args, { stdio: ['ignore', 'pipe', 'pipe'], env: this.env });
            let out = '';
            let err = '';
            child.stdout.on('data', (bytes) => reads(out += bytes));
            child.stderr.on('data', (bytes) => reads(err += bytes));
            const timer = setTimeout(() => {
                child.kill('SIGKILL');
                reject(new Error(`\`trunkline ${args.join(' ')}\` did not end within ${ms} ms; it said: ${out} ${err}`));
            }, ms);
            child.on('error', reject);
            child.on('close', (code) => {
                clearTimeout(timer);
                resolve({ code, out, err, said: `exit ${code}; out: ${out}; err: ${err}` });
            });
        });
    }

    /** A run that must end well. */
    async good(...args) {
        const outcome = await this.run(args);
        assert.equal(outcome.code, 0, outcome.said);
        return outcome;
    }

    /** A run with `--json` that must end well; what the JSON says. */
    async json(...args) {
        return JSON.parse((await this.good(...args, '--json')).out);
    }

    /** A run that must not end well, and say why. */
    async bad(says, ...args) {
        const outcome = await this.run(args);
        assert.notEqual(outcome.code, 0, outcome.said);
        assert.match(outcome.err, says);
        return outcome;
    }

    /** Logs in, with a browser of our own at each URL that is printed; what these ask for. */
    async logIn(url, ...more) {
        const opened = new Map();
        const outcome = await this.run(['login', String(url), '--no-browser', ...more], (said) => {
            for (const [page] of said.matchAll(/https?:\/\/\S+code_challenge=\S+(?=\s)/g)) {
                if (!opened.has(page)) opened.set(page, visit(page));
            }
        });
        assert.equal(outcome.code, 0, outcome.said);
        assert.notEqual(opened.size, 0, `no URL to open in: ${outcome.said}`);
        for (const { status, at } of await Promise.all(opened.values())) assert.equal(status, 200, String(at));
        return [...opened.keys()].map((page) => new URL(page).searchParams);
    }
}

const checks = new Checks('auth cli');
const check = (name, body, ms = 30_000) => checks.check(name, body, ms);
/** Outlives a token of one second. */
const expiry = (ms = 2_000) => new Promise((resolve) => setTimeout(resolve, ms));
const texts = (result) => result.content.map((block) => block.text);

/** Logs in with one page, and returns what it asked for. */
async function logInAtOnce(user, url) {
    const [asked, ...more] = await user.logIn(url);
    assert.equal(more.length, 0, 'one page is enough');
    assert.equal(asked.get('code_challenge_method'), 'S256');
    assert.equal(asked.get('resource'), url);
    return asked;
}

/** A server made with FastMCP, with its own provider. */
async function fastmcp() {
    checks.prefix = 'auth cli fastmcp';
    const script = fileURLToPath(new URL('fast_server.py', import.meta.url));
    // Tokens that live so short are refreshed when they are used again. FastMCP ends the whole login if it is shown one that
    // has ended on its way there, so they live for longer than a call may take.
    const { found, stop } = await start(python, [script, '3'], /http:\/\/\S+/);
    const [url] = found;
    const user = new User();
    await check('before the login a call says how to log in', () => user.bad(/trunkline login/, 'call', 'seen', url));
    await check('logs in', async () => assert.equal((await logInAtOnce(user, url)).get('scope'), 'read'));
    await check('lists and calls', async () => {
        assert.match((await user.good('list', 'tools', url)).out, /\badd\b/);
        assert.deepEqual((await user.json('call', 'add', 'a=2', 'b=40', url)).structuredContent, { sum: 42 });
        const seen = (await user.json('call', 'seen', url)).structuredContent;
        assert.deepEqual({ ...seen, names: undefined }, { scopes: ['read'], clients: 1, refresh_tokens: 1, names: undefined });
    });
    await check('speaks both eras', async () => {
        for (const revision of ['2025-11-25', '2026-07-28']) {
            const called = await user.json('call', 'add', 'a=2', 'b=40', url, '--protocol', revision);
            assert.deepEqual(called.structuredContent, { sum: 42 });
        }
    });
    await check('refreshes once the token has expired', async () => {
        await expiry(4_000);
        const seen = (await user.json('call', 'seen', url)).structuredContent;
        assert.equal(seen.clients, 1);
        assert.equal(seen.refresh_tokens, 1);
    });
    await check('says who it is', async () => assert.match((await user.good('whoami', url)).out, /127\.0\.0\.1/));
    await check('logs out, and is nobody', async () => {
        await user.good('logout', url);
        await user.bad(/trunkline login/, 'call', 'seen', url);
    });
    await check('its tokens are gone', async () => {
        const other = new User();
        await other.logIn(url);
        const { clients, refresh_tokens: tokens } = (await other.json('call', 'seen', url)).structuredContent;
        assert.deepEqual({ clients, tokens }, { clients: 2, tokens: 1 });
    });
    await stop();
}

/** A server of ours that trusts the tokens of an OpenID provider. */
async function ours(provider) {
    const binary = join(dirname(trunkline), 'protected-server');
    const server = await start(binary, [provider.issuer, '127.0.0.1:0'], /http:\/\/\S+\/mcp/);
    const [url] = server.found;
    provider.knows(url);
    return { url, stop: server.stop };
}

async function oidc(openIdProvider) {
    checks.prefix = 'auth cli oidc-provider';
    const provider = await openIdProvider({ scopes: ['notes', 'notes:write'] });
    provider.givesFor(1);
    const { url, stop } = await ours(provider);
    const user = new User();
    await check('before the login a call says how to log in', () => user.bad(/trunkline login/, 'call', 'whoami', url));
    await check('registers and logs in', async () => {
        await logInAtOnce(user, url);
        const [client] = provider.all('Client');
        assert.equal(client.application_type, 'native');
        const [{ grant, resource, type }] = provider.seen;
        assert.deepEqual({ grant, resource, type }, { grant: 'authorization_code', resource: url, type: 'Bearer' });
    });
    await check('lists and calls as who it is', async () => {
        assert.match((await user.good('list', 'tools', url)).out, /\bwhoami\b/);
        assert.deepEqual(texts(await user.json('call', 'whoami', url)), ['alice']);
    });
    await check('refreshes once for two at once, and the gate learns the new key', async () => {
        await expiry();
        await provider.rotate();
        provider.givesFor(600);
        provider.seen.length = 0;
        const both = await Promise.all([user.json('call', 'whoami', url), user.json('call', 'whoami', url)]);
        for (const result of both) assert.deepEqual(texts(result), ['alice']);
        assert.deepEqual(provider.seen.map(({ grant, error }) => error ?? grant), ['refresh_token']);
    });
    await check('is told which scope a tool needs, and gets it', async () => {
        await user.bad(/notes:write/, 'call', 'write', 'text=hello', url);
        // The provider holds a client to the scopes that it registered with, so it has to register anew.
        const asked = await user.logIn(url, '--scope', 'notes:write');
        assert.equal(asked.at(-1).get('scope'), 'notes notes:write offline_access');
        assert.deepEqual(texts(await user.json('call', 'write', 'text=hello', url)), ['alice writes: hello']);
    });
    await check('logs out, and is nobody', async () => {
        const { client_id: me } = provider.all('Client').at(-1);
        const mine = () => provider.all('RefreshToken').filter(({ clientId }) => clientId === me).length;
        assert.equal(mine(), 1);
        await user.good('logout', url);
        await user.bad(/trunkline login/, 'call', 'whoami', url);
        assert.equal(mine(), 0, 'the provider still holds its token');
    });
    await stop();
    provider.stop();
}

async function withDpop(openIdProvider) {
    checks.prefix = 'auth cli oidc-provider DPoP';
    const provider = await openIdProvider({ scopes: ['notes', 'notes:write'], bound: true });
    const { url, stop } = await ours(provider);
    const user = new User();
    await check('logs in for a token bound to its key', async () => {
        await user.logIn(url, '--dpop');
        assert.deepEqual(provider.seen.map(({ error, type }) => error ?? type), ['use_dpop_nonce', 'DPoP']);
    });
    await check('lists and calls', async () => {
        assert.match((await user.good('list', 'tools', url)).out, /\bwhoami\b/);
        assert.deepEqual(texts(await user.json('call', 'whoami', url)), ['alice']);
    });
    await check('says that it is bound', async () => assert.match((await user.good('whoami', url)).out, /DPoP/));
    await check('refreshes with the key', async () => {
        provider.seen.length = 0;
        provider.givesFor(1);
        await user.logIn(url);
        await expiry();
        assert.deepEqual(texts(await user.json('call', 'whoami', url)), ['alice']);
        assert.deepEqual(provider.seen.filter(({ grant }) => grant === 'refresh_token').map(({ type }) => type).at(-1), 'DPoP');
    });
    await stop();
    provider.stop();
}

if (which === 'fastmcp') {
    await fastmcp();
} else {
    // It tells a Node.js older than it likes, as soon as it is there.
    const { openIdProvider } = await import('./oidc.mjs');
    await oidc(openIdProvider);
    await withDpop(openIdProvider);
}
checks.end();
