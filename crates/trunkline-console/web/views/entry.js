// What somebody sees who has not entered.
import { html, useState } from '../html.js';
import { open } from '../api.js';
import { Said } from '../parts/said.js';

/** @param {{ why: string }} props */
export function Entry({ why }) {
    const [text, setText] = useState('');
    const enter = (/** @type {Event} */ event) => {
        event.preventDefault();
        const key = /#k=([\w-]+)/.exec(text)?.[1] ?? text.trim();
        if (key !== '') void open(key);
    };
    return html`<main class="entry">
        <h1><img src="/web/icon.svg" alt="" width="20" height="20" /> trunkline</h1>
        ${why !== '' && html`<p class="notice" role="alert"><${Said} text=${why} /></p>`}
        <p>The console opens with a link that is good once, for five minutes. For a new one:</p>
        <pre>trunkline console</pre>
        <form onSubmit=${enter}>
            <label for="link">Link</label>
            <input
                id="link"
                type="text"
                autocomplete="off"
                spellcheck=${false}
                placeholder="http://127.0.0.1:7374/#k=…"
                value=${text}
                onInput=${(/** @type {any} */ event) => setText(event.target.value)}
            />
            <button type="submit" class="solid">Enter</button>
        </form>
    </main>`;
}
