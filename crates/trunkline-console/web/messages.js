// The messages of a call: which is the request, which the answer, and what was asked between.
import { at, textAt } from './json.js';

/** @typedef {import('./json.js').Json} Json */

/**
 * @typedef {object} Message
 * @property {number} t
 * @property {'client' | 'server'} side
 * @property {'in' | 'out'} dir
 * @property {number} size
 * @property {Json | undefined} node none if its content was not kept
 * @property {string} text as it was recorded
 * @property {string} label its method, or what kind of answer it is
 * @property {'request' | 'response' | 'notification' | 'unknown'} kind
 */

/**
 * @typedef {object} Conversation
 * @property {Message[]} messages
 * @property {Message | undefined} request what the client wanted
 * @property {Message | undefined} response what the client got in the end
 * @property {Message | undefined} serverRequest what the server was asked for it
 * @property {Message | undefined} serverResponse what the server answered
 * @property {{ question: Message, answer: Message | undefined }[]} questions
 * @property {{ t: number, side: string, dir: string, label: string }[]} marks
 */

/** @param {string} text the text that `list` is part of @param {Json | undefined} list @returns {Conversation} */
export function conversation(text, list) {
    const messages = list?.kind === 'array' ? list.items.map((node) => message(text, node)) : [];
    const find = (/** @type {string} */ side, /** @type {string} */ dir, /** @type {string} */ kind) =>
        messages.filter((it) => it.side === side && it.dir === dir && it.kind === kind);
    const hasClient = messages.some(({ side }) => side === 'client');
    return {
        messages,
        // What the gateway says to a server on its own has no client.
        request:
            find('client', 'in', 'request')[0] ??
            find('server', 'out', 'request')[0] ??
            find('server', 'in', 'notification')[0],
        response: hasClient ? find('client', 'out', 'response').at(-1) : find('server', 'in', 'response')[0],
        serverRequest: find('server', 'out', 'request').filter(({ label }) => label !== 'initialize')[0],
        serverResponse: find('server', 'in', 'response').at(-1),
        questions: questions(messages),
        marks: messages.map(({ t, side, dir, label }) => ({ t, side, dir, label })),
    };
}

/** Who says something to whom. @param {Message} message */
export function direction({ side, dir }) {
    if (side === 'client') return dir === 'in' ? 'client → gateway' : 'gateway → client';
    return dir === 'out' ? 'gateway → server' : 'server → gateway';
}

/** @param {string} text @param {Json} node @returns {Message} */
function message(text, node) {
    const number = (/** @type {string} */ name) => {
        const found = at(node, name);
        return found?.kind === 'number' ? Number(found.text) : 0;
    };
    const content = at(node, 'message');
    const isKept = content !== undefined && content.kind === 'object';
    return {
        t: number('t'),
        side: textAt(node, 'side') === 'server' ? 'server' : 'client',
        dir: textAt(node, 'dir') === 'out' ? 'out' : 'in',
        size: number('size'),
        node: isKept ? content : undefined,
        text: isKept ? text.slice(content.start, content.end) : '',
        ...named(isKept ? content : undefined),
    };
}

/** @param {Json | undefined} node @returns {{ label: string, kind: Message['kind'] }} */
function named(node) {
    if (node === undefined) return { label: 'not kept', kind: 'unknown' };
    const method = textAt(node, 'method');
    if (method !== undefined) return { label: method, kind: at(node, 'id') === undefined ? 'notification' : 'request' };
    const code = at(node, 'error', 'code');
    if (code !== undefined) return { label: `error ${code.kind === 'number' ? code.text : ''}`, kind: 'response' };
    if (textAt(node, 'result', 'resultType') === 'input_required')
        return { label: 'result: input required', kind: 'response' };
    const isError = at(node, 'result', 'isError');
    const failed = isError?.kind === 'literal' && isError.text === 'true';
    return { label: failed ? 'result: tool error' : 'result', kind: 'response' };
}

/** Questions to the client: requests of the older revisions, results of 2026-07-28 that require input. @param {Message[]} messages */
function questions(messages) {
    /** @type {Conversation['questions']} */
    const found = [];
    messages.forEach((question, place) => {
        if (question.side !== 'client' || question.dir !== 'out') return;
        const later = messages.slice(place + 1).filter((it) => it.side === 'client' && it.dir === 'in');
        if (question.kind === 'request') {
            const id = idOf(question.node);
            found.push({ question, answer: later.find((it) => it.kind === 'response' && idOf(it.node) === id) });
        } else if (at(question.node, 'result', 'inputRequests') !== undefined) {
            found.push({ question, answer: later.find((it) => at(it.node, 'params', 'inputResponses') !== undefined) });
        }
    });
    return found;
}

/** @param {Json | undefined} node */
function idOf(node) {
    const id = at(node, 'id');
    return id === undefined || id.kind === 'object' || id.kind === 'array' ? undefined : `${id.kind} ${id.text}`;
}
