// Chunks of a stream into what is in it: events, or lines of JSON.

/** @typedef {{ event: string, data: string }} SseEvent */

export class SseDecoder {
    constructor() {
        this.rest = '';
        this.event = '';
        /** @type {string[]} */
        this.data = [];
    }

    /**
     * The events that this chunk completes. Comments, ids and retry times are skipped.
     * @param {string} chunk
     * @returns {SseEvent[]}
     */
    feed(chunk) {
        const text = this.rest + chunk;
        /** @type {SseEvent[]} */
        const events = [];
        let from = 0;
        for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
            const line = text.slice(from, text[end - 1] === '\r' && end > from ? end - 1 : end);
            from = end + 1;
            if (line === '') this.#end(events);
            else this.#line(line);
        }
        this.rest = text.slice(from);
        return events;
    }

    /** @param {string} line */
    #line(line) {
        const colon = line.indexOf(':');
        if (colon === 0) return;
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
        if (name === 'data') this.data.push(value);
        else if (name === 'event') this.event = value;
    }

    /** @param {SseEvent[]} events */
    #end(events) {
        if (this.data.length > 0) events.push({ event: this.event || 'message', data: this.data.join('\n') });
        this.event = '';
        this.data = [];
    }
}

export class LineDecoder {
    constructor() {
        this.rest = '';
    }

    /** The values of the lines that this chunk completes; empty lines only keep the connection. @param {string} chunk @returns {any[]} */
    feed(chunk) {
        const lines = (this.rest + chunk).split('\n');
        this.rest = lines.pop() ?? '';
        return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line));
    }
}
