// The messages of a call in order, between the client, the gateway and the server.
import { html, useState } from '../html.js';
import { bytes, duration } from '../format.js';
import { direction } from '../messages.js';
import { Copy } from './copy.js';
import { NotKept } from './exchange.js';
import { JsonTree } from './tree.js';

/** @param {{ talk: import('../messages.js').Conversation, mode: string, note?: string | null }} props */
export function Messages({ talk, mode, note }) {
    if (talk.messages.length === 0) return html`<${NotKept} note=${note} />`;
    return html`<div class="sequence-head" aria-hidden="true">
            <span></span><span class="ends"><b>client</b><b>gateway</b><b>server</b></span>
        </div>
        <ol class="sequence">
            ${talk.messages.map((message, place) => html`<${One} key=${place} message=${message} mode=${mode} />`)}
        </ol>
        ${note && html`<${NotKept} note=${note} />`}`;
}

/** @param {{ message: import('../messages.js').Message, mode: string }} props */
function One({ message, mode }) {
    const [open, setOpen] = useState(false);
    const { t, side, dir, label, size, node } = message;
    const toRight = (side === 'client') === (dir === 'in');
    return html`<li class=${open ? 'open' : ''}>
        <button
            type="button"
            class="message"
            aria-expanded=${open}
            disabled=${node === undefined}
            onClick=${() => setOpen(!open)}
        >
            <span class="num">${duration(t)}</span>
            <span class=${`arrow ${side} ${toRight ? 'right' : 'left'} ${label.includes('error') ? 'failed' : ''}`}><i></i><span class="unseen">${direction(message)}</span></span>
            <span class=${`label ${message.kind}`}>${label}</span>
            <span class="num muted">${bytes(size)}</span>
        </button>
        ${
            open &&
            node !== undefined &&
            html`<div class="content">
            <${Copy} text=${message.text}>Copy</${Copy}>
            ${
                mode === 'raw'
                    ? html`<pre class="raw" tabindex="0" aria-label=${label}>${message.text}</pre>`
                    : html`<${JsonTree} node=${node} label=${label} />`
            }
        </div>`
        }
    </li>`;
}
