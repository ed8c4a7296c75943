// A sentence of the gateway; what it puts in backticks is shown as code.
import { html } from '../html.js';

/** @param {{ text: string | null | undefined }} props */
export function Said({ text }) {
    return (text ?? '').split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));
}
