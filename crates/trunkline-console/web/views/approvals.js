// Definitions that are held back: what was pinned, what the server says now.
import { html, useEffect, useState } from '../html.js';
import { get, sentence } from '../api.js';
import { Deed } from '../parts/deed.js';
import { Diff } from '../parts/diff.js';

/**
 * @typedef {import('../types.d.ts').Held} Held
 * @typedef {import('../types.d.ts').Status} Status
 */

/** How many wait. @param {Status | null} status */
export const heldCount = (status) =>
    (status?.servers ?? []).reduce((sum, it) => sum + (it.heldBack ?? []).filter(({ refused }) => !refused).length, 0);

/** @param {{ status: Status | null }} props */
export function Approvals({ status }) {
    const [held, setHeld] = useState(/** @type {Held[] | null} */ (null));
    const [why, setWhy] = useState('');
    const [asked, ask] = useState(0);
    const version = JSON.stringify((status?.servers ?? []).map(({ name, heldBack }) => [name, heldBack]));
    useEffect(() => {
        const abort = new AbortController();
        get('/v1/approvals', abort.signal).then(
            (found) => {
                setHeld(found);
                setWhy('');
            },
            (error) => {
                if (!abort.signal.aborted) setWhy(sentence(error));
            },
        );
        return () => abort.abort();
    }, [version, asked]);

    if (why !== '') return html`<p class="empty">${why}</p>`;
    if (held === null) return html`<p class="empty muted">Reading…</p>`;
    if (held.length === 0) {
        return html`<div class="empty">
            <p>Nothing is held back.</p>
            <p class="muted">
                A tool, prompt or resource that a server has changed is listed here, until somebody approves the change.
            </p>
        </div>`;
    }
    const sorted = held.toSorted((one, other) => Number(one.refused) - Number(other.refused));
    return html`<div class="approvals" tabindex="0" role="region" aria-label="Held back">
        ${sorted.map((it) => html`<${One} key=${`${it.server} ${it.kind} ${it.name} ${it.digest}`} held=${it} again=${() => ask(asked + 1)} />`)}
    </div>`;
}

/** @param {{ held: Held, again: () => void }} props */
function One({ held, again }) {
    const body = { server: held.server, name: held.name, digest: held.digest };
    return html`<article class="held">
        <header>
            <h2>${held.server}.${held.name}</h2>
            <span class="muted">${held.kind}</span>
            <span class="outcome unknown">${WHY[held.why] ?? held.why}</span>
            ${held.refused && html`<span class="outcome failed">refused</span>`}
            <span class="grow"></span>
            <${Deed} path="/v1/approvals/approve" body=${body} label="Approve" done="Approved." title=${`Approve exactly ${held.digest}`} then=${again} primary />
            ${
                !held.refused &&
                html`<${Deed} path="/v1/approvals/refuse" body=${body} label="Refuse" done="It stays held back." title="Keep it held back, and do not ask again" then=${again} />`
            }
        </header>
        <p class="digests muted"><code>${held.digest}</code></p>
        ${
            held.is === null
                ? html`<p class="pad">The definition is too long to be kept; look at it at the server itself.</p>`
                : html`<${Diff} before=${written(held.was)} after=${written(held.is)} label=${`What changed in ${held.name}`} />`
        }
    </article>`;
}

/** A definition, a line per value. @param {unknown} definition */
function written(definition) {
    if (definition === null) return '';
    return typeof definition === 'string' ? definition : JSON.stringify(definition, null, 2);
}

/** @type {Record<string, string>} */
const WHY = {
    changed: 'differs from what was approved',
    new: 'is new',
    hidden: 'has invisible characters',
    full: 'is one too many',
    lost: 'has lost its pin',
};
