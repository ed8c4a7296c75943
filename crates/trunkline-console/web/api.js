// Requests to the admin API, which served this page.
import { SseDecoder } from './sse.js';
import { Store } from './store.js';

/** @typedef {import('./sse.js').SseEvent} SseEvent */

/**
 * Who reads a stream, and how its text becomes what is in it.
 * @template T
 * @typedef {{ signal: AbortSignal, decoder: () => { feed: (chunk: string) => T[] }, opened: () => void, heard: (all: T[]) => void, lost: (why: string) => void }} Reader
 */

/** Whether the page may ask: `asking` until that is known, then `open`, or `locked` with the reason. */
export const session = new Store(
    /** @type {{ state: 'asking' | 'open' } | { state: 'locked', why: string }} */ ({ state: 'asking' }),
);

/** An answer that is no success. */
export class ApiError extends Error {
    /** @param {number} status @param {string} message @param {string | null} advice */
    constructor(status, message, advice) {
        super(message);
        this.status = status;
        this.advice = advice;
    }
}

/** Enters with the key of a link, or goes on in a session that this browser has. @param {string | null} key */
export async function open(key) {
    try {
        const path = key === null ? '/v1/console/me' : '/v1/console/enter';
        const init = key === null ? {} : { method: 'POST', body: JSON.stringify({ key }) };
        const answer = await ask(path, init);
        csrf = (await answer.json()).csrf;
        session.set({ state: 'open' });
    } catch (error) {
        if (key !== null && (await isIn())) return;
        // Whoever was never let in did nothing wrong.
        const isOut = error instanceof ApiError && error.status === 401;
        lock(key === null && isOut ? '' : sentence(error));
    }
}

/** Ends the session, here at any rate. */
export async function leave() {
    let said = 'You have signed out.';
    try {
        await post('/v1/console/leave', {});
    } catch (error) {
        said = `You have left this page, but the gateway may keep the session: ${sentence(error)}`;
    } finally {
        lock(said);
    }
}

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function get(path, signal) {
    return (await checked(path, { signal: signal ?? null })).json();
}

/** The answer as it was written. @param {string} path @param {AbortSignal} [signal] */
export async function getText(path, signal) {
    return (await checked(path, { signal: signal ?? null })).text();
}

/** @param {string} path @param {unknown} body @returns {Promise<any>} */
export async function post(path, body) {
    const answer = await checked(path, { method: 'POST', body: JSON.stringify(body) });
    const text = await answer.text();
    return text === '' ? null : JSON.parse(text);
}

/** @param {string} path */
export async function remove(path) {
    await checked(path, { method: 'DELETE' });
}

/**
 * Reads a stream until it is aborted, and opens it again whenever it ends.
 * @template T
 * @param {() => string} path
 * @param {Reader<T>} to
 */
export async function follow(path, to) {
    for (let tries = 0; !to.signal.aborted; tries += 1) {
        try {
            await readStream(path(), to, () => {
                tries = 0;
            });
            if (!to.signal.aborted) to.lost('The stream ended.');
        } catch (error) {
            if (to.signal.aborted || session.value.state !== 'open') return;
            to.lost(sentence(error));
        }
        await pause(Math.min(8000, 250 * 2 ** tries), to.signal);
    }
}

/**
 * Posts something that is answered by events, until they end or are aborted.
 * @param {string} path
 * @param {unknown} body
 * @param {AbortSignal} signal
 * @param {(event: SseEvent) => void} to
 */
export async function converse(path, body, signal, to) {
    const answer = await checked(path, { method: 'POST', body: JSON.stringify(body), signal });
    if (answer.body === null) return;
    const decoder = new SseDecoder();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        for (const event of decoder.feed(value)) to(event);
    }
}

/** What went wrong, for people. @param {unknown} error */
export function sentence(error) {
    if (error instanceof ApiError) return [error.message, error.advice].filter(Boolean).join(' ');
    if (error instanceof TypeError) return 'The gateway does not answer.';
    return error instanceof Error ? error.message : String(error);
}

/** Whether this browser has a session; the page goes on in it. */
async function isIn() {
    try {
        csrf = (await (await ask('/v1/console/me', {})).json()).csrf;
        session.set({ state: 'open' });
        return true;
    } catch {
        return false;
    }
}

/**
 * @template T
 * @param {string} path
 * @param {Reader<T>} to
 * @param {() => void} opened
 */
async function readStream(path, to, opened) {
    // A stream that says nothing, not even its heartbeat, is dead.
    const silence = new AbortController();
    const signal = AbortSignal.any([to.signal, silence.signal]);
    let timer = setTimeout(() => silence.abort(new Error(SILENT)), SILENCE);
    try {
        const answer = await checked(path, { signal });
        if (answer.body === null) return;
        opened();
        to.opened();
        const decoder = to.decoder();
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            clearTimeout(timer);
            timer = setTimeout(() => silence.abort(new Error(SILENT)), SILENCE);
            const events = decoder.feed(value);
            if (events.length > 0) to.heard(events);
        }
    } finally {
        clearTimeout(timer);
    }
}

/** @param {string} path @param {RequestInit} init */
async function checked(path, init) {
    try {
        return await ask(path, init);
    } catch (error) {
        const isOut = error instanceof ApiError && error.status === 401;
        if (isOut && session.value.state === 'open') lock('The session has ended, or the gateway was started again.');
        throw error;
    }
}

/** @param {string} path @param {RequestInit} init */
async function ask(path, init) {
    const headers = new Headers(init.headers);
    if (init.body !== undefined) headers.set('content-type', 'application/json');
    if (init.method !== undefined && csrf !== '') headers.set('x-trunkline-csrf', csrf);
    const answer = await fetch(path, { ...init, headers, credentials: 'same-origin', redirect: 'error' });
    if (answer.ok) return answer;
    const error = await answer.json().then(
        (body) => body.error,
        () => null,
    );
    throw new ApiError(
        answer.status,
        error?.message ?? `The gateway answered ${answer.status}.`,
        error?.advice ?? null,
    );
}

/** @param {string} why */
function lock(why) {
    csrf = '';
    session.set({ state: 'locked', why });
}

/** @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
    return new Promise((resolve) => {
        const end = () => {
            clearTimeout(timer);
            signal.removeEventListener('abort', end);
            resolve(undefined);
        };
        const timer = setTimeout(end, ms);
        signal.addEventListener('abort', end);
    });
}

/** In memory alone: another page cannot read it, and it ends with this one. */
let csrf = '';

/** The gateway says something each 15 s. */
const SILENCE = 40_000;
const SILENT = 'The gateway has fallen silent.';
