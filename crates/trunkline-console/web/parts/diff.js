// What differs between two texts, line by line.
import { html, useMemo } from '../html.js';
import { diffLines, within } from '../diff.js';

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
                    <span class="sign">${SIGNS[kind]}</span>${kind === 'gap' ? html`<i>${text}</i>` : marked(lines, at)}
                </div>`,
        )}
    </div>`;
}

/** A line that took the place of one other: what differs in it is marked. @param {import('../diff.js').DiffLine[]} lines @param {number} at */
function marked(lines, at) {
    const line = lines[at];
    if (line === undefined) return '';
    const other = lines[line.kind === 'less' ? at + 1 : at - 1];
    const isPair =
        (line.kind === 'less' && other?.kind === 'more' && lines[at - 1]?.kind !== 'less') ||
        (line.kind === 'more' && other?.kind === 'less' && lines[at + 1]?.kind !== 'more');
    if (!isPair || other === undefined) return line.text;
    const { head, one, tail } = within(line.text, other.text);
    return head.trim().length + tail.length < 6 ? line.text : html`${head}<mark>${one}</mark>${tail}`;
}

const SIGNS = { same: ' ', less: '-', more: '+', gap: '⋯' };
