// The last lines of a server, and those to come.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js';
import { readLines, sentence } from '../api.js';
import { clock } from '../format.js';

/** @typedef {import('../types.d.ts').LogLine} LogLine */

/** @param {{ server: string }} props */
export function Log({ server }) {
    const [lines, setLines] = useState(/** @type {LogLine[]} */ ([]));
    const [why, setWhy] = useState('');
    const box = useRef(/** @type {HTMLDivElement | null} */ (null));
    const atEnd = useRef(true);
    useEffect(() => {
        const abort = new AbortController();
        setLines([]);
        setWhy('');
        const path = `/v1/logs?server=${encodeURIComponent(server)}&limit=${SHOWN}&follow=1`;
        readLines(path, abort.signal, (more) => {
            setLines((before) => [...before, ...more.filter((it) => typeof it.line === 'string')].slice(-SHOWN));
        }).catch((error) => {
            if (!abort.signal.aborted) setWhy(sentence(error));
        });
        return () => abort.abort();
    }, [server]);
    useLayoutEffect(() => {
        const it = box.current;
        if (it !== null && atEnd.current) it.scrollTop = it.scrollHeight;
    }, [lines]);
    const look = () => {
        const it = box.current;
        if (it !== null) atEnd.current = it.scrollHeight - it.scrollTop - it.clientHeight < 30;
    };
    return html`<div class="log" role="log" aria-label=${`The log of ${server}`} tabindex="0" ref=${box} onScroll=${look}>
        ${why !== '' && html`<p class="outcome failed">${why}</p>`}
        ${lines.length === 0 && why === '' && html`<p class="muted">It has written nothing.</p>`}
        ${lines.map(
            ({ at, instance, source, line }, place) =>
                html`<div key=${place} class=${source}>
                    <span class="muted">${clock(at)} ${instance === undefined ? source : `#${instance}`}</span> ${line}
                </div>`,
        )}
    </div>`;
}

const SHOWN = 500;
