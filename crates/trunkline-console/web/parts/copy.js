// A button that puts a text into the clipboard and says so.
import { html, useEffect, useState } from '../html.js';

/** @param {{ text: string | (() => string), children: any, title?: string }} props */
export function Copy({ text, children, title }) {
    const [done, setDone] = useState('');
    useEffect(() => {
        if (done === '') return;
        const timer = setTimeout(() => setDone(''), 1500);
        return () => clearTimeout(timer);
    }, [done]);
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
            setDone('copied');
        } catch {
            setDone('not allowed');
        }
    };
    return html`<button type="button" class="quiet" title=${title} onClick=${copy}>
        <span aria-live="polite">${done === '' ? children : done}</span>
    </button>`;
}
