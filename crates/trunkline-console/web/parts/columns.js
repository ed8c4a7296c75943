// The head of a table: a name for each column.
import { html } from '../html.js';

/** @typedef {[name: string, kind?: string, title?: string]} Column */

/** @param {{ of: Column[] }} props */
export function Columns({ of }) {
    const column = (/** @type {Column} */ [name, kind, title]) =>
        html`<th key=${name} scope="col" class=${kind} title=${title}>${name}</th>`;
    return html`<thead>
        <tr>${of.map(column)}</tr>
    </thead>`;
}
