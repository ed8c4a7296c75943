// One call made from the console, from its first event to its result.
import { converse, getText, post, sentence } from './api.js';
import { Store } from './store.js';

/**
 * @typedef {{ id: string | number, method: string, params: any, answered: boolean }} Question
 * @typedef {{ at: number, kind: 'log' | 'task', data: any }} Heard
 * @typedef {object} AttemptState
 * @property {'running' | 'done' | 'failed'} state
 * @property {string} id
 * @property {Question[]} questions
 * @property {Heard[]} heard the last of them
 * @property {{ progress: number, total?: number, message?: string } | null} progress the newest
 * @property {string} ended the text of the last event: `result` or `error`, and the `call` it was
 * @property {string} why why it could not be made
 * @property {number} began
 * @property {number | null} took
 */

export class Attempt {
    /** @param {{ server: string | null, revision: string | null, method: string, params: unknown }} wanted */
    constructor(wanted) {
        const began = performance.now();
        this.abort = new AbortController();
        this.state = new Store(
            /** @type {AttemptState} */ ({
                state: 'running',
                id: '',
                questions: [],
                heard: [],
                progress: null,
                ended: '',
                why: '',
                began,
                took: null,
            }),
        );
        void this.#run(wanted);
    }

    /** @param {Question} question @param {{ result: unknown } | { error: { code: number, message: string } }} answer */
    async answer(question, answer) {
        const mark = (/** @type {boolean} */ answered) =>
            this.state.value.questions.map((it) => (it.id === question.id ? { ...it, answered } : it));
        this.#tell({ questions: mark(true), why: '' });
        const path = `/v1/try/${encodeURIComponent(this.state.value.id)}/answer`;
        await post(path, { question: question.id, ...answer }).catch((error) =>
            // It is still asked.
            this.#tell({ questions: mark(false), why: sentence(error) }),
        );
    }

    async cancel() {
        const { id } = this.state.value;
        if (id === '') this.abort.abort();
        else
            await post(`/v1/try/${encodeURIComponent(id)}/cancel`, {}).catch((error) =>
                this.#tell({ why: sentence(error) }),
            );
    }

    /** @param {unknown} wanted */
    async #run(wanted) {
        try {
            await converse('/v1/try', wanted, this.abort.signal, ({ event, data }) => this.#hear(event, data));
            if (this.state.value.state === 'running')
                this.#end('failed', { why: 'The gateway ended the stream before the call ended.' });
        } catch (error) {
            const isOurs = this.abort.signal.aborted;
            this.#end('failed', { why: isOurs ? 'Cancelled.' : sentence(error) });
        }
    }

    /** @param {string} event @param {string} data */
    #hear(event, data) {
        const { heard, questions, began } = this.state.value;
        if (event === 'begun') this.#tell({ id: JSON.parse(data).try });
        else if (event === 'question')
            this.#tell({ questions: [...questions, { ...JSON.parse(data), answered: false }] });
        else if (event === 'withdrawn') {
            const { id } = JSON.parse(data);
            this.#tell({ questions: questions.filter((it) => it.id !== id) });
        } else if (event === 'done') this.#end('done', { ended: data });
        else if (event === 'progress') this.#tell({ progress: JSON.parse(data) });
        else if (event === 'log' || event === 'task') {
            const one = { at: performance.now() - began, kind: event, data: JSON.parse(data) };
            this.#tell({ heard: [...heard, /** @type {Heard} */ (one)].slice(-HEARD) });
        }
    }

    /** @param {'done' | 'failed'} state @param {Partial<AttemptState>} more */
    #end(state, more) {
        // Nobody waits for an answer any more.
        this.#tell({ state, took: performance.now() - this.state.value.began, questions: [], ...more });
    }

    /** @param {Partial<AttemptState>} changes */
    #tell(changes) {
        this.state.set({ ...this.state.value, ...changes });
    }
}

/**
 * The values that a server suggests for an argument.
 * @param {{ server: string, revision: string | null }} at
 * @param {{ type: string, name?: string, uri?: string }} ref
 * @param {Record<string, unknown>} given the arguments, those already typed
 * @param {string} name
 * @param {AbortSignal} signal
 * @returns {Promise<string[]>}
 */
export async function completions(at, ref, given, name, signal) {
    const texts = Object.entries(given).filter(([key, it]) => typeof it === 'string' && it !== '' && key !== name);
    const knowsOthers = !WITHOUT_CONTEXT.includes(at.revision ?? '');
    const context = knowsOthers && texts.length > 0 ? { context: { arguments: Object.fromEntries(texts) } } : {};
    const params = {
        ref,
        argument: { name, value: Object.hasOwn(given, name) ? String(given[name]) : '' },
        ...context,
    };
    /** @type {string[]} */
    let found = [];
    const wanted = { ...at, method: 'completion/complete', params };
    await converse('/v1/try', wanted, signal, ({ event, data }) => {
        if (event === 'done') found = JSON.parse(data).result?.completion?.values ?? [];
    });
    return found;
}

/**
 * The parameters of a recorded call, to make it again; null if they were not kept.
 * @param {string} id
 * @param {AbortSignal} signal
 */
export async function recordedParams(id, signal) {
    const call = JSON.parse(await getText(`/v1/calls/${encodeURIComponent(id)}`, signal));
    const request = call.messages?.find(
        (/** @type {any} */ it) => it.side === 'client' && it.dir === 'in' && it.message?.method,
    );
    return request?.message?.params ?? null;
}

const HEARD = 500;
/** Revisions whose completions are told of one argument alone. */
const WITHOUT_CONTEXT = ['2024-11-05', '2025-03-26'];
