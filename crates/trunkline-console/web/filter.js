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
        if (name === undefined || !Object.hasOwn(FIELDS, name)) words.push(whole);
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
 * @param {Record<string, string>} [more]
 */
export function query(typed, more = {}) {
    const { fields, text } = parse(typed);
    const params = new URLSearchParams({ ...fields, ...more });
    // While somebody types `since:1`, it means nothing yet.
    if (!/^\d+[smhd]$/.test(fields.since ?? '')) params.delete('since');
    if (text !== '') params.set('text', text);
    const written = params.toString();
    return written === '' ? '' : `?${written}`;
}
