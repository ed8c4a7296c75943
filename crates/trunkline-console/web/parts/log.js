// The last lines of a server, and those to come.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js';
import { follow } from '../api.js';
import { clock, plural } from '../format.js';
import { LineDecoder } from '../sse.js';

/** @typedef {(import('../types.d.ts').LogLine & { missed?: undefined }) | { missed: number }} Entry */

/** @param {{ server: string }} props */
export function Log({ server }) {
    const [lines, setLines] = useState(/** @type {Entry[]} */ ([]));
    const [why, setWhy] = useState('');
    const box = useRef(/** @type {HTMLDivElement | null} */ (null));
    const atEnd = useRef(true);
    useEffect(() => {
        const abort = new AbortController();
        const path = `/v1/logs?server=${encodeURIComponent(server)}&limit=${SHOWN}&follow=1`;
        setLines([]);
        setWhy('');
        // Whenever it is opened, the stream begins with the lines that there were.
        let isNew = true;
        void follow(() => path, {
            signal: abort.signal,
            decoder: () => new LineDecoder(),
            opened: () => {
                isNew = true;
                setWhy('');
            },
            heard: (more) => {
                const all = isNew;
                isNew = false;
                setLines((before) => [...(all ? [] : before), ...more].slice(-SHOWN));
            },
            lost: (why) => setWhy(`The log stands still: ${why} It is asked for again.`),
        });
        return () => abort.abort();
    }, [server]);
    useLayoutEffect(() => {
        const it = box.current;
        if (it !== null && atEnd.current) it.scrollTop = it.scrollHeight;
    }, [lines, why]);
    const look = () => {
        const it = box.current;
        if (it !== null) atEnd.current = it.scrollHeight - it.scrollTop - it.clientHeight < 30;
    };
    return html`<div class="log" role="log" aria-label=${`The log of ${server}`} tabindex="0" ref=${box} onScroll=${look}>
        ${lines.length === 0 && why === '' && html`<p class="muted">It has written nothing.</p>`}
        ${lines.map((it, place) =>
            it.missed === undefined
                ? html`<div key=${place} class=${it.source}>
                          <span class="muted">${clock(it.at)} ${it.instance === undefined ? it.source : `#${it.instance}`}</span> ${it.line}
                      </div>`
                : html`<div key=${place} class="missed">${plural(it.missed, 'line')} came too fast and are not shown.</div>`,
        )}
        ${why !== '' && html`<p class="outcome failed">${why}</p>`}
    </div>`;
}

const SHOWN = 500;
