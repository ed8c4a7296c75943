// A request into the command that makes it again.
import { at, compact, textAt } from './json.js';

/** @typedef {import('./json.js').Json} Json */

/**
 * The command line for a request as the client sent it, or null if no command makes such a request.
 * @param {Json | undefined} request
 * @param {string} url
 * @param {{ server: string | null, told: Json | undefined }} target the server, and what the gateway told it
 * @returns {string | null}
 */
export function commandLine(request, url, target) {
    const method = textAt(request, 'method');
    const params = at(request, 'params');
    const name = textAt(params, 'name') ?? '';
    const given = at(params, 'arguments');
    const hasAny = given?.kind === 'object' && given.members.length > 0;
    // Who uses the server's own name may have chosen that server, and finds it there in any case.
    const isOwn = name !== '' && textAt(target.told, 'params', 'name') === name;
    const to = quote(isOwn && target.server !== null ? `${url}/server/${encodeURIComponent(target.server)}` : url);
    switch (method) {
        case 'tools/call':
            return `trunkline call ${quote(name)}${hasAny ? ` --args ${quote(compact(given))}` : ''} ${to}`;
        case 'prompts/get': {
            const pairs = hasAny ? given.members.map(({ key, value }) => ` ${quote(`${key}=${plain(value)}`)}`) : [];
            return `trunkline prompt ${quote(name)}${pairs.join('')} ${to}`;
        }
        case 'resources/read':
            return `trunkline read ${quote(textAt(params, 'uri') ?? '')} ${to}`;
        case 'tools/list':
            return `trunkline list tools ${to}`;
        case 'prompts/list':
            return `trunkline list prompts ${to}`;
        case 'resources/list':
            return `trunkline list resources ${to}`;
        case 'resources/templates/list':
            return `trunkline list templates ${to}`;
        default:
            return null;
    }
}

/** @param {Json} value */
const plain = (value) => (value.kind === 'string' ? value.text : compact(value));

/** For a POSIX shell. @param {string} word */
export function quote(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
