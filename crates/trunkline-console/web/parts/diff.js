// What differs between two texts, line by line.
import { html, useMemo } from '../html.js';
import { diffLines } from '../diff.js';

/** @param {{ before: string, after: string, label: string }} props */
export function Diff({ before, after, label }) {
    const lines = useMemo(() => diffLines(before, after), [before, after]);
    if (!lines.some(({ kind }) => kind === 'less' || kind === 'more')) {
        return html`<p class="muted pad">Nothing differs.</p>`;
    }
    return html`<div class="diff" role="group" aria-label=${label}>
        ${lines.map(
            ({ kind, text }, at) =>
                html`<div key=${at} class=${`line ${kind}`}>
                    <span class="sign">${SIGNS[kind]}</span>${kind === 'gap' ? html`<i>${text}</i>` : text}
                </div>`,
        )}
    </div>`;
}

const SIGNS = { same: ' ', less: '-', more: '+', gap: '⋯' };
