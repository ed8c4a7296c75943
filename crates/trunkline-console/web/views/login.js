// A login at any URL, one request at a time.
import { html, useState } from '../html.js';
import { post, sentence } from '../api.js';
import { parseJson } from '../json.js';
import { plural } from '../format.js';
import { Said } from '../parts/said.js';
import { JsonTree } from '../parts/tree.js';

/**
 * @typedef {{ title: string, request: any, response: any, decided: string, failed: string | null }} Step
 * @typedef {{ id: string, state: 'waiting' | 'page' | 'done' | 'failed', steps: Step[], page: string | null, told: string | null }} LoginState
 */

export function Login() {
    const [url, setUrl] = useState('');
    const [login, setLogin] = useState(/** @type {LoginState | null} */ (null));
    const [why, setWhy] = useState('');
    const [isBusy, setBusy] = useState(false);
    const ask = async (/** @type {string} */ path, /** @type {unknown} */ body) => {
        setBusy(true);
        setWhy('');
        try {
            setLogin(await post(path, body));
        } catch (error) {
            setWhy(sentence(error));
        }
        setBusy(false);
    };
    const start = (/** @type {Event} */ event) => {
        event.preventDefault();
        void ask('/v1/login/start', { url: url.trim() });
    };
    const next = () => void ask('/v1/login/step', { id: login?.id });
    return html`<div class="login">
        <form class="toolbar" onSubmit=${start}>
            <label for="login-url">Server</label>
            <input id="login-url" type="text" inputmode="url" placeholder="https://server.example/mcp" autocomplete="off" spellcheck=${false} value=${url} onInput=${(/** @type {any} */ event) => setUrl(event.target.value)} />
            <button type="submit" class=${login === null ? 'solid' : 'quiet boxed'} disabled=${isBusy || url.trim() === ''}>Begin</button>
        </form>
        ${why !== '' && html`<p class="notice" role="alert">${why}</p>`}
        <div class="steps" tabindex="0" role="region" aria-label="Steps">
            ${
                login === null &&
                why === '' &&
                html`<p class="muted pad">
                Each request of a login waits here until you send it, with what came back and what the client made of it. Tokens
                are masked, and forgotten at the end.
            </p>`
            }
            <ol>
                ${(login?.steps ?? []).map(
                    (step, at) =>
                        html`<${One} key=${at} number=${at + 1} step=${step} isLast=${at === (login?.steps.length ?? 0) - 1} state=${login?.state ?? ''} next=${next} isBusy=${isBusy} />`,
                )}
            </ol>
            ${
                login?.state === 'page' &&
                html`<div class="ask">
                <p>Now a person logs in, in the browser of this machine:</p>
                <p>${isWeb(login.page) ? html`<a href=${login.page} target="_blank" rel="noopener noreferrer">${login.page}</a>` : html`<code>${login.page}</code>`}</p>
                <p><button type="button" class="solid" disabled=${isBusy} onClick=${next}>I have been there</button></p>
            </div>`
            }
            ${
                login?.told &&
                html`<p class=${`reason ${login.state === 'done' ? 'good' : 'failed'}`} role="status"><${Said} text=${login.told} /></p>`
            }
        </div>
    </div>`;
}

/** @param {{ number: number, step: Step, isLast: boolean, state: string, next: () => void, isBusy: boolean }} props */
function One({ number, step, isLast, state, next, isBusy }) {
    const { request, response } = step;
    const waits = isLast && response === null && step.failed === null && state === 'waiting';
    return html`<li class=${`login-step ${step.failed === null ? '' : 'failed'}`}>
        <h2>${number}. ${step.title}</h2>
        <div class="pair">
            <${Side} title=${`${request.method} ${request.url}`} of=${request} label="The request" />
            ${response !== null && html`<${Side} title=${`answered ${response.status}`} of=${response} label="The answer" />`}
        </div>
        ${waits && html`<p class="pad"><button type="button" class="solid" disabled=${isBusy} onClick=${next}>Send it</button></p>`}
        ${step.failed !== null && html`<p class="reason failed"><${Said} text=${step.failed} /></p>`}
        ${step.decided !== '' && html`<p class="decided"><${Said} text=${step.decided} /></p>`}
    </li>`;
}

/** @param {{ title: string, of: any, label: string }} props */
function Side({ title, of, label }) {
    const headers = Object.entries(of.headers ?? {});
    return html`<div class="side">
        <code class="line">${title}</code>
        ${
            headers.length > 0 &&
            html`<details open=${headers.length < 3}>
            <summary>${plural(headers.length, 'header')}</summary>
            <dl>
                ${headers.map(([name, value]) => html`<div key=${name}><dt>${name}:</dt><dd>${value}</dd></div>`)}
            </dl>
        </details>`
        }
        ${
            of.body !== null &&
            (typeof of.body === 'string'
                ? html`<pre class="raw" tabindex="0" aria-label=${label}>${of.body}</pre>`
                : html`<${JsonTree} node=${parseJson(JSON.stringify(of.body))} label=${label} />`)
        }
    </div>`;
}

/** @param {string | null} url */
const isWeb = (url) => url !== null && /^https?:\/\//.test(url);
