// What came of an attempt: its questions to answer, what was heard meanwhile, its result.
import { html, useMemo, useState } from '../html.js';
import { duration } from '../format.js';
import { at, parseJson, textAt } from '../json.js';
import { link } from '../route.js';
import { initial } from '../schema.js';
import { useStore } from '../store.js';
import { Field } from './form.js';
import { Said } from './said.js';
import { JsonTree } from './tree.js';

/** @typedef {import('../attempt.js').Question} Question */

/** @param {{ attempt: import('../attempt.js').Attempt }} props */
export function Outcome({ attempt }) {
    const { state, why, ended, questions, heard, took } = useStore(attempt.state);
    const tree = useMemo(() => (ended === '' ? null : parseJson(ended)), [ended]);
    const result = at(tree ?? undefined, 'result');
    const error = at(tree ?? undefined, 'error');
    const call = textAt(tree ?? undefined, 'call');
    const isToolError = at(result, 'isError');
    const task = heard.findLast(({ kind }) => kind === 'task')?.data.status?.replace('_', ' ');
    const failed = error !== undefined || (isToolError?.kind === 'literal' && isToolError.text === 'true');
    return html`<div class="outcome-box">
        <header class="tabs">
            <span role="status" class=${`outcome ${state === 'running' ? 'running' : failed || state === 'failed' ? 'failed' : 'ok'}`}>
                ${state === 'running' ? (task ?? 'running') : state === 'failed' ? 'not made' : error !== undefined ? 'error' : failed ? 'tool error' : 'ok'}
            </span>
            <span class="num">${duration(took)}</span>
            <span class="grow"></span>
            ${call !== undefined && html`<a class="quiet" href=${link('traffic', { call })}>Its messages</a>`}
            ${state === 'running' && html`<button type="button" class="quiet boxed" onClick=${() => void attempt.cancel()}>Cancel</button>`}
        </header>
        ${why !== '' && html`<p class="notice" role="alert"><${Said} text=${why} /></p>`}
        ${heard.length > 0 && html`<${Heard} heard=${heard} />`}
        ${questions.filter(({ answered }) => !answered).map((it) => html`<${Ask} key=${it.id} question=${it} answer=${(/** @type {unknown} */ result) => void attempt.answer(it, result)} />`)}
        ${(result ?? error) !== undefined && html`<${JsonTree} node=${result ?? error} label="The result" />`}
    </div>`;
}

/** Progress as a bar, logs and tasks as lines. @param {{ heard: import('../attempt.js').Heard[] }} props */
function Heard({ heard }) {
    const last = heard.findLast(({ kind }) => kind === 'progress')?.data;
    return html`${
        last !== undefined &&
        html`<div class="progress">
            <progress max=${last.total ?? 1} value=${last.total === undefined ? undefined : last.progress} aria-label="Progress"></progress>
            <span class="num">${last.progress}${last.total !== undefined && ` of ${last.total}`}</span>
            <span class="muted">${last.message ?? ''}</span>
        </div>`
    }
        <ul class="heard">
            ${heard
                .filter(({ kind }) => kind !== 'progress')
                .map(
                    ({ at: when, kind, data }, place) =>
                        html`<li key=${place}>
                            <span class="muted">${duration(when)} ${kind}</span> ${kind === 'task' ? html`<${TaskState} state=${data} />` : typeof data === 'string' ? data : JSON.stringify(data)}
                        </li>`,
                )}
        </ul>`;
}

/** What a task does, in its server's words. @param {{ state: any }} props */
function TaskState({ state }) {
    const status = String(state.status).replace('_', ' ');
    return html`<span class="task-state" title=${state.taskId}>${status}</span>
        ${state.statusMessage !== undefined && html`<span class="muted"> ${state.statusMessage}</span>`}`;
}

