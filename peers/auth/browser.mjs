// An authorization URL into what a person's browser makes of it: redirects are followed, cookies kept, nothing is shown.
// As a program it is that browser, for clients which open one: `node browser.mjs URL`.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Visits `url` and follows it to the end, or to the first address that `leaves` says is no longer its business. */
export async function visit(url, leaves = () => false) {
    const cookies = new Map();
    let at = new URL(url);
    for (let hops = 0; hops < 20; hops += 1) {
        const cookie = [...(cookies.get(at.host) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
        const headers = { accept: 'text/html', ...(cookie === '' ? {} : { cookie }) };
        const response = await fetch(at, { redirect: 'manual', headers, signal: AbortSignal.timeout(10_000) });
        for (const line of response.headers.getSetCookie()) {
            const [, name, value] = /^([^=;]+)=([^;]*)/.exec(line);
            const jar = cookies.get(at.host) ?? cookies.set(at.host, new Map()).get(at.host);
            if (value === '') jar.delete(name);
            else jar.set(name, value);
        }
        const location = response.headers.get('location');
        if (response.status < 300 || response.status > 399 || location === null) {
            return { at, status: response.status, page: await response.text() };
        }
        await response.body?.cancel();
        at = new URL(location, at);
        if (leaves(at)) return { at, status: response.status, page: '' };
    }
    throw new Error(`${url} led from one redirect to the next and never anywhere.`);
}

/** Visits an authorization URL up to the redirect to the client, which is not followed; what that tells the client. */
export async function approve(url) {
    const back = new URL(url).searchParams.get('redirect_uri');
    const { at, status, page } = await visit(url, (next) => next.href.startsWith(back));
    if (!at.href.startsWith(back)) throw new Error(`No way back to ${back}: ${status} at ${at.origin}${at.pathname}: ${page}`);
    return at.searchParams;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const { at, status } = await visit(process.argv[2]);
    console.error(`${status} at ${at.origin}${at.pathname}`);
    process.exitCode = status < 400 ? 0 : 1;
}
