// What is happening: one row a call, its detail beside.
import { session } from '../api.js';
import { html, useCallback, useEffect, useRef, useState } from '../html.js';
import { bytes, clock, count, duration, meaning, outcomeWord, plural } from '../format.js';
import { query, toggle } from '../filter.js';
import { useKeys } from '../keys.js';
import { Live } from '../live.js';
import { change, route } from '../route.js';
import { useStore } from '../store.js';
import { FilterBar } from '../parts/filter-bar.js';
import { VirtualList } from '../parts/list.js';
import { Bar } from '../parts/waterfall.js';
import { CallDetail } from './call.js';

/** @typedef {import('../types.d.ts').Call} Call */

/** Kept while other views are shown. */
const live = new Live();
let shownFilter = /** @type {string | null} */ (null);
// Whoever signs out leaves nothing in the page, and whoever comes next begins anew.
session.watch(() => {
    if (session.value.state === 'open') return;
    live.forget();
    shownFilter = null;
});

/** @param {{ url: string }} props */
export function Traffic({ url }) {
    const { params } = useStore(route);
    useStore(live.rows);
    const state = useStore(live.state);
    const filter = params.q ?? '';
    const input = useRef(/** @type {HTMLInputElement | null} */ (null));
    const rowHeight = useNarrow() ? 46 : 25;

    useEffect(() => {
        if (shownFilter === filter) return;
        shownFilter = filter;
        live.start(filter);
    }, [filter]);

    const { calls } = live;
    const selected = params.call === undefined ? -1 : calls.rowOf(params.call);
    const select = useCallback(
        (/** @type {number} */ row) => {
            const call = calls.at(row);
            if (call !== undefined) change({ call: call.id }, { push: route.value.params.call === undefined });
        },
        [calls],
    );
    const move = (/** @type {number} */ by) => {
        if (calls.length > 0) select(Math.max(0, Math.min(calls.length - 1, selected < 0 ? 0 : selected + by)));
    };
    const filterBy = useCallback((/** @type {string} */ name, /** @type {string} */ value) => {
        change({ q: toggle(route.value.params.q ?? '', name, value) });
    }, []);
    const close = () => change({ call: undefined });
    useKeys({
        j: () => move(1),
        k: () => move(-1),
        ArrowDown: () => move(1),
        ArrowUp: () => move(-1),
        g: () => select(0),
        p: () => live.pause(!live.state.value.paused),
        '/': () => input.current?.focus(),
        Escape: close,
    });

    const isOpen = params.call !== undefined;
    return html`<div class=${`traffic ${isOpen ? 'with-detail' : ''}`}>
        <div class="toolbar">
            <${FilterBar}
                typed=${filter}
                change=${(/** @type {string} */ q) => change({ q })}
                known=${(/** @type {string} */ field) => live.known(field)}
                inputRef=${input}
            />
            <${Quick} filter=${filter} filterBy=${filterBy} />
            <span class="grow"></span>
            <button
                type="button"
                class="quiet"
                aria-pressed=${state.paused}
                title="Stop the list where it is (p)"
                onClick=${() => live.pause(!state.paused)}
            >
                ${state.paused ? `Resume${state.waiting > 0 ? ` (${count(state.waiting)} new)` : ''}` : 'Pause'}
            </button>
            <a class="quiet" href=${`/v1/traffic/export${query(filter)}`} download="traffic.jsonl">Export</a>
        </div>
        <div class="split">
            <section class="calls" aria-label="Calls">
                ${
                    calls.length === 0
                        ? html`<${Empty} state=${state} filter=${filter} url=${url} />`
                        : html`<${VirtualList}
                          count=${calls.length}
                          rowHeight=${rowHeight}
                          label="Calls, newest first"
                          head=${HEAD}
                          selected=${selected}
                          keyOf=${(/** @type {number} */ row) => calls.at(row)?.id ?? ''}
                          rowOf=${(/** @type {string} */ id) => calls.rowOf(id)}
                          rowClass=${(/** @type {number} */ row) => meaning(calls.at(row) ?? NO_CALL)}
                          select=${select}
                          atEnd=${() => void live.older()}
                      >
                          ${(/** @type {number} */ row) => html`<${Cells} call=${calls.at(row)} />`}
                      </${VirtualList}>`
                }
                <${StatusLine} state=${state} />
            </section>
            ${
                params.call !== undefined &&
                html`<${CallDetail}
                id=${params.call}
                row=${calls.byId.get(params.call)}
                params=${params}
                url=${url}
                filterBy=${filterBy}
                close=${close}
            />`
            }
        </div>
    </div>`;
}

