// JSON text into a tree that keeps the spelling of numbers and the order of members.

/**
 * @typedef {{ kind: 'object', start: number, end: number, members: { key: string, value: Json }[] }} JsonObject
 * @typedef {{ kind: 'array', start: number, end: number, items: Json[] }} JsonArray
 * @typedef {{ kind: 'string', start: number, end: number, text: string }} JsonString
 * @typedef {{ kind: 'number' | 'literal', start: number, end: number, text: string }} JsonWord
 * @typedef {JsonObject | JsonArray | JsonString | JsonWord} Json
 */

/** The tree of a text; throws a `SyntaxError` if it is no JSON. @param {string} text @returns {Json} */
export function parseJson(text) {
    const reader = new Reader(text);
    const value = reader.value();
    reader.blank();
    if (reader.at < text.length) throw reader.wrong();
    return value;
}

/** The value at a path of keys and indexes. @param {Json | undefined} node @param {...(string | number)} path @returns {Json | undefined} */
export function at(node, ...path) {
    for (const step of path) {
        if (node?.kind === 'object') node = node.members.findLast(({ key }) => key === step)?.value;
        else if (node?.kind === 'array' && typeof step === 'number') node = node.items[step];
        else return undefined;
    }
    return node;
}

/** The text of a string at a path, else undefined. @param {Json | undefined} node @param {...(string | number)} path */
export function textAt(node, ...path) {
    const found = at(node, ...path);
    return found?.kind === 'string' ? found.text : undefined;
}

/** One line per value, indented by two; numbers as they were spelled. @param {Json} node @param {string} [indent] @returns {string} */
export function pretty(node, indent = '') {
    const deeper = `${indent}  `;
    switch (node.kind) {
        case 'object':
            if (node.members.length === 0) return '{}';
            return `{\n${node.members
                .map(({ key, value }) => `${deeper}${JSON.stringify(key)}: ${pretty(value, deeper)}`)
                .join(',\n')}\n${indent}}`;
        case 'array':
            if (node.items.length === 0) return '[]';
            return `[\n${node.items.map((item) => deeper + pretty(item, deeper)).join(',\n')}\n${indent}]`;
        case 'string':
            return JSON.stringify(node.text);
        default:
            return node.text;
    }
}

/** Without blanks between tokens. @param {Json} node @returns {string} */
export function compact(node) {
    switch (node.kind) {
        case 'object':
            return `{${node.members.map(({ key, value }) => `${JSON.stringify(key)}:${compact(value)}`).join(',')}}`;
        case 'array':
            return `[${node.items.map(compact).join(',')}]`;
        case 'string':
            return JSON.stringify(node.text);
        default:
            return node.text;
    }
}

class Reader {
    /** @param {string} text */
    constructor(text) {
        this.text = text;
        this.at = 0;
        this.depth = 0;
    }

    wrong() {
        return new SyntaxError(`There is no JSON at character ${this.at}.`);
    }

    blank() {
        BLANK.lastIndex = this.at;
        BLANK.exec(this.text);
        this.at = BLANK.lastIndex;
    }

    /** @returns {Json} */
    value() {
        this.blank();
        const first = this.text[this.at];
        if (first === '{') return this.nested(() => this.object());
        if (first === '[') return this.nested(() => this.array());
        if (first === '"') return this.string();
        return this.word();
    }

    /** @param {() => Json} read */
    nested(read) {
        if (this.depth >= DEEPEST) throw this.wrong();
        this.depth += 1;
        const node = read();
        this.depth -= 1;
        return node;
    }

    /** @returns {JsonObject} */
    object() {
        const start = this.at;
        /** @type {JsonObject['members']} */
        const members = [];
        this.list('}', () => {
            this.blank();
            const key = this.string().text;
            this.blank();
            if (this.text[this.at] !== ':') throw this.wrong();
            this.at += 1;
            members.push({ key, value: this.value() });
        });
        return { kind: 'object', start, end: this.at, members };
    }

    /** @returns {JsonArray} */
    array() {
        const start = this.at;
        /** @type {Json[]} */
        const items = [];
        this.list(']', () => items.push(this.value()));
        return { kind: 'array', start, end: this.at, items };
    }

    /** @param {string} close @param {() => void} one */
    list(close, one) {
        this.at += 1;
        this.blank();
        if (this.text[this.at] === close) {
            this.at += 1;
            return;
        }
        for (;;) {
            one();
            this.blank();
            const next = this.text[this.at];
            if (next !== ',' && next !== close) throw this.wrong();
            this.at += 1;
            if (next === close) return;
        }
    }

    /** @returns {JsonString} */
    string() {
        const start = this.at;
        if (this.text[start] !== '"') throw this.wrong();
        let end = start + 1;
        for (; this.text[end] !== '"'; end += 1) {
            if (this.text[end] === undefined) throw this.wrong();
            if (this.text[end] === '\\') end += 1;
        }
        this.at = end + 1;
        return { kind: 'string', start, end: this.at, text: JSON.parse(this.text.slice(start, this.at)) };
    }

    /** @returns {JsonWord} */
    word() {
        const start = this.at;
        WORD.lastIndex = start;
        const text = WORD.exec(this.text)?.[0];
        if (text === undefined) throw this.wrong();
        this.at = start + text.length;
        const kind = /^[tfn]/.test(text) ? 'literal' : 'number';
        return { kind, start, end: this.at, text };
    }
}

const BLANK = /[ \t\n\r]*/y;
const WORD = /true|false|null|-?\d+(\.\d+)?([eE][+-]?\d+)?/y;
const DEEPEST = 400;
