// What is typed into the filter ⇄ the parameters of the admin API.

/** The words that may stand before a colon, and what each is about. */
export const FIELDS = /** @type {const} */ ({
    server: 'the server, such as files or ci-*',
    outcome: 'how it ended, such as error',
    principal: 'who called',
    method: 'the method, such as tools/call',
    since: 'how far back, such as 15m',
});

/** @typedef {{ fields: Record<string, string>, text: string }} Filter */

/**
 * `server:files outcome:error some words`; a value with spaces stands in quotes.
 * @param {string} typed
 * @returns {Filter}
 */
export function parse(typed) {
    /** @type {Record<string, string>} */
    const fields = {};
    const words = [];
    for (const [whole, name, quoted, plain] of typed.matchAll(/([a-z]+):(?:"([^"]*)"|(\S*))|\S+/g)) {
        const value = quoted ?? plain;
        if (name === undefined || !(name in FIELDS)) words.push(whole);
        // Somebody is about to type the value.
        else if (value !== undefined && value !== '') fields[name] = value;
    }
    return { fields, text: words.join(' ') };
}

/** @param {Filter} filter */
export function format({ fields, text }) {
    const quote = (/** @type {string} */ value) => (/\s/.test(value) ? `"${value}"` : value);
    const parts = Object.entries(fields).map(([name, value]) => `${name}:${quote(value)}`);
    return [...parts, text].filter((part) => part !== '').join(' ');
}

/** The filter with one field set, or without it if it was set so already. @param {string} typed @param {string} name @param {string} value */
export function toggle(typed, name, value) {
    const filter = parse(typed);
    if (filter.fields[name] === value) delete filter.fields[name];
    else filter.fields[name] = value;
    return format(filter);
}

/**
 * The query of `/v1/traffic` and its stream.
 * @param {string} typed
 * @param {number} now
 * @param {Record<string, string>} [more]
 */
export function query(typed, now, more = {}) {
    const { fields, text } = parse(typed);
    const { since, ...same } = fields;
    const params = new URLSearchParams({ ...same, ...more });
    const from = since === undefined ? undefined : instant(since, now);
    if (from !== undefined) params.set('since', from);
    if (text !== '') params.set('text', text);
    const written = params.toString();
    return written === '' ? '' : `?${written}`;
}

/** `15m`, `2h`, `30s`, `1d` or a date → RFC 3339. @param {string} since @param {number} now */
function instant(since, now) {
    const found = /^(\d+)(s|m|h|d)$/.exec(since);
    if (found !== null) return new Date(now - Number(found[1]) * (UNITS[found[2] ?? ''] ?? 0)).toISOString();
    const date = Date.parse(since);
    return Number.isNaN(date) ? undefined : new Date(date).toISOString();
}

/** @type {Record<string, number>} */
const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
