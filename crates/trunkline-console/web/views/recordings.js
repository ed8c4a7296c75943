// What was kept: recordings opened, and two of them compared.
import { html, useEffect, useMemo, useState } from '../html.js';
import { get, getText, post, sentence } from '../api.js';
import { bytes, clock, plural } from '../format.js';
import { parse } from '../filter.js';
import { at, parseJson, pretty, textAt } from '../json.js';
import { conversation } from '../messages.js';
import { change, link, route } from '../route.js';
import { useStore } from '../store.js';
import { Messages } from '../parts/sequence.js';

/** @typedef {{ id: string, at: string, bytes: number }} Kept */

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
            ${kept.length > 1 && html`<${Choose} kept=${kept} />`}
        </aside>
        ${
            isComparing
                ? html`<${Compared} key=${`${a} ${b}`} a=${a} b=${b} />`
                : open !== undefined
                  ? html`<${Opened} key=${open} id=${open} />`
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

/** @param {{ id: string }} props */
function Opened({ id }) {
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
    const calls = useMemo(() => (lines === null ? [] : grouped(lines)), [lines]);
    const [shown, setShown] = useState(50);
    return html`<section class="maker" aria-label=${`The recording ${id}`}>
        <header class="detail-head">
            <a class="back" href=${link('recordings')}>‹ Recordings</a>
            <h2>${id}</h2>
            <span class="muted">${plural(calls.length, 'call')}</span>
            <span class="grow"></span>
            <a class="quiet" href=${path} download=${`${id}.jsonl`}>Download</a>
        </header>
        ${why !== '' && html`<p class="notice" role="alert">${why}</p>`}
        ${calls.slice(0, shown).map((call) => html`<${OneCall} key=${call.id} call=${call} />`)}
        ${calls.length > shown && html`<p class="pad"><button type="button" class="link" onClick=${() => setShown(shown * 4)}>${plural(calls.length - shown, 'more call')}</button></p>`}
    </section>`;
}

/** @param {{ call: ReturnType<typeof grouped>[number] }} props */
function OneCall({ call }) {
    const [open, setOpen] = useState(false);
    const talk = useMemo(() => (open ? conversation(call.text, parseJson(call.text)) : null), [open]);
    return html`<article class="kept-call">
        <button type="button" class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>
            <span aria-hidden="true">${open ? '▾' : '▸'}</span> <span class="num muted">${clock(call.at)}</span> ${call.name}
            <span class="muted">${plural(call.count, 'message')}</span>
        </button>
        ${talk !== null && html`<${Messages} talk=${talk} mode="pretty" />`}
    </article>`;
}

/** The lines of a recording by call; what belongs to none is one group. @param {string} lines */
function grouped(lines) {
    /** @type {Map<string, { id: string, at: string, name: string, count: number, first: number, lines: string[] }>} */
    const calls = new Map();
    for (const line of lines.split('\n')) {
        if (line === '') continue;
        const node = parseJson(line);
        const message = at(node, 'message');
        if (message === undefined) continue;
        const id = textAt(node, 'call') ?? 'the rest';
        const t = Number(line.slice(at(node, 't')?.start, at(node, 't')?.end));
        const known = calls.get(id) ?? { id, at: new Date(t).toISOString(), name: '', count: 0, first: t, lines: [] };
        const method = textAt(message, 'method') ?? '';
        if (known.name === '')
            known.name = [method, textAt(message, 'params', 'name') ?? textAt(message, 'params', 'uri')]
                .filter(Boolean)
                .join(' ');
        known.count += 1;
        const text = line.slice(message.start, message.end);
        const side = JSON.stringify(textAt(node, 'side') ?? 'client');
        const dir = JSON.stringify(textAt(node, 'dir') ?? 'in');
        known.lines.push(
            `{"t":${t - known.first},"side":${side},"dir":${dir},"size":${text.length},"message":${text}}`,
        );
        calls.set(id, known);
    }
    return [...calls.values()].map(({ lines: all, ...call }) => ({ ...call, text: `[${all.join(',')}]` }));
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
