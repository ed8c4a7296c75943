// What runs: the servers with their instances, and what they write.
import { html, useEffect, useMemo, useState } from '../html.js';
import { get, sentence } from '../api.js';
import { count, duration, plural } from '../format.js';
import { useKeys } from '../keys.js';
import { change, link, route } from '../route.js';
import { useStore } from '../store.js';
import { Chart } from '../parts/chart.js';
import { Columns } from '../parts/columns.js';
import { Deed } from '../parts/deed.js';
import { Log } from '../parts/log.js';
import { Said } from '../parts/said.js';

/**
 * @typedef {import('../types.d.ts').Server} Server
 * @typedef {import('../types.d.ts').Status} Status
 */

/** @param {{ status: Status | null }} props */
export function Servers({ status }) {
    const { params } = useStore(route);
    const { servers, stepSeconds, why } = useServers();
    const at = servers.findIndex(({ name }) => name === params.server);
    const shown = servers[at];
    const move = (/** @type {number} */ by) => {
        const next = servers[Math.max(0, Math.min(servers.length - 1, at < 0 ? 0 : at + by))];
        if (next !== undefined) change({ server: next.name });
    };
    const close = () => change({ server: undefined });
    useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), Escape: close });
    if (why !== '') return html`<p class="empty">${why}</p>`;
    if (status === null) return html`<p class="empty muted">Reading…</p>`;
    return html`<div class=${`servers ${shown === undefined ? '' : 'with-detail'}`}>
        <div class="toolbar">
            <span>${plural(servers.length, 'server')}, ${plural(status.clients, 'client')}</span>
            <span class="muted">${status.config ?? ''} · version ${status.version}, up ${duration(status.uptimeMs)}</span>
            <span class="grow"></span>
            <${Deed} path="/v1/reload" label="Reload the catalog" done="The catalog is in force." />
        </div>
        <div class="split">
            <section class="table-box" aria-label="Servers" tabindex="0" data-rows>
                <table>
                    <${Columns} of=${SERVER_COLUMNS} />
                    <tbody>
                        ${servers.map((server) => html`<${Row} key=${server.name} server=${server} isShown=${server === shown} />`)}
                    </tbody>
                </table>
            </section>
            ${shown !== undefined && html`<${Detail} key=${shown.name} server=${shown} stepSeconds=${stepSeconds} close=${close} />`}
        </div>
    </div>`;
}

/** @param {{ server: Server, isShown: boolean }} props */
function Row({ server, isShown }) {
    const inFlight = server.instances.reduce((sum, it) => sum + it.inFlight, 0) + server.waiters;
    const rates = server.traffic;
    const open = () => change({ server: server.name }, { push: true });
    return html`<tr class=${isShown ? 'selected' : ''} onClick=${open}>
        <th scope="row">
            <a href=${link('servers', { server: server.name })} aria-current=${isShown ? 'true' : undefined}>${server.name}</a>
        </th>
        <td><${State} state=${server.state} /></td>
        <td class="right">${server.instances.length || ''}</td>
        <td class="right">${inFlight || ''}</td>
        <td class="right">${rates?.count ? count(rates.count) : ''}</td>
        <td class="right outcome failed">${rates?.failed ? count(rates.failed) : ''}</td>
        <td class="right wide">${duration(rates?.p50)}</td>
        <td class="right wide">${duration(rates?.p95)}</td>
        <td class="right wide">${duration(rates?.p99)}</td>
        <td class="right wide">${server.tools ?? ''}</td>
        <td class="wide">${server.revision ?? ''}</td>
        <td class="right wide">${total(server.starts) || ''}</td>
    </tr>`;
}

/** @param {{ server: Server, stepSeconds: number, close: () => void }} props */
function Detail({ server, stepSeconds, close }) {
    const path = `/v1/servers/${encodeURIComponent(server.name)}`;
    const isWaiting = server.state === 'backoff' || server.state === 'suspended' || server.lastError;
    return html`<section class="detail" aria-label=${`The server ${server.name}`}>
        <header class="detail-head">
            <button type="button" class="back" onClick=${close}>‹ Servers</button>
            <h2>${server.name}</h2>
            <${State} state=${server.state} />
            <span class="grow"></span>
            <a class="quiet" href=${link('traffic', { q: `server:${server.name}` })}>Its calls</a>
            <button type="button" class="quiet close-detail" aria-label="Close (Esc)" onClick=${close}>×</button>
        </header>
        ${server.lastError && html`<p class="reason failed"><${Said} text=${server.lastError} /></p>`}
        <div class="deeds">
            ${
                isWaiting &&
                html`<${Deed} path=${`${path}/retry`} label="Retry" title="End its back-off and try now" done="It is tried again." primary />`
            }
            <${Deed} path=${`${path}/stop`} label="Stop" title="Drain and stop its instances; the next call starts it" done="It is stopped; the next call starts it." />
            ${server.nextRetryMs !== undefined && html`<span class="muted">next try in ${duration(server.nextRetryMs)}</span>`}
        </div>
        <dl class="facts">
            ${facts(server).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
        </dl>
        ${server.traffic && html`<${Charts} rates=${server.traffic} stepSeconds=${stepSeconds} />`}
        ${server.instances.length > 0 && html`<${Instances} server=${server} />`}
        ${(server.warnings ?? []).map((it, at) => html`<p class="notice" key=${at}>${typeof it === 'string' ? it : JSON.stringify(it)}</p>`)}
        <h3 class="log-head">Log</h3>
        <${Log} server=${server.name} />
    </section>`;
}

