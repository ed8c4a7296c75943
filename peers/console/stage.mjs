// A gateway with real servers, clients that call through it, and a browser with the console.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { chromium } from 'playwright-core';
import { within } from '../check.mjs';
import { CAPABILITIES, Person } from '../demo.mjs';
import { start } from '../http.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Secrets that nobody may find in the console: a variable of a server, a header for one, an argument. */
export const PLANTED = { env: 'planted-variable-4711', header: 'planted-header-0815', argument: 'planted-argument-1337' };

export class Stage {
    static async begin(trunkline) {
        const stage = new Stage();
        stage.trunkline = trunkline;
        stage.dir = mkdtempSync(join(tmpdir(), 'trunkline-console-'));
        stage.description = join(stage.dir, 'description.txt');
        stage.describe('Takes a note.');
        stage.far = await start(process.execPath, [here('form_server.mjs'), '--http'], /(http:\/\/\S+\/mcp)/);
        writeFileSync(join(stage.dir, 'trunkline.yaml'), JSON.stringify(stage.catalog()));
        await stage.#serve();
        const isRoot = process.getuid() === 0;
        stage.browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: isRoot ? ['--no-sandbox'] : [] });
        stage.faults = [];
        stage.clients = [];
        /** What happened in the pages that are open. */
        stage.seen = new Map();
        return stage;
    }

    catalog() {
        const node = process.execPath;
        return {
            gateway: { admin: { listen: '127.0.0.1:0' } },
            mcpServers: {
                broken: { command: node, args: ['-e', 'console.error("the database is not there"); process.exit(3)'] },
                changing: { command: node, args: [here('changing_server.mjs'), this.description] },
                demo: { command: this.trunkline, args: ['demo'] },
                everything: { command: node, args: [here('../node_modules/@modelcontextprotocol/server-everything/dist/index.js')] },
                far: { url: this.far.found[1], headers: { 'x-planted': PLANTED.header } },
                forms: { command: node, args: [here('form_server.mjs')], env: { PLANTED_KEY: PLANTED.env }, sharing: 'isolated' },
            },
        };
    }

    /** How the tool of `changing` is described from its next start on. */
    describe(text) {
        writeFileSync(this.description, text);
    }

    async #serve() {
        const words = ['serve', '--config', join(this.dir, 'trunkline.yaml'), '--listen', '127.0.0.1:0', '--state', join(this.dir, 'state')];
        this.gateway = spawn(this.trunkline, words, { stdio: ['ignore', 'ignore', 'pipe'] });
        const said = [];
        const found = new Promise((resolve, reject) => {
            createInterface(this.gateway.stderr).on('line', (line) => {
                said.push(line);
                this.link ??= /Console: (http:\S+)/.exec(line)?.[1];
                this.url ??= /(http:\S+\/mcp)\b/.exec(line)?.[1];
                if (this.link !== undefined && this.url !== undefined) resolve();
            });
            this.gateway.once('exit', (code) => reject(new Error(`The gateway ended with ${code}: ${said.join(' ')}`)));
        });
        await within(20_000, found);
        this.origin = new URL(this.link).origin;
    }

    /** What the command line says. */
    cli(...words) {
        return execFileSync(this.trunkline, [...words, '--state', join(this.dir, 'state')], { encoding: 'utf8' });
    }

    /** A new link, good once. */
    newLink() {
        return this.cli('console').trim();
    }

    /** A client of 2026-07-28, or of the revisions before. */
    async client(era = 'new') {
        const person = new Person();
        const info = { name: era === 'new' ? 'modern-client' : 'older-client', version: '1.2.3' };
        let client;
        if (era === 'new') {
            client = new Client2(info, { capabilities: CAPABILITIES, versionNegotiation: { mode: 'auto' } });
            client.setRequestHandler('elicitation/create', async ({ params }) => person.elicitation(params));
        } else {
            client = new Client1(info, { capabilities: CAPABILITIES });
            client.setRequestHandler(ElicitRequestSchema, ({ params }) => person.elicitation(params));
        }
        await within(30_000, client.connect(new (era === 'new' ? Http2 : Http1)(new URL(this.url))));
        this.clients.push(client);
        const call = (name, args = {}) => {
            const params = { name, arguments: args };
            return era === 'new' ? client.callTool(params) : client.callTool(params, undefined, { timeout: 30_000 });
        };
        return { client, person, call };
    }

    /** A browser that nobody has used, at the given size and theme. */
    async page({ width = 1280, height = 800, theme = 'light', isWatched = true } = {}) {
        const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: theme });
        await context.grantPermissions(['clipboard-read', 'clipboard-write']);
        const page = await context.newPage();
        page.setDefaultTimeout(20_000);
        const seen = { waiting: new Set(), heard: [] };
        this.seen.set(page, seen);
        page.on('close', () => this.seen.delete(page));
        page.on('requestfinished', (request) => seen.waiting.delete(request));
        page.on('requestfailed', (request) => {
            seen.waiting.delete(request);
            seen.heard.push(`${request.method()} ${request.url()}: ${request.failure()?.errorText}`);
        });
        page.on('request', (request) => {
            seen.waiting.add(request);
            const { origin, protocol } = new URL(request.url());
            if (origin !== this.origin && protocol !== 'data:') this.faults.push(`a request to ${request.url()}`);
        });
        page.on('pageerror', (error) => this.faults.push(`an error: ${error.stack}`));
        page.on('console', (message) => {
            seen.heard.push(`${message.type()}: ${message.text()}`);
            if (isWatched && ['error', 'warning'].includes(message.type())) this.faults.push(`the log: ${message.text()}`);
        });
        return page;
    }

    /** A browser that was let in and shows a view. */
    async entered(view = 'traffic', options = {}) {
        const page = await this.page(options);
        await page.goto(this.newLink());
        await page.getByRole('navigation', { name: 'Views' }).waitFor();
        await page.goto(`${this.origin}/#/${view}`);
        return page;
    }

    /** How the open pages are, for whoever wonders why a story failed. */
    async told() {
        const lines = [];
        for (const [page, { waiting, heard }] of this.seen) {
            const text = page.evaluate(() => (document.querySelector('main') ?? document.body).innerText);
            const shown = await within(5000, text).catch(String);
            lines.push(
                `the page ${page.url()}`,
                `  waits for ${[...waiting].map((it) => `${it.method()} ${it.url()}`).join(', ') || 'nothing'}`,
                ...heard.slice(-20).map((it) => `  heard ${it}`),
                `  shows ${shown.replace(/\s+/g, ' ').slice(0, 3000)}`,
            );
        }
        return lines;
    }

    async end() {
        for (const client of this.clients ?? []) await client.close().catch(() => {});
        await this.browser?.close();
        this.gateway.kill('SIGTERM');
        if (this.gateway.exitCode === null) await within(10_000, once(this.gateway, 'exit'));
        await this.far.stop();
        rmSync(this.dir, { recursive: true, force: true });
    }
}

/** What axe finds wrong with a page, and whether it is wider than the window. */
export async function faultsOf(page, view) {
    await page.evaluate(axeSource);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const found = violations.map(({ id, nodes }) => `${view}: ${id} ${nodes[0].html.slice(0, 200)}`);
    const { width } = page.viewportSize();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) found.push(`${view} is ${wide} px wide`);
    return found;
}

/** How long the frames of a page take while some time passes, in milliseconds, shortest first. */
export function frames(page, ms) {
    return page.evaluate((ms) => new Promise((resolve) => {
        const times = [];
        let last = performance.now();
        const end = last + ms;
        const tick = (now) => {
            times.push(now - last);
            last = now;
            if (now < end) requestAnimationFrame(tick);
            else resolve(times.sort((one, other) => one - other));
        };
        requestAnimationFrame(tick);
    }), ms);
}

/** What 95 of 100 stay below; or another part. @param {number[]} sorted */
export const p95 = (sorted, part = 0.95) => sorted[Math.floor(sorted.length * part)];

const axeSource = readFileSync(here('../node_modules/axe-core/axe.min.js'), 'utf8');
