// The console beside many calls: `node soak.mjs PATH-OF-TRUNKLINE [RATE] [SECONDS]`; `cargo xtask soak console` does that.
// What it holds to: the gateway takes little more memory than before, the tab stays small, the page goes on smoothly, and
// says what it left out.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { assert, Checks } from '../check.mjs';
import { frames, p95, Stage } from './stage.mjs';

const [trunkline, rate = '5000', seconds = '60'] = process.argv.slice(2);
const MIB = 1024 * 1024;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const checks = new Checks('console');
const stage = await Stage.begin(trunkline);

/** A figure of a process in bytes. */
function memory(pid, file, names) {
    const text = readFileSync(`/proc/${pid}/${file}`, 'utf8');
    const of = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? NaN);
    return names.reduce((sum, name) => sum + of(name), 0) * 1024;
}
const resident = (pid) => memory(pid, 'status', ['VmRSS']);
/** What would be free if the process ended: without the pages of the program that all tabs share. */
const own = (pid) => memory(pid, 'smaps_rollup', ['Private_Clean', 'Private_Dirty']);
const mib = (bytes) => `${(bytes / MIB).toFixed(1)} MiB`;

/** The processes of the browser's tabs. */
async function tabs() {
    const cdp = await stage.browser.newBrowserCDPSession();
    const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
    await cdp.detach();
    return processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
}

async function load() {
    const words = [here('load.mjs'), stage.url, 'demo.sum', '{"a":1,"b":2}', rate, seconds];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    for await (const bytes of child.stdout) said += bytes;
    return JSON.parse(said.trim().split('\n').at(-1));
}

try {
    const page = await stage.entered();
    const modern = await stage.client('new');
    for (let a = 0; a < 20; a += 1) await modern.call('demo.sum', { a, b: 1 });
    await page.locator('.rows .row', { hasText: 'demo.sum' }).first().waitFor();
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Performance.enable');
    const metric = async (name) => {
        const { metrics } = await cdp.send('Performance.getMetrics');
        return metrics.find((it) => it.name === name).value;
    };
    const pids = await tabs();
    const base = resident(stage.gateway.pid);
    const most = { gateway: 0, heap: 0, tab: 0, resident: 0, nodes: 0 };
    const look = async () => {
        most.gateway = Math.max(most.gateway, resident(stage.gateway.pid));
        most.heap = Math.max(most.heap, await metric('JSHeapUsedSize'));
        most.nodes = Math.max(most.nodes, await metric('Nodes'));
        most.tab = Math.max(most.tab, ...pids.map(own));
        most.resident = Math.max(most.resident, ...pids.map(resident));
    };
    const looking = setInterval(() => void look().catch(() => {}), 1000);
    const drawn = frames(page, Number(seconds) * 1000);
    const said = await load();
    const times = await drawn;
    clearInterval(looking);
    await look();
    const line = await page.locator('.status-line').textContent();
    const { dropped } = await (await page.request.get(`${stage.origin}/v1/traffic?limit=1`)).json();
    console.log(`   ${said.perSecond} calls/s of ${rate}, ${said.answered} answered, ${said.failed} failed`);
    console.log(`   gateway ${mib(base)} before, ${mib(most.gateway)} at most`);
    console.log(`   tab ${mib(most.tab)} of its own (${mib(most.resident)} resident), heap ${mib(most.heap)}, ${most.nodes} nodes`);
    console.log(`   ${times.length} frames, p50 ${p95(times, 0.5).toFixed(1)} ms, p95 ${p95(times).toFixed(1)} ms, longest ${times.at(-1).toFixed(1)} ms`);
    console.log(`   ${line}`);
    await checks.check(`${rate} calls a second are made for ${seconds} s`, async () => {
        assert.equal(said.failed, 0);
        assert.ok(said.perSecond >= 0.97 * Number(rate), `${said.perSecond} calls/s`);
    });
    await checks.check('the gateway takes at most 64 MiB more', async () => {
        assert.ok(most.gateway <= base + 64 * MIB, mib(most.gateway - base));
    });
    await checks.check('the tab takes at most 200 MiB', async () => {
        assert.ok(most.heap <= 200 * MIB && most.tab <= 200 * MIB, `${mib(most.heap)} ${mib(most.tab)}`);
    });
    await checks.check('19 of 20 frames come within 33 ms', async () => {
        assert.ok(p95(times) <= 33, `p95 ${p95(times).toFixed(1)} ms`);
    });
    await checks.check('the page says what it does not show, and keeps no more than its bound', async () => {
        assert.match(line, /not shown: too many at once/);
        assert.match(line, /older ones left this page/);
        assert.ok(dropped > 0, 'the gateway remembers all');
        assert.ok(most.nodes < 20_000, `${most.nodes} nodes`);
    });
} finally {
    await stage.end();
}
checks.end();
