// Why it went as it did: one call with its times and messages.
import { html, useEffect, useMemo, useState } from '../html.js';
import { getText, sentence, ApiError } from '../api.js';
import { commandLine } from '../cli.js';
import { bytes, clock, duration, meaning, outcomeWord, plural } from '../format.js';
import { at, parseJson, textAt } from '../json.js';
import { conversation } from '../messages.js';
import { change, link } from '../route.js';
import { Copy } from '../parts/copy.js';
import { Exchange } from '../parts/exchange.js';
import { Messages } from '../parts/sequence.js';
import { Said } from '../parts/said.js';
import { Waterfall } from '../parts/waterfall.js';

/** @typedef {import('../types.d.ts').Call} Call */

/**
 * @param {{ id: string, row: Call | undefined, params: Record<string, string>, url: string,
 *     filterBy: (name: string, value: string) => void, close: () => void }} props
 */
export function CallDetail({ id, row, params, url, filterBy, close }) {
    const { text, why } = useDetail(id, row);
    const detail = useMemo(() => (text === null ? null : read(text)), [text]);
    const call = row ?? detail?.call;
    const tab = TABS.some(([name]) => name === params.tab) ? (params.tab ?? 'exchange') : 'exchange';
    const mode = MODES.some(([name]) => name === params.as) ? (params.as ?? 'pretty') : 'pretty';
    const talk = detail?.talk;
    const server = call?.server ?? null;
    const command = useMemo(
        () => commandLine(talk?.request?.node, url, { server, told: talk?.serverRequest?.node }),
        [talk, url, server],
    );

    return html`<section class="detail" aria-label="The selected call">
        <header class="detail-head">
            <button type="button" class="back" onClick=${close}>‹ Calls</button>
            <h2>${call?.name ?? call?.method ?? 'A call'}</h2>
            ${
                call !== undefined &&
                html`<span class=${`outcome ${meaning(call)}`}>${outcomeWord(call)}</span>
                <span class="num">${duration(call.ms)}</span>`
            }
            <span class="grow"></span>
            ${call !== undefined && KINDS[call.method] !== undefined && html`<a class="quiet" href=${again(call)}>Try again</a>`}
            ${command !== null && html`<${Copy} text=${command} title=${command}>Copy as command</${Copy}>`}
            <${Copy} text=${() => location.href}>Copy link</${Copy}>
            <button type="button" class="quiet close-detail" aria-label="Close (Esc)" onClick=${close}>×</button>
        </header>
        ${why !== '' && html`<p class="notice" role="alert">${why}</p>`}
        ${
            call !== undefined &&
            html`<${Reason} call=${call} response=${talk?.response?.node} />
            <${Facts} call=${call} filterBy=${filterBy} />
            <${Waterfall} call=${call} messages=${talk?.marks ?? []} />`
        }
        <div class="tabs">
            <div role="tablist" aria-label="What to show of the call" onKeyDown=${arrows}>
                ${TABS.map(
                    ([name, label]) =>
                        html`<button
                            key=${name}
                            type="button"
                            role="tab"
                            id=${`tab-${name}`}
                            aria-selected=${tab === name}
                            aria-controls="call-panel"
                            tabindex=${tab === name ? 0 : -1}
                            onClick=${() => change({ tab: name === 'exchange' ? undefined : name })}
                        >
                            ${label}${name === 'messages' && talk !== undefined ? ` ${talk.messages.length}` : ''}
                        </button>`,
                )}
            </div>
            <span class="grow"></span>
            <div class="modes" role="group" aria-label="How JSON is shown">
                ${MODES.filter(([name]) => name !== 'diff' || tab === 'exchange').map(
                    ([name, label, title]) =>
                        html`<button
                            key=${name}
                            type="button"
                            class="chip"
                            title=${title}
                            aria-pressed=${mode === name}
                            onClick=${() => change({ as: name === 'pretty' ? undefined : name })}
                        >
                            ${label}
                        </button>`,
                )}
            </div>
        </div>
        <div class="panel" id="call-panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} tabindex="0">
            ${
                talk !== undefined &&
                (tab === 'exchange'
                    ? html`<${Exchange} key=${id} talk=${talk} mode=${mode} call=${call} note=${detail?.note} />`
                    : html`<${Messages} key=${id} talk=${talk} mode=${mode} note=${detail?.note} />`)
            }
        </div>
    </section>`;
}

