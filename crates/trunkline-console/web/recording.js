// The lines of a recording into its calls, a piece at a time: there may be very many.
import { at, parseJson, textAt } from './json.js';

/**
 * @typedef {{ id: string, at: string, name: string, count: number, first: number, lines: string[] }} KeptCall
 */

export class Grouping {
    /** @param {string} text JSON lines */
    constructor(text) {
        this.text = text;
        this.from = 0;
        /** What belongs to no call is one group. @type {Map<string, KeptCall>} */
        this.calls = new Map();
    }

    get isWhole() {
        return this.from >= this.text.length;
    }

    /** Reads lines until it is time to do something else. @param {() => boolean} isTime */
    read(isTime) {
        while (!this.isWhole) {
            const found = this.text.indexOf('\n', this.from);
            const end = found < 0 ? this.text.length : found;
            const line = this.text.slice(this.from, end);
            this.from = end + 1;
            if (line.trim() !== '') this.#line(line);
            if (isTime()) return;
        }
    }

    /** @param {string} line */
    #line(line) {
        const node = parseJson(line);
        const message = at(node, 'message');
        if (message === undefined) return;
        const id = textAt(node, 'call') ?? 'the rest';
        const t = Number(line.slice(at(node, 't')?.start, at(node, 't')?.end));
        const known = this.calls.get(id) ?? {
            id,
            at: new Date(t).toISOString(),
            name: '',
            count: 0,
            first: t,
            lines: [],
        };
        if (known.name === '') {
            const subject = textAt(message, 'params', 'name') ?? textAt(message, 'params', 'uri');
            known.name = [textAt(message, 'method'), subject].filter(Boolean).join(' ');
        }
        known.count += 1;
        const text = line.slice(message.start, message.end);
        const side = JSON.stringify(textAt(node, 'side') ?? 'client');
        const dir = JSON.stringify(textAt(node, 'dir') ?? 'in');
        known.lines.push(
            `{"t":${t - known.first},"side":${side},"dir":${dir},"size":${text.length},"message":${text}}`,
        );
        this.calls.set(id, known);
    }
}

/** The messages of a call as the gateway would list them. @param {KeptCall} call */
export const listed = ({ lines }) => `[${lines.join(',')}]`;