/** @param {{ question: Question, answer: (result: unknown) => void }} props */
function Ask({ question, answer }) {
    const { method, params } = question;
    const isPage = method === 'elicitation/create' && typeof params?.url === 'string';
    const Kind = isPage
        ? Page
        : method === 'elicitation/create'
          ? Elicit
          : method === 'sampling/createMessage'
            ? Sample
            : method === 'roots/list'
              ? Roots
              : Other;
    return html`<section class="ask" aria-label="A question" role="alert">
        <header><b>The server asks</b> <span class="muted">${method}</span></header>
        <${Kind} params=${params ?? {}} answer=${answer} />
    </section>`;
}

/** A form. @param {{ params: any, answer: (result: unknown) => void }} props */
function Elicit({ params, answer }) {
    const schema = params.requestedSchema ?? {};
    const [value, setValue] = useState(/** @type {any} */ (initial(schema, schema)));
    return html`<form onSubmit=${send(() => answer({ action: 'accept', content: value }))}>
        <p>${params.message}</p>
        <${Field} schema=${schema} root=${schema} value=${value} change=${setValue} path="answer" />
        <p class="choices">
            <button type="submit" class="solid">Accept</button>
            <button type="button" class="quiet boxed" onClick=${() => answer({ action: 'decline' })}>Decline</button>
            <button type="button" class="quiet boxed" onClick=${() => answer({ action: 'cancel' })}>Cancel</button>
        </p>
    </form>`;
}

/** A page to open elsewhere. @param {{ params: any, answer: (result: unknown) => void }} props */
function Page({ params, answer }) {
    const isWeb = /^https?:\/\//.test(params.url);
    return html`<div>
        <p>${params.message}</p>
        <p>${isWeb ? html`<a href=${params.url} target="_blank" rel="noopener noreferrer">${params.url}</a>` : html`<code>${params.url}</code>`}</p>
        <p class="choices">
            <button type="button" class="solid" onClick=${() => answer({ action: 'accept' })}>Done there</button>
            <button type="button" class="quiet boxed" onClick=${() => answer({ action: 'decline' })}>Decline</button>
        </p>
    </div>`;
}

/** You are the model. @param {{ params: any, answer: (result: unknown) => void }} props */
function Sample({ params, answer }) {
    const [text, setText] = useState('');
    const result = { role: 'assistant', model: 'a person', stopReason: 'endTurn', content: { type: 'text', text } };
    return html`<form onSubmit=${send(() => answer(result))}>
        <${JsonTree} node=${parseJson(JSON.stringify(params.messages ?? []))} label="The messages" />
        <label for="sample">Your answer, as the model</label>
        <textarea id="sample" rows="3" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <p class="choices"><button type="submit" class="solid">Answer</button></p>
    </form>`;
}

/** @param {{ answer: (result: unknown) => void }} props */
function Roots({ answer }) {
    const [text, setText] = useState('file:///');
    const roots = text
        .split('\n')
        .map((it) => it.trim())
        .filter((it) => it !== '');
    return html`<form onSubmit=${send(() => answer({ roots: roots.map((uri) => ({ uri })) }))}>
        <label for="roots">Roots, one URI a line</label>
        <textarea id="roots" class="mono" rows="3" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <p class="choices"><button type="submit" class="solid">Answer</button></p>
    </form>`;
}

/** Anything else is answered in JSON. @param {{ params: any, answer: (result: unknown) => void }} props */
function Other({ params, answer }) {
    const [value, setValue] = useState(/** @type {unknown} */ ({}));
    return html`<form onSubmit=${send(() => answer(value))}>
        <${JsonTree} node=${parseJson(JSON.stringify(params))} label="What it asks" />
        <${Field} schema=${{}} root=${{}} value=${value} change=${setValue} path="answer" name="Your answer" />
        <p class="choices"><button type="submit" class="solid">Answer</button></p>
    </form>`;
}

/** @param {() => void} run */
const send = (run) => (/** @type {Event} */ event) => {
    event.preventDefault();
    run();
};
