// What was kept: recordings opened, and two of them compared.
import { html, useEffect, useMemo, useState } from '../html.js';
import { get, getText, post, remove, sentence } from '../api.js';
import { bytes, clock, plural } from '../format.js';
import { parse } from '../filter.js';
import { parseJson, pretty } from '../json.js';
import { conversation } from '../messages.js';
import { Grouping, listed } from '../recording.js';
import { change, link, route } from '../route.js';
import { useStore } from '../store.js';
import { Messages } from '../parts/sequence.js';

/**
 * @typedef {{ id: string, at: string, bytes: number }} Kept
 * @typedef {import('../recording.js').KeptCall} KeptCall
 */

export function Recordings() {
    const { params } = useStore(route);
    const [kept, setKept] = useState(/** @type {Kept[] | null} */ (null));
    const [why, setWhy] = useState('');
    const [asked, ask] = useState(0);
    useEffect(() => {
        const abort = new AbortController();
        get('/v1/recordings', abort.signal).then(
            (found) => setKept(found.recordings),
            (error) => {
                if (!abort.signal.aborted) setWhy(sentence(error));
            },
        );
        return () => abort.abort();
    }, [asked]);
    if (why !== '') return html`<p class="empty">${why}</p>`;
    if (kept === null) return html`<p class="empty muted">Reading…</p>`;
    const { open, a, b } = params;
    const gone = () => {
        ask(asked + 1);
        change({ open: undefined });
    };
    const isComparing = a !== undefined && b !== undefined;
    return html`<div class=${`recordings ${open !== undefined || isComparing ? 'with-detail' : ''}`}>
        <aside class="offer-box">
            <${Keep} then=${() => ask(asked + 1)} />
            <div class="offers-list" tabindex="0" role="region" aria-label="Recordings">
                ${kept.length === 0 && html`<p class="muted pad">None is kept yet.</p>`}
                <ul>
                    ${kept.map(
                        (it) =>
                            html`<li key=${it.id}>
                                <a href=${link('recordings', { open: it.id })} aria-current=${open === it.id ? 'true' : undefined}>
                                    <b>${it.id}</b> <span class="muted">${new Date(it.at).toLocaleString()} · ${bytes(it.bytes)}</span>
                                </a>
                            </li>`,
                    )}
                </ul>
            </div>
            ${kept.length > 1 && html`<${Choose} key=${kept.map(({ id }) => id).join()} kept=${kept} />`}
        </aside>
        ${
            isComparing
                ? html`<${Compared} key=${`${a} ${b}`} a=${a} b=${b} />`
                : open !== undefined
                  ? html`<${Opened} key=${open} id=${open} gone=${gone} />`
                  : html`<p class="empty muted wide-only">Keep the calls that the gateway remembers, and open them here.</p>`
        }
    </div>`;
}

/** @param {{ then: () => void }} props */
function Keep({ then }) {
    const [name, setName] = useState('');
    const [typed, setTyped] = useState('');
    const [said, setSaid] = useState('');
    const keep = async (/** @type {Event} */ event) => {
        event.preventDefault();
        const { fields, text } = parse(typed);
        try {
            await post('/v1/recordings', { name, filter: { ...fields, ...(text === '' ? {} : { text }) } });
            setSaid(`${name} is kept.`);
            setName('');
            then();
        } catch (error) {
            setSaid(sentence(error));
        }
    };
    return html`<form class="pick" onSubmit=${keep}>
        <label for="keep-name">Name</label>
        <input id="keep-name" type="text" required pattern="[A-Za-z0-9_\\-]+" maxlength="64" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
        <label for="keep-filter">Of</label>
        <input id="keep-filter" type="text" placeholder="all calls, or server:files" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} />
        <span></span>
        <span><button type="submit" class="solid">Keep</button></span>
        <span role="status" class="muted whole">${said}</span>
    </form>`;
}

/** @param {{ kept: Kept[] }} props */
function Choose({ kept }) {
    const { params } = useStore(route);
    const [a, setA] = useState(params.a ?? kept[1]?.id ?? '');
    const [b, setB] = useState(params.b ?? kept[0]?.id ?? '');
    const select = (
        /** @type {string} */ label,
        /** @type {string} */ value,
        /** @type {(to: string) => void} */ set,
    ) =>
        html`<select aria-label=${label} onChange=${(/** @type {any} */ event) => set(event.target.value)}>
            ${kept.map(({ id }) => html`<option key=${id} selected=${id === value}>${id}</option>`)}
        </select>`;
    return html`<div class="choose">
        ${select('The first', a, setA)} ${select('The second', b, setB)}
        <button type="button" class="quiet boxed" onClick=${() => change({ a, b, open: undefined }, { push: true })}>Compare</button>
    </div>`;
}

