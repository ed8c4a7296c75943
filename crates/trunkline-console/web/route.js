// The fragment of the URL ⇄ what is shown. Every state that is worth a link is in it.
import { Store } from './store.js';

/** @typedef {{ view: string, params: Record<string, string> }} Route */

/** @param {string} hash @returns {Route} */
export function parse(hash) {
    const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
    return { view: path === '' ? 'traffic' : path, params: Object.fromEntries(new URLSearchParams(search)) };
}

/** The link to a route; parameters that are empty are left out. @param {string} view @param {Record<string, string | undefined>} [params] */
export function link(view, params = {}) {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(params))
        if (value !== undefined && value !== '') search.set(name, value);
    const written = search.toString();
    return `#/${view}${written === '' ? '' : `?${written}`}`;
}

export const route = new Store(parse(location.hash));

/**
 * Changes some parameters of this view.
 * @param {Record<string, string | undefined>} changes
 * @param {{ push?: boolean }} [how] `push` makes a step that the browser's back undoes
 */
export function change(changes, { push = false } = {}) {
    const { view, params } = route.value;
    go(link(view, { ...params, ...changes }), { push });
}

/** @param {string} to @param {{ push?: boolean }} [how] */
export function go(to, { push = true } = {}) {
    if (to === location.hash) return;
    if (push) history.pushState(null, '', to);
    else history.replaceState(null, '', to);
    route.set(parse(to));
}

addEventListener('popstate', () => route.set(parse(location.hash)));
addEventListener('hashchange', () => route.set(parse(location.hash)));