/** The cells of a row. @param {{ call: Call }} props */
function Cells({ call }) {
    const who = call.principal ?? call.client?.name ?? '';
    const isTool = call.method === 'tools/call';
    return html`<span class="cell time" role="gridcell" title=${call.at}>${clock(call.at)}</span>
        <span class="cell who" role="gridcell" title=${who}>${who}</span>
        <span class="cell what" role="gridcell">
            ${!isTool && html`<span class="method">${call.method}</span> `}<span title=${call.name ?? ''}>${call.name}</span>
        </span>
        <span class=${`cell outcome ${meaning(call)}`} role="gridcell" title=${call.reason ?? ''}>${outcomeWord(call)}</span>
        <span class="cell ms" role="gridcell">${duration(call.ms)}</span>
        <span class="cell flow" role="gridcell" aria-label=${call.questions > 0 ? plural(call.questions, 'question') : ''}>
            <${Bar} call=${call} />
        </span>`;
}

/** Filters of one click. @param {{ filter: string, filterBy: (name: string, value: string) => void }} props */
function Quick({ filter, filterBy }) {
    return html`<div class="quick" role="group" aria-label="Common filters">
        ${QUICK.map(
            ([label, name, value]) =>
                html`<button
                    key=${label}
                    type="button"
                    class="chip"
                    aria-pressed=${filter.split(' ').includes(`${name}:${value}`)}
                    onClick=${() => filterBy(name, value)}
                >
                    ${label}
                </button>`,
        )}
    </div>`;
}

/** What there is when there are no rows. @param {{ state: import('../live.js').LiveState, filter: string, url: string }} props */
function Empty({ state, filter, url }) {
    if (state.link === 'lost' || state.why !== '') return html`<p class="empty">${state.why}</p>`;
    if (!state.loaded) return html`<p class="empty muted">Reading…</p>`;
    if (filter !== '') {
        return html`<p class="empty">
            No call fits the filter. <button class="link" type="button" onClick=${() => change({ q: '' })}>Show all</button>
        </p>`;
    }
    return html`<div class="empty">
        <p>No client has called yet. Point one at</p>
        <pre>${url}</pre>
        <p>or make a call yourself:</p>
        <pre>trunkline list ${url}</pre>
    </div>`;
}

/** @param {{ state: import('../live.js').LiveState }} props */
function StatusLine({ state }) {
    const { calls } = live;
    const kept = state.recording?.bytes;
    const parts = [
        plural(calls.length, 'call'),
        state.rate > 0 ? `${count(state.rate)}/s` : '',
        calls.forgotten > 0 ? `${count(calls.forgotten)} older ones left this page` : '',
        state.dropped > 0 ? `${count(state.dropped)} not shown: too many at once` : '',
        typeof kept === 'number' ? `${bytes(kept)} kept` : '',
        state.recording?.payloads === false ? 'messages are not kept' : '',
    ];
    const [word, label] = state.paused ? ['paused', 'paused'] : LINK[state.link];
    return html`<footer class="status-line">
        <span class=${`lamp ${word}`}></span><span role="status">${label}</span>
        <span>${parts.filter((part) => part !== '').join(' · ')}</span>
    </footer>`;
}

/** Whether rows take two lines, as in the style sheet. */
function useNarrow() {
    const [isNarrow, setNarrow] = useState(NARROW.matches);
    useEffect(() => {
        const look = () => setNarrow(NARROW.matches);
        NARROW.addEventListener('change', look);
        return () => NARROW.removeEventListener('change', look);
    }, []);
    return isNarrow;
}

const NARROW = matchMedia('(max-width: 640px)');
const HEAD = html`<span class="cell time" role="columnheader">time</span>
    <span class="cell who" role="columnheader">caller</span>
    <span class="cell what" role="columnheader">call</span>
    <span class="cell outcome" role="columnheader">outcome</span>
    <span class="cell ms" role="columnheader">took</span>
    <span class="cell flow" role="columnheader">stages</span>`;
const QUICK = /** @type {const} */ ([
    ['tools', 'method', 'tools/call'],
    ['errors', 'outcome', '*error'],
    ['refused', 'outcome', 'refused'],
    ['asked', 'outcome', 'asked'],
    ['15 min', 'since', '15m'],
]);
const LINK = /** @type {const} */ ({
    connecting: ['connecting', 'connecting'],
    live: ['live', 'live'],
    lost: ['lost', 'no connection, trying again'],
});
const NO_CALL = { state: 'done', outcome: 'unknown' };
