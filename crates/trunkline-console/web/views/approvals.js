// Definitions that are held back: what was pinned, what the server says now.
import { html, useEffect, useMemo, useState } from '../html.js';
import { get, sentence } from '../api.js';
import { parseJson, pretty } from '../json.js';
import { Deed } from '../parts/deed.js';
import { Diff } from '../parts/diff.js';

/**
 * @typedef {import('../types.d.ts').Held} Held
 * @typedef {import('../types.d.ts').Status} Status
 */

/** How many wait. @param {Status | null} status */
export const heldCount = (status) => (status?.servers ?? []).reduce((sum, it) => sum + (it.heldBack?.length ?? 0), 0);

/** @param {{ status: Status | null }} props */
export function Approvals({ status }) {
    const waiting = (status?.servers ?? []).filter((it) => (it.heldBack?.length ?? 0) > 0);
    const version = JSON.stringify(waiting.map(({ name, heldBack }) => [name, heldBack]));
    const [held, setHeld] = useState(/** @type {{ server: string, held: Held[] }[] | null} */ (null));
    const [why, setWhy] = useState('');
    useEffect(() => {
        if (status === null) return;
        const abort = new AbortController();
        const all = waiting.map(({ name }) => get(`/v1/servers/${encodeURIComponent(name)}/held`, abort.signal));
        Promise.all(all).then(
            (found) => {
                setHeld(found);
                setWhy('');
            },
            (error) => {
                if (!abort.signal.aborted) setWhy(sentence(error));
            },
        );
        return () => abort.abort();
    }, [version, status === null]);

    if (why !== '') return html`<p class="empty">${why}</p>`;
    if (held === null) return html`<p class="empty muted">Reading…</p>`;
    const all = held.flatMap(({ server, held: list }) => list.map((it) => ({ server, it })));
    if (all.length === 0) {
        return html`<div class="empty">
            <p>Nothing is held back.</p>
            <p class="muted">
                A server with <code>pin</code> in the catalog whose tools, prompts or resources change is listed here, until
                somebody approves the change.
            </p>
        </div>`;
    }
    return html`<div class="approvals" tabindex="0" role="region" aria-label="Held back">
        ${all.map(({ server, it }) => html`<${One} key=${`${server} ${it.kind} ${it.name} ${it.seen}`} server=${server} held=${it} />`)}
    </div>`;
}

/** @param {{ server: string, held: Held }} props */
function One({ server, held }) {
    const [before, after] = useMemo(() => [text(held.before), text(held.definition)], [held]);
    const approve = [{ kind: held.kind, name: held.name, digest: held.seen }];
    return html`<article class="held">
        <header>
            <h2>${server}.${held.name}</h2>
            <span class="muted">${held.kind}</span>
            <span class="outcome unknown">${WHY[held.why] ?? held.why}</span>
            <span class="grow"></span>
            <${Deed}
                path=${`/v1/servers/${encodeURIComponent(server)}/approve`}
                body=${{ approve }}
                label="Approve"
                done="Approved."
                title=${`Approve exactly ${held.seen}`}
                primary
            />
        </header>
        <p class="digests muted"><code>${held.pinned ?? 'no pin'}</code> → <code>${held.seen}</code></p>
        ${
            after === null
                ? html`<p class="pad">The definition is too long to be kept; look at it with the server itself.</p>`
                : html`<${Diff} before=${before ?? ''} after=${after} label=${`What changed in ${held.name}`} />`
        }
    </article>`;
}

/** A definition, a line per value. @param {string | null} definition */
function text(definition) {
    if (definition === null) return null;
    try {
        return pretty(parseJson(definition));
    } catch {
        return definition;
    }
}

/** @type {Record<string, string>} */
const WHY = {
    changed: 'differs from what was approved',
    new: 'is new',
    hidden: 'has invisible characters',
    full: 'is one too many',
    lost: 'has lost its pin',
};
