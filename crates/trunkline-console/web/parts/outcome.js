// What came of an attempt: its questions to answer, what was heard meanwhile, its result.
import { html, useMemo, useState } from '../html.js';
import { duration, plural } from '../format.js';
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
    const { state, why, ended, questions, heard, progress, took } = useStore(attempt.state);
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
        ${progress !== null && html`<${Progress} of=${progress} />`}
        ${heard.length > 0 && html`<${Heard} heard=${heard} />`}
        ${questions.map(
            (it) =>
                // Its form stays while the answer is on its way: it may not arrive.
                html`<${Ask}
                    key=${it.id}
                    question=${it}
                    answer=${(/** @type {unknown} */ result) => void attempt.answer(it, { result })}
                    refuse=${() => void attempt.answer(it, { error: REFUSED })}
                />`,
        )}
        ${(result ?? error) !== undefined && html`<${JsonTree} node=${result ?? error} label="The result" />`}
    </div>`;
}

/** @param {{ of: { progress: number, total?: number, message?: string } }} props */
function Progress({ of: { progress, total, message } }) {
    return html`<div class="progress">
        <progress max=${total ?? 1} value=${total === undefined ? undefined : progress} aria-label="Progress"></progress>
        <span class="num">${progress}${total !== undefined && ` of ${total}`}</span>
        <span class="muted">${message ?? ''}</span>
    </div>`;
}

/** Logs and tasks, a line each. @param {{ heard: import('../attempt.js').Heard[] }} props */
function Heard({ heard }) {
    return html`<ul class="heard">
        ${heard.map(
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

/**
 * @typedef {object} AskProps
 * @property {any} params
 * @property {string} path names its fields: several questions may be asked at once
 * @property {(result: unknown) => void} answer
 * @property {() => void} refuse
 */

/** @param {{ question: Question, answer: (result: unknown) => void, refuse: () => void }} props */
function Ask({ question, answer, refuse }) {
    const { method, params, id, answered } = question;
    const path = `answer-${id}`;
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
    return html`<section class="ask" aria-label="A question" role="alert" hidden=${answered}>
        <header><b>The server asks</b> <span class="muted">${method}</span></header>
        <${Kind} params=${params ?? {}} path=${path} answer=${answer} refuse=${refuse} />
    </section>`;
}

/** A form. @param {AskProps} props */
function Elicit({ params, path, answer }) {
    const schema = params.requestedSchema ?? {};
    const [value, setValue] = useState(/** @type {any} */ (initial(schema, schema)));
    return html`<form onSubmit=${send(() => answer({ action: 'accept', content: value }))}>
        <p>${params.message}</p>
        <${Field} schema=${schema} root=${schema} value=${value} change=${setValue} path=${path} />
        <p class="choices">
            <button type="submit" class="solid">Accept</button>
            <button type="button" class="quiet boxed" onClick=${() => answer({ action: 'decline' })}>Decline</button>
            <button type="button" class="quiet boxed" onClick=${() => answer({ action: 'cancel' })}>Cancel</button>
        </p>
    </form>`;
}

/** A page to open elsewhere. @param {AskProps} props */
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

/** You are the model. @param {AskProps} props */
function Sample({ params, path, answer, refuse }) {
    const [text, setText] = useState('');
    const result = { role: 'assistant', model: 'a person', stopReason: 'endTurn', content: { type: 'text', text } };
    return html`<form onSubmit=${send(() => answer(result))}>
        ${typeof params.systemPrompt === 'string' && html`<p class="system"><span class="muted">System prompt:</span> ${params.systemPrompt}</p>`}
        <${JsonTree} node=${parseJson(JSON.stringify(params.messages ?? []))} label="The messages" />
        <label for=${path}>Your answer, as the model${params.maxTokens !== undefined && `, of at most ${plural(Number(params.maxTokens), 'token')}`}</label>
        <textarea id=${path} rows="3" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <${Choices} refuse=${refuse} />
    </form>`;
}

/** @param {AskProps} props */
function Roots({ path, answer, refuse }) {
    const [text, setText] = useState('file:///');
    const roots = text
        .split('\n')
        .map((it) => it.trim())
        .filter((it) => it !== '');
    return html`<form onSubmit=${send(() => answer({ roots: roots.map((uri) => ({ uri })) }))}>
        <label for=${path}>Roots, one URI a line</label>
        <textarea id=${path} class="mono" rows="3" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
        <${Choices} refuse=${refuse} />
    </form>`;
}

/** Anything else is answered in JSON. @param {AskProps} props */
function Other({ params, path, answer, refuse }) {
    const [value, setValue] = useState(/** @type {unknown} */ ({}));
    return html`<form onSubmit=${send(() => answer(value))}>
        <${JsonTree} node=${parseJson(JSON.stringify(params))} label="What it asks" />
        <${Field} schema=${{}} root=${{}} value=${value} change=${setValue} path=${path} name="Your answer" />
        <${Choices} refuse=${refuse} />
    </form>`;
}

/** Where no answer means no, the refusal is an error. @param {{ refuse: () => void }} props */
function Choices({ refuse }) {
    return html`<p class="choices">
        <button type="submit" class="solid">Answer</button>
        <button type="button" class="quiet boxed" onClick=${refuse}>Decline</button>
    </p>`;
}

/** @param {() => void} run */
const send = (run) => (/** @type {Event} */ event) => {
    event.preventDefault();
    run();
};

const REFUSED = { code: -1, message: 'The user refused.' };
