// JSON as a tree that folds.
import { html, useMemo, useState } from '../html.js';
import { bytes, count } from '../format.js';
import { compact, parseJson, textAt } from '../json.js';

/** @typedef {import('../json.js').Json} Json */

/** @param {{ node: Json, label: string }} props */
export function JsonTree({ node, label }) {
    return html`<div class="json" role="group" aria-label=${label}><${Value} node=${node} depth=${0} /></div>`;
}

/** @param {{ node: Json, depth: number, name?: string | undefined }} props */
function Value({ node, depth, name }) {
    if (node.kind === 'object' || node.kind === 'array')
        return html`<${Branch} node=${node} depth=${depth} name=${name} />`;
    return html`<div class="leaf">
        <${Name} name=${name} />${
            node.kind === 'string'
                ? html`<${Text} text=${node.text} depth=${depth} />`
                : html`<span class=${node.kind}>${node.text}</span>`
        }
    </div>`;
}

/** @param {{ node: import('../json.js').JsonObject | import('../json.js').JsonArray, depth: number, name?: string }} props */
function Branch({ node, depth, name }) {
    /** @type {{ key: string | undefined, value: Json }[]} */
    const entries = node.kind === 'object' ? node.members : node.items.map((value) => ({ key: undefined, value }));
    const [open, setOpen] = useState(depth < 6 && entries.length <= 200);
    const [shown, setShown] = useState(AT_ONCE);
    const [from, to] = node.kind === 'object' ? ['{', '}'] : ['[', ']'];
    if (entries.length === 0) return html`<div class="leaf"><${Name} name=${name} />${from}${to}</div>`;
    if (node.kind === 'array' && isShort(node))
        return html`<div class="leaf"><${Name} name=${name} />${spread(node)}</div>`;
    const many = `${count(entries.length)} ${node.kind === 'object' ? 'members' : 'items'}`;
    const picture = node.kind === 'object' ? imageOf(node) : null;
    return html`<div class="branch">
        <button class="fold" type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}>
            <span class="mark" aria-hidden="true">${open ? '▾' : '▸'}</span><${Name} name=${name} />${
                open ? from : html`${from} <span class="muted">${many}</span> ${to}`
            }
        </button>
        ${
            open &&
            html`<div class="inside">
                ${picture !== null && html`<img class="picture" src=${picture} alt="the image of this block" />`}
                ${entries
                    .slice(0, shown)
                    .map(
                        ({ key, value }, at) =>
                            html`<${Value} key=${at} name=${key} node=${value} depth=${depth + 1} />`,
                    )}
                ${
                    entries.length > shown &&
                    html`<button class="link" type="button" onClick=${() => setShown(shown * 5)}>
                    ${count(entries.length - shown)} more
                </button>`
                }
            </div>
            <div class="close">${to}</div>`
        }
    </div>`;
}

/** Whether it reads better in one line: a few plain values. @param {import('../json.js').JsonArray} node */
function isShort(node) {
    if (node.items.length > 8) return false;
    return node.items.every((it) => it.kind !== 'object' && it.kind !== 'array') && compact(node).length < 60;
}

/** @param {import('../json.js').JsonArray} node */
function spread(node) {
    return html`[${node.items.map((item, at) => html`${at > 0 && ', '}<span class=${item.kind}>${compact(item)}</span>`)}]`;
}

/** @param {{ name?: string | undefined }} props */
function Name({ name }) {
    return name === undefined ? null : html`<span class="key">${name}</span><span class="muted">: </span>`;
}

/** A string; one that is itself JSON can be opened. @param {{ text: string, depth: number }} props */
function Text({ text, depth }) {
    const [whole, setWhole] = useState(false);
    const [inner, setInner] = useState(false);
    const inside = useMemo(() => (/^\s*[[{]/.test(text) ? tryParse(text) : null), [text]);
    if (inside !== null && inner) {
        return html`<button class="link" type="button" onClick=${() => setInner(false)}>as text</button>
            <div class="inside"><${Value} node=${inside} depth=${depth + 1} /></div>`;
    }
    const cut = !whole && text.length > LONG + 200;
    return html`<span class="string">"${cut ? text.slice(0, LONG) : text}${cut ? '…' : '"'}</span>
        ${
            cut &&
            html` <button class="link" type="button" onClick=${() => setWhole(true)}>all ${bytes(text.length)}</button>`
        }
        ${
            inside !== null &&
            html` <button class="link" type="button" onClick=${() => setInner(true)}>as JSON</button>`
        }`;
}

/** @param {string} text */
function tryParse(text) {
    try {
        return parseJson(text);
    } catch {
        return null;
    }
}

/** An image block of MCP, as an address that the page may show. @param {Json} node */
function imageOf(node) {
    const type = textAt(node, 'mimeType') ?? '';
    const data = textAt(node, 'data') ?? textAt(node, 'blob') ?? '';
    if (!/^image\/(png|jpeg|gif|webp)$/.test(type) || !/^[A-Za-z0-9+/=]{16,}$/.test(data)) return null;
    return `data:${type};base64,${data}`;
}

const AT_ONCE = 100;
const LONG = 1200;