/** @param {{ rates: import('../types.d.ts').Rates, stepSeconds: number }} props */
function Charts({ rates, stepSeconds }) {
    const { steps } = rates;
    const times = useMemo(() => {
        const last = Math.floor(Date.now() / 1000 / stepSeconds) * stepSeconds;
        return steps.map((_, at) => last - (steps.length - 1 - at) * stepSeconds);
    }, [steps]);
    const [each, slow] = useMemo(
        () => [
            [
                { label: 'all', colour: '--accent', values: steps.map(({ rate }) => rate) },
                { label: 'failed', colour: '--failed', values: steps.map(({ failedRate }) => failedRate) },
            ],
            [
                { label: 'median', colour: '--accent', values: steps.map(({ p50 }) => p50) },
                { label: 'p95', colour: '--asked', values: steps.map(({ p95 }) => p95) },
                { label: 'p99', colour: '--unknown', values: steps.map(({ p99 }) => p99) },
            ],
        ],
        [steps],
    );
    if (rates.count === 0) return html`<p class="muted pad">No call in the last 15 minutes.</p>`;
    const calls = `${plural(rates.count, 'call')} in 15 minutes, ${count(rates.failed)} failed.`;
    const took = `Median ${duration(rates.p50)}, 95 % within ${duration(rates.p95)}, 99 % within ${duration(rates.p99)}.`;
    return html`<div class="charts">
        <${Chart} title="Calls per second" spoken=${calls} times=${times} series=${each} show=${perSecond} />
        <${Chart} title="How long they took" spoken=${took} times=${times} series=${slow} show=${duration} />
    </div>`;
}

/** @param {{ server: Server }} props */
function Instances({ server }) {
    return html`<div class="table-box small" tabindex="0" role="region" aria-label="Instances">
        <table>
            <${Columns} of=${INSTANCE_COLUMNS} />
            <tbody>
                ${server.instances.map(
                    (it) =>
                        html`<tr key=${it.id}>
                            <th scope="row">#${it.id}</th>
                            <td><${State} state=${it.state} /></td>
                            <td class="right">${it.pid ?? ''}</td>
                            <td class="right">${it.inFlight || ''}</td>
                            <td class="right">${age(it.ageMs)}</td>
                            <td class="right">${it.idleMs === undefined ? '' : age(it.idleMs)}</td>
                            <td>${it.cause}${it.bound ? ', one session' : ''}</td>
                        </tr>`,
                )}
            </tbody>
        </table>
    </div>`;
}

/** The servers with their numbers, looked at every few seconds. */
function useServers() {
    const [held, setHeld] = useState({ servers: /** @type {Server[]} */ ([]), stepSeconds: 10, why: '' });
    useEffect(() => {
        const abort = new AbortController();
        const look = () =>
            get('/v1/servers', abort.signal).then(
                (found) => setHeld({ servers: found.servers, stepSeconds: found.stepSeconds ?? 10, why: '' }),
                (error) => {
                    if (!abort.signal.aborted) setHeld((before) => ({ ...before, why: sentence(error) }));
                },
            );
        void look();
        const timer = setInterval(() => !document.hidden && void look(), EVERY);
        return () => {
            abort.abort();
            clearInterval(timer);
        };
    }, []);
    return held;
}

/** A state: its lamp and its word. @param {{ state: string }} props */
export function State({ state }) {
    return html`<span class="state"><span class=${`lamp ${LAMPS[state] ?? ''}`}></span>${state}</span>`;
}

/** @param {Server} server @returns {[string, string | number][]} */
function facts(server) {
    const counted = (/** @type {Record<string, number> | undefined} */ counts) =>
        Object.entries(counts ?? {})
            .map(([why, count]) => `${count} ${why.replaceAll('_', ' ')}`)
            .join(', ');
    /** @type {[string, string | number | null | undefined][]} */
    const all = [
        ['revision', server.revision],
        ['tools', server.tools],
        ['prompts', server.prompts],
        ['resources', server.resources],
        ['waiting', server.waiters || null],
        ['tags', server.tags?.join(', ')],
        ['starts', counted(server.starts)],
        ['stops', counted(server.stops)],
        ['held back', server.heldBack?.length || null],
    ];
    return /** @type {[string, string | number][]} */ (
        all.filter(([, value]) => value !== undefined && value !== null && value !== '')
    );
}

/** @param {Record<string, number> | undefined} counts */
const total = (counts) => Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);

/** Whole seconds: it is drawn every few of them. @param {number} ms */
const age = (ms) => (ms < 60_000 ? `${Math.floor(ms / 1000)} s` : duration(ms));

/** @param {number} rate */
const perSecond = (rate) => `${Number(rate.toPrecision(3))}/s`;

const EVERY = 3000;
const LATELY = 'in the last 15 minutes';
/** @type {import('../parts/columns.js').Column[]} */
const SERVER_COLUMNS = [
    ['server'],
    ['state'],
    ['instances', 'right'],
    ['in flight', 'right'],
    ['calls', 'right', LATELY],
    ['failed', 'right', LATELY],
    ['median', 'right wide'],
    ['p95', 'right wide'],
    ['p99', 'right wide'],
    ['tools', 'right wide'],
    ['revision', 'wide'],
    ['starts', 'right wide'],
];
/** @type {import('../parts/columns.js').Column[]} */
const INSTANCE_COLUMNS = [
    ['instance'],
    ['state'],
    ['pid', 'right'],
    ['in flight', 'right'],
    ['age', 'right'],
    ['unused for', 'right'],
    ['started for'],
];
/** @type {Record<string, string>} */
const LAMPS = {
    ready: 'live',
    busy: 'live',
    idle: 'off',
    starting: '',
    draining: '',
    stopping: '',
    suspended: 'lost',
    backoff: 'lost',
    out: 'lost',
};
