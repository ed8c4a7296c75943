// The frame of the page: where one is, where one can go, and the view itself.
import { html, useEffect, useState } from './html.js';
import { get, leave, session } from './api.js';
import { MOD, useKeys } from './keys.js';
import { link, route } from './route.js';
import { useStore } from './store.js';
import { nextTheme, theme } from './theme.js';
import { Help } from './parts/help.js';
import { Palette } from './parts/palette.js';
import { Entry } from './views/entry.js';
import { VIEWS } from './views.js';

/** @typedef {import('./types.d.ts').Status} Status */

export function App() {
    const current = useStore(session);
    if (current.state === 'asking') return null;
    if (current.state === 'locked') return html`<${Entry} why=${current.why} />`;
    return html`<${Frame} />`;
}

function Frame() {
    const { view } = useStore(route);
    const mode = useStore(theme);
    const [dialog, setDialog] = useState(/** @type {'palette' | 'help' | null} */ (null));
    const status = useStatus();
    const shown = VIEWS.find(({ name }) => name === view) ?? VIEWS[0];
    useEffect(() => {
        document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
        document.title = `${shown?.label ?? ''} · trunkline`;
    }, [shown]);
    useKeys({
        'mod+k': () => setDialog(dialog === 'palette' ? null : 'palette'),
        '?': () => setDialog('help'),
        t: nextTheme,
    });
    const close = () => setDialog(null);
    return html`<header class="top">
            <a class="brand" href=${link('traffic')}><img src="/web/icon.svg" alt="" width="16" height="16" /> trunkline</a>
            <nav aria-label="Views">
                ${VIEWS.map(
                    ({ name, label, badge }) =>
                        html`<a key=${name} href=${link(name)} aria-current=${shown?.name === name ? 'page' : undefined}>
                            ${label}${(badge?.(status) ?? 0) > 0 && html` <b class="badge">${badge?.(status)}</b>`}
                        </a>`,
                )}
            </nav>
            <span class="grow"></span>
            <button type="button" class="quiet wide-only" onClick=${() => setDialog('palette')}>Search <kbd>${MOD}K</kbd></button>
            <button type="button" class="quiet wide-only" aria-label=${`Theme: ${mode}`} title=${`Theme: ${mode} (t)`} onClick=${nextTheme}>
                ${mode === 'dark' ? '☾' : mode === 'light' ? '☀' : '◐'}
            </button>
            <button type="button" class="quiet" aria-label="Keys" title="Keys (?)" onClick=${() => setDialog('help')}>?</button>
            <button type="button" class="quiet" onClick=${() => void leave()}>Sign out</button>
        </header>
        <main>
            <h1 class="unseen">${shown?.label}</h1>
            ${shown !== undefined && html`<${shown.view} status=${status} url=${endpoint(status)} />`}
        </main>
        ${dialog === 'palette' && html`<${Palette} status=${status} close=${close} />`}
        ${dialog === 'help' && html`<${Help} close=${close} />`}`;
}

/** The gateway's status, looked at now and then. @returns {Status | null} */
function useStatus() {
    const [status, setStatus] = useState(/** @type {Status | null} */ (null));
    useEffect(() => {
        const abort = new AbortController();
        const look = () => {
            // A gateway that does not answer is said where its calls are shown.
            if (!document.hidden) get('/v1/status', abort.signal).then(setStatus, () => {});
        };
        look();
        const timer = setInterval(look, EVERY);
        return () => {
            abort.abort();
            clearInterval(timer);
        };
    }, []);
    return status;
}

/** Where clients find the gateway. @param {Status | null} status */
function endpoint(status) {
    const listen = status?.listen ?? '127.0.0.1:7373';
    const url = /^https?:/.test(listen) ? listen : `http://${listen}`;
    return /\/mcp$/.test(url) ? url : `${url.replace(/\/$/, '')}/mcp`;
}

const EVERY = 3000;
