// Servers of four SDKs, used with and without `trunkline serve` before them by clients of all five revisions: what comes of
// each feature either way, as a table.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REVISIONS } from '../check.mjs';
import { startGateway, toldOurs } from '../http.mjs';
import { able, Peer } from './client.mjs';
import { compare, lines, normal } from './compare.mjs';
import { FEATURES, refusals } from './features.mjs';
import { modernTasks, tasks } from './tasks.mjs';

const { trunkline, venv } = toldOurs('table.mjs');
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const python = join(venv, 'bin', 'python');
const SERVERS = {
    fast: { command: python, args: [here('fast_server.py')] },
    ts1: { command: process.execPath, args: [here('ts1_server.mjs')] },
    ts2: { command: process.execPath, args: [here('ts2_server.mjs')] },
    py: { command: python, args: [here('py_server.py')] },
};
/** FastMCP's tasks are a package of their own, which takes seconds to load. */
const WITH_TASKS = { 'fast-tasks': { command: python, args: [here('fast_server.py'), '--tasks'] } };

/** Differences that are meant: `server feature revision`, and why. */
const EXPLAINED = {
    'ts1 logs unasked 2026-07-28': 'the client falls back to 2025-11-25 directly, where logs come unasked, and speaks '
        + '2026-07-28 to the gateway, where they do not',
    'fast subscriptions 2026-07-28': 'FastMCP refuses to be listened to; the gateway acknowledges before it asks, and nothing comes',
    'fast refusals 2026-07-28': 'the server asks although the request does not offer it; the gateway refuses that with -32021 before the '
        + 'client has to',
};

/** The same of what differs only if clients of two revisions happen to share a process. */
const SHARED = {
    'fast logs unasked 2025-03-26': 'the client before had the level of that process set; whoever says nothing hears everything then',
    'ts1 tasks 2026-07-28': 'directly the server answers without a task',
};
/** The same of what differs only if requests of 2026-07-28, which have no session, reach servers that three gateways started. */
const APART = 'each gateway has a process of the server; what one remembers or tells is not known to the next';
const OF_THREE = process.env.TRUNKLINE_STAGE === undefined ? [] : [
    ...['fast', 'ts2'].map((server) => `${server} visit first 2026-07-28`),
    ...['ts1', 'ts2', 'py'].map((server) => `${server} subscriptions 2026-07-28`),
];
const WHY = { ...EXPLAINED, ...SHARED, ...Object.fromEntries(OF_THREE.map((name) => [name, APART])) };

/** Where a server is, directly and through the gateway. */
const directly = (server) => ({ command: SERVERS[server] ?? WITH_TASKS[server], prefix: '' });
const through = (server, url) => ({ url, prefix: `${server}.` });

/** What a client of one revision sees of every feature of a server; `known` is what was seen directly. */
async function tried(server, way, revision, known) {
    const seen = {};
    const peer = await Peer.connect(way, revision, able(revision));
    const tools = await peer.tools();
    for (const [feature, { tool, steps }] of Object.entries(FEATURES)) {
        if (!tools.includes(tool)) continue;
        peer.due = known?.[feature]?.map((step) => step.notes?.length ?? 0) ?? [];
        seen[feature] = normal(await steps(peer, `table://${server}`), server);
    }
    await peer.close();
    // One of each era; the oldest can be asked nothing but for samples and roots anyhow.
    if (revision >= '2025-11-25') {
        const unable = await Peer.connect(way, revision, {});
        seen.refusals = normal(await refusals(unable, tools), server);
        await unable.close();
    }
    if (revision === '2025-11-25') seen.tasks = normal(await tasks(way), server);
    return seen;
}

/** The cells of one server: feature, revision, what came of it. */
async function cellsOf(server, url) {
    const cells = {};
    for (const revision of REVISIONS) {
        const [here, there] = [directly(server), through(server, url)];
        const seen = await tried(server, here, revision);
        const other = await tried(server, there, revision, seen);
        for (const [feature, steps] of Object.entries(seen)) {
            (cells[feature] ??= {})[revision] = compare(steps, other[feature] ?? []);
        }
    }
    return cells;
}

/** The cells of tasks in 2026-07-28, by server. */
async function taskCells(url) {
    const servers = ['fast-tasks', 'ts1', 'ts2', 'py'];
    const ways = servers.flatMap((server) => [directly(server), through(server, url)]);
    const seen = await modernTasks(python, ways);
    return Object.fromEntries(servers.map((server, at) => {
        const [here, there] = seen.slice(2 * at, 2 * at + 2).map((steps) => normal(steps, server));
        return [server.replace('-tasks', ''), compare(here, there)];
    }));
}

/** Prints the table and what differs; how many cells differ that should not. */
function print(table) {
    const width = 30;
    console.log(['', ...REVISIONS].map((it, at) => it.padEnd(at === 0 ? width : 12)).join(''));
    const found = [];
    for (const [server, cells] of Object.entries(table)) {
        for (const [feature, row] of Object.entries(cells)) {
            const words = REVISIONS.map((revision) => {
                const cell = row[revision];
                if (cell === undefined) return '–';
                const name = `${server} ${feature} ${revision}`;
                if (cell.differing.length > 0) found.push({ name, ...cell });
                return name in WHY && cell.word === 'DIFFERS' ? 'explained' : cell.word;
            });
            console.log([`${server} ${feature}`, ...words].map((it, at) => it.padEnd(at === 0 ? width : 12)).join(''));
        }
    }
    for (const group of grouped(found)) {
        console.log(`\n${group.map(({ name, word }) => `${name}: ${word}`).join('\n')}`);
        for (const { name } of group) if (name in WHY) console.log(`  since ${WHY[name]}`);
        console.log(group[0].differing.map(lines).join('\n'));
    }
    const stale = Object.keys(EXPLAINED).filter((name) => !found.some((it) => it.name === name));
    for (const name of stale) console.log(`\n${name} is explained, but does not differ.`);
    return found.filter(({ name, word }) => word === 'DIFFERS' && !(name in WHY)).length + stale.length;
}

/** Cells that differ in the same way, together. */
function grouped(found) {
    const groups = new Map();
    for (const it of found) {
        const key = JSON.stringify(it.differing);
        groups.set(key, [...(groups.get(key) ?? []), it]);
    }
    return groups.values();
}

const dir = await mkdtemp(join(tmpdir(), 'trunkline-table-'));
let differ;
try {
    const config = join(dir, 'trunkline.yaml');
    await writeFile(config, JSON.stringify({ mcpServers: { ...SERVERS, ...WITH_TASKS } }));
    const gateway = await startGateway(trunkline, config, join(dir, 'state'));
    try {
        const { url } = gateway;
        const servers = Object.keys(SERVERS);
        const [withTasks, ...all] = await Promise.all([taskCells(url), ...servers.map((server) => cellsOf(server, url))]);
        const table = Object.fromEntries(servers.map((server, at) => [server, all[at]]));
        for (const server of servers) table[server].tasks['2026-07-28'] = withTasks[server];
        differ = print(table);
    } finally {
        await gateway.stop();
    }
} finally {
    await rm(dir, { recursive: true, force: true });
}
console.log(`\n${differ} cells differ`);
process.exit(differ === 0 ? 0 : 1);