/** Why it failed: the gateway's word, and the sentence that the caller got. @param {{ call: Call, response: import('../json.js').Json | undefined }} props */
function Reason({ call, response }) {
    const said = textAt(response, 'error', 'message');
    if (call.reason === null && said === undefined) return null;
    return html`<p class=${`reason ${meaning(call)}`}>
        ${call.reason !== null && html`<b>${call.reason.replaceAll('_', ' ')}</b>`} <${Said} text=${said} />
    </p>`;
}

/** @param {{ call: Call, filterBy: (name: string, value: string) => void }} props */
function Facts({ call, filterBy }) {
    /** @type {[string, any, (() => void)?][]} */
    const facts = [
        ['at', html`<time datetime=${call.at} title=${call.at}>${clock(call.at)}</time>`],
        ['method', call.method, () => filterBy('method', call.method)],
        ['server', call.server, () => filterBy('server', call.server ?? '')],
        ['instance', call.instance],
        ['caller', call.principal, () => filterBy('principal', call.principal ?? '')],
        ['client', call.client === null ? null : `${call.client.name} ${call.client.version ?? ''}`],
        ['revision', revisions(call)],
        ['size', `${bytes(call.bytesIn)} in, ${bytes(call.bytesOut)} out`],
        ['rounds', call.rounds > 1 ? call.rounds : null],
        ['asked', call.questions > 0 ? plural(call.questions, 'question') : null],
        ['replica', call.replica],
        ['id', html`<code>${call.id}</code>`],
    ];
    return html`<dl class="facts">
        ${facts
            .filter(([, value]) => value !== null && value !== undefined && value !== '')
            .map(
                ([name, value, filter]) =>
                    html`<div key=${name}>
                        <dt>${name}</dt>
                        <dd>
                            ${
                                filter === undefined
                                    ? value
                                    : html`<button class="fact" type="button" title="Filter by it" onClick=${filter}>${value}</button>`
                            }
                        </dd>
                    </div>`,
            )}
    </dl>`;
}

/** The link that makes the call again, with its arguments. @param {Call} call */
function again(call) {
    const { server, name, method, revision } = call;
    return link('try', {
        server: server ?? '',
        kind: KINDS[method],
        name: name ?? '',
        revision: revision ?? '',
        from: call.id,
    });
}

/** @param {Call} call */
function revisions({ revision, serverRevision }) {
    if (serverRevision === null || serverRevision === revision) return revision;
    return `${revision ?? '?'} → ${serverRevision}`;
}

/**
 * The call with its messages, as it was written; asked for again when the row changes.
 * @param {string} id
 * @param {Call | undefined} row
 */
function useDetail(id, row) {
    const [held, setHeld] = useState({ id, text: /** @type {string | null} */ (null), why: '' });
    const version =
        row === undefined ? '' : `${row.state} ${row.rounds} ${row.questions} ${row.bytesIn} ${row.bytesOut}`;
    useEffect(() => {
        const abort = new AbortController();
        const ask = () =>
            getText(`/v1/calls/${encodeURIComponent(id)}`, abort.signal).then(
                (text) => setHeld({ id, text, why: '' }),
                (error) => {
                    if (abort.signal.aborted) return;
                    const isGone = error instanceof ApiError && error.status === 404;
                    setHeld({
                        id,
                        text: null,
                        why: isGone ? 'The gateway no longer keeps this call.' : sentence(error),
                    });
                },
            );
        // Whoever runs through rows with `j` asks for the one where they stop.
        const timer = setTimeout(ask, 40);
        return () => {
            clearTimeout(timer);
            abort.abort();
        };
    }, [id, version]);
    return held.id === id ? held : { text: null, why: '' };
}

/** @param {string} text */
function read(text) {
    const call = /** @type {Call & { note: string | null }} */ (JSON.parse(text));
    return { call, note: call.note, talk: conversation(text, at(parseJson(text), 'messages')) };
}

/** The arrow keys go from tab to tab. @param {KeyboardEvent} event */
export function arrows(event) {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0 || !(event.currentTarget instanceof Element)) return;
    const tabs = [...event.currentTarget.querySelectorAll('[role=tab]')];
    const next = tabs[(tabs.findIndex((it) => it === document.activeElement) + by + tabs.length) % tabs.length];
    if (next instanceof HTMLElement) {
        next.focus();
        next.click();
    }
    event.preventDefault();
}

/** @type {Record<string, string | undefined>} */
const KINDS = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' };
const TABS = /** @type {const} */ ([
    ['exchange', 'Exchange'],
    ['messages', 'Messages'],
]);
const MODES = /** @type {const} */ ([
    ['pretty', 'pretty', 'Folding, with decoded texts'],
    ['raw', 'raw', 'As it was recorded'],
    ['diff', 'carried', 'What the gateway changed between the client and the server'],
]);