/** @param {{ id: string, gone: () => void }} props */
function Opened({ id, gone }) {
    const [lines, setLines] = useState(/** @type {string | null} */ (null));
    const [why, setWhy] = useState('');
    const path = `/v1/recordings/${encodeURIComponent(id)}`;
    useEffect(() => {
        const abort = new AbortController();
        getText(path, abort.signal).then(setLines, (error) => {
            if (!abort.signal.aborted) setWhy(sentence(error));
        });
        return () => abort.abort();
    }, []);
    const { calls, isWhole, why: unread } = useGrouped(lines);
    const [shown, setShown] = useState(50);
    return html`<section class="maker" aria-label=${`The recording ${id}`}>
        <header class="detail-head">
            <a class="back" href=${link('recordings')}>‹ Recordings</a>
            <h2>${id}</h2>
            <span class="muted">${lines === null ? '' : plural(calls.length, 'call')}${lines !== null && !isWhole && unread === '' && ', reading…'}</span>
            <span class="grow"></span>
            <a class="quiet" href=${path} download=${`${id}.jsonl`}>Download</a>
            <${Delete} path=${path} then=${gone} />
        </header>
        ${why + unread !== '' && html`<p class="notice" role="alert">${why}${unread}</p>`}
        ${calls.slice(0, shown).map((call) => html`<${OneCall} key=${call.id} call=${call} />`)}
        ${calls.length > shown && html`<p class="pad"><button type="button" class="link" onClick=${() => setShown(shown * 4)}>${plural(calls.length - shown, 'more call')}</button></p>`}
    </section>`;
}

/** A recording is deleted once it was said twice. @param {{ path: string, then: () => void }} props */
function Delete({ path, then }) {
    const [isSure, setSure] = useState(false);
    const [why, setWhy] = useState('');
    const run = () =>
        remove(path).then(then, (error) => {
            setWhy(sentence(error));
            setSure(false);
        });
    if (!isSure)
        return html`<button type="button" class="quiet" onClick=${() => setSure(true)}>Delete</button>
            ${why !== '' && html`<span role="alert" class="outcome failed">${why}</span>`}`;
    return html`<span role="group" aria-label="Delete it?">
        <span class="muted">It cannot be brought back.</span>
        <button type="button" class="quiet boxed" onClick=${run}>Delete it</button>
        <button type="button" class="quiet boxed" onClick=${() => setSure(false)}>Keep it</button>
    </span>`;
}

/** @param {{ call: KeptCall }} props */
function OneCall({ call }) {
    const [open, setOpen] = useState(false);
    const talk = useMemo(() => {
        if (!open) return null;
        const text = listed(call);
        return conversation(text, parseJson(text));
    }, [open, call.count]);
    return html`<article class="kept-call">
        <button type="button" class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>
            <span aria-hidden="true">${open ? '▾' : '▸'}</span> <span class="num muted">${clock(call.at)}</span> ${call.name}
            <span class="muted">${plural(call.count, 'message')}</span>
        </button>
        ${talk !== null && html`<${Messages} talk=${talk} mode="pretty" />`}
    </article>`;
}

/** The calls of a recording, as far as they are read: the page can be used meanwhile. @param {string | null} text */
function useGrouped(text) {
    const [held, setHeld] = useState({ calls: /** @type {KeptCall[]} */ ([]), isWhole: false });
    const [why, setWhy] = useState('');
    useEffect(() => {
        if (text === null) return;
        const grouping = new Grouping(text);
        let timer = 0;
        const read = () => {
            const until = performance.now() + SLICE;
            try {
                grouping.read(() => performance.now() > until);
            } catch (error) {
                setWhy(sentence(error));
                return;
            }
            setHeld({ calls: [...grouping.calls.values()], isWhole: grouping.isWhole });
            if (!grouping.isWhole) timer = setTimeout(read, SLICE);
        };
        read();
        return () => clearTimeout(timer);
    }, [text]);
    return { ...held, why };
}

/** @param {{ a: string, b: string }} props */
function Compared({ a, b }) {
    const [text, setText] = useState(/** @type {any} */ (null));
    const [why, setWhy] = useState('');
    useEffect(() => {
        post('/v1/recordings/diff', { a, b }).then(setText, (error) => setWhy(sentence(error)));
    }, []);
    const show = (/** @type {unknown} */ value) =>
        value === undefined ? '' : pretty(parseJson(JSON.stringify(value)));
    return html`<section class="maker" aria-label="The comparison">
        <header class="detail-head">
            <a class="back" href=${link('recordings')}>‹ Recordings</a>
            <h2>${a} and ${b}</h2>
            ${
                text !== null &&
                html`<span class=${`outcome ${text.equal ? 'ok' : 'failed'}`}>${text.equal ? 'equal' : plural(text.differences.length, 'difference')}</span>
            <span class="muted">${plural(text.calls, 'call')}, ${plural(text.definitions, 'definition')}</span>`
            }
        </header>
        ${why !== '' && html`<p class="notice" role="alert">${why}</p>`}
        ${
            text !== null &&
            !text.equal &&
            html`<div class="table-box" tabindex="0" role="region" aria-label="Differences">
            <table class="sides">
                <thead>
                    <tr><th scope="col">where</th><th scope="col">${a}</th><th scope="col">${b}</th></tr>
                </thead>
                <tbody>
                    ${text.differences.map(
                        (/** @type {any} */ it, /** @type {number} */ place) =>
                            html`<tr key=${place}>
                                <th scope="row">${it.of}<br /><code>${it.path}</code></th>
                                <td><pre>${show(it.a)}</pre></td>
                                <td><pre>${show(it.b)}</pre></td>
                            </tr>`,
                    )}
                </tbody>
            </table>
        </div>`
        }
    </section>`;
}

/** How long it reads a recording, and leaves the page to others, in milliseconds. */
const SLICE = 12;
