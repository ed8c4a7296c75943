// What would happen if: any tool, prompt or resource of any server, as any revision.
import { html, useEffect, useLayoutEffect, useState } from '../html.js';
import { get, sentence, session } from '../api.js';
import { Attempt, completions, recordedParams } from '../attempt.js';
import { useKeys } from '../keys.js';
import { change, link, route } from '../route.js';
import { initial } from '../schema.js';
import { expand, variables } from '../template.js';
import { useStore } from '../store.js';
import { Field } from '../parts/form.js';
import { Outcome } from '../parts/outcome.js';
import { Said } from '../parts/said.js';

/** @typedef {import('../types.d.ts').Status} Status */

/**
 * Something that can be tried.
 * @typedef {{ kind: string, name: string, title: string, method: string, schema: any, params: (value: any) => object, definition: any, ref?: { type: string, name?: string, uri?: string } }} Offer
 */

/** What was tried last is still there for whoever comes back: its arguments, and what comes of it. */
const kept = { key: '', value: /** @type {any} */ (null), attempt: /** @type {Attempt | null} */ (null) };
session.watch(() => {
    if (session.value.state === 'open') return;
    kept.attempt?.abort.abort();
    Object.assign(kept, { key: '', value: null, attempt: null });
});

/** @param {{ status: Status | null }} props */
export function Try({ status }) {
    const { params } = useStore(route);
    const servers = (status?.servers ?? []).filter(({ state }) => state !== 'out');
    const recorded = useRecorded(params.from);
    // A call that came to no server goes to none: the gateway says why, as it did.
    const isBare = params.from !== undefined && params.server === undefined;
    const server = isBare ? undefined : (params.server ?? servers[0]?.name);
    const revision = params.revision ?? '';
    const { offers, errors, why } = useOffers(server, revision);
    const [search, setSearch] = useState('');
    const kind = params.kind ?? 'tools';
    const listed = offers?.find((it) => it.kind === kind && isNamed(it.name, params.name, server));
    const isKnown = listed !== undefined || isBare || offers !== null || why !== '';
    const again =
        params.from === undefined || !isKnown ? undefined : asRecorded(kind, params.name, server, recorded.params);
    const chosen = listed ?? again;
    const found = (offers ?? []).filter(({ name, title }) =>
        `${name} ${title}`.toLowerCase().includes(search.toLowerCase()),
    );
    const key = `${server ?? ''} ${kind} ${chosen?.name ?? ''} ${params.from ?? ''}`;
    const choose = (/** @type {any} */ event) =>
        change({ server: event.target.value, name: undefined, kind: undefined, from: undefined });
    return html`<div class=${`try ${chosen === undefined ? '' : 'with-detail'}`}>
        <aside class="offer-box">
            <div class="pick">
                <label for="try-server">Server</label>
                <select id="try-server" onChange=${choose}>
                    ${isBare && html`<option selected>none</option>`}
                    ${servers.map(({ name }) => html`<option key=${name} selected=${name === server}>${name}</option>`)}
                </select>
                <label for="try-revision">Revision</label>
                <select id="try-revision" onChange=${(/** @type {any} */ event) => change({ revision: event.target.value })}>
                    ${REVISIONS.map(([value, label]) => html`<option key=${value} value=${value} selected=${value === revision}>${label}</option>`)}
                </select>
                <input type="text" class="search" aria-label="Search" placeholder="Search" value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} />
            </div>
            <div class="offers-list" tabindex="0" role="region" aria-label="What it offers">
                ${why !== '' && html`<p class="notice" role="alert"><${Said} text=${why} /></p>`}
                ${offers === null && why === '' && !isBare && html`<p class="muted pad">Reading…</p>`}
                ${offers?.length === 0 && Object.keys(errors).length === 0 && html`<p class="muted pad">It offers nothing in this revision.</p>`}
                ${found.length === 0 && (offers?.length ?? 0) > 0 && html`<p class="muted pad">Nothing is called that.</p>`}
                ${KINDS.map(([kind, label, list]) => {
                    const of = found.filter((it) => it.kind === kind);
                    const failed = errors[list] ?? errors[kind];
                    if (of.length === 0 && failed === undefined) return null;
                    return html`<h2 key=${kind}>${label} ${of.length > 0 && html`<span class="muted">${of.length}</span>`}</h2>
                        ${failed !== undefined && html`<p class="notice" role="alert"><${Said} text=${failed} /></p>`}
                        <ul>
                            ${of.map(
                                (it) =>
                                    html`<li key=${it.name}>
                                        <a
                                            href=${link('try', { server, revision, kind, name: it.name })}
                                            aria-current=${it === chosen ? 'true' : undefined}
                                            title=${it.definition.description}
                                        >
                                            ${it.name}
                                        </a>
                                    </li>`,
                            )}
                        </ul>`;
                })}
            </div>
        </aside>
        ${
            chosen === undefined || recorded.isReading
                ? html`<p class="empty muted wide-only">${params.from === undefined || isKnown ? 'Choose what to try.' : 'Reading…'}</p>`
                : html`<${Maker}
                      key=${key}
                      id=${key}
                      server=${server ?? null}
                      revision=${revision}
                      offer=${chosen}
                      given=${given(chosen, recorded.params)}
                      note=${noteOn(params.from, recorded, listed !== undefined)}
                  />`
        }
    </div>`;
}

/** A tool has its server's name before its own, or not. @param {string} name @param {string | undefined} wanted @param {string | undefined} server */
function isNamed(name, wanted, server) {
    return wanted !== undefined && (name === wanted || name === ownName(wanted, server));
}

/** How a server itself calls what clients of the gateway name. @param {string} name @param {string | undefined} server */
function ownName(name, server) {
    const before = [`${server}.`, `trunkline:${server}/`].find((it) => server !== undefined && name.startsWith(it));
    return before === undefined ? name : name.slice(before.length);
}

/** What has to be said of a call that is made again. @param {string | undefined} from @param {ReturnType<typeof useRecorded>} recorded @param {boolean} isListed */
function noteOn(from, recorded, isListed) {
    if (from === undefined) return '';
    if (recorded.why !== '') return recorded.why;
    const said = [
        recorded.params === null ? 'The arguments of this call were not kept.' : '',
        JSON.stringify([recorded.params?.arguments, recorded.params?.uri]).includes('***')
            ? 'Some arguments were masked when the call was recorded: put the real ones where `***` stands.'
            : '',
        isListed ? '' : 'The server does not list it in this revision; the call is made as it was recorded.',
    ];
    return said.filter((it) => it !== '').join(' ');
}

/**
 * The arguments, and what came of them.
 * @param {{ id: string, server: string | null, revision: string, offer: Offer, given: any, note: string }} props
 */
function Maker({ id, server, revision, offer, given, note }) {
    const isKept = kept.key === id;
    const [value, setValue] = useState(
        /** @type {any} */ (isKept ? kept.value : (given ?? initial(offer.schema, offer.schema))),
    );
    const [mode, setMode] = useState(/** @type {'form' | 'json'} */ ('form'));
    const [text, setText] = useState('');
    const [wrong, setWrong] = useState('');
    const [attempt, setAttempt] = useState(isKept ? kept.attempt : null);
    // In 2025-11-25 the caller asks for a task; from 2026-07-28 on the server decides.
    const mayBeTask = ['optional', 'required'].includes(offer.definition.execution?.taskSupport);
    const [asTask, setAsTask] = useState(true);
    useLayoutEffect(() => {
        if (kept.key === id) return;
        // Nobody would see any more what came of it, or answer its questions.
        kept.attempt?.abort.abort();
        Object.assign(kept, { key: id, value, attempt: null });
    }, []);
    const keep = (/** @type {any} */ to) => {
        kept.value = to;
        setValue(to);
    };
    const at = { server, revision: revision || null };
    const { ref } = offer;
    const complete =
        ref &&
        server !== null &&
        ((/** @type {string} */ name, /** @type {string} */ typed, /** @type {AbortSignal} */ signal) =>
            completions({ ...at, server }, ref, { ...value, [name]: typed }, name, signal));
    const toJson = () => {
        setText(JSON.stringify(value, null, 2));
        setWrong('');
        setMode('json');
    };
    const toForm = () => {
        const read = parse(text);
        if (read.wrong !== '') {
            setWrong(read.wrong);
            return;
        }
        keep(read.value);
        setMode('form');
    };
    const run = () => {
        const read = mode === 'json' ? parse(text) : { value, wrong: '' };
        setWrong(read.wrong);
        if (read.wrong !== '') return;
        keep(read.value);
        attempt?.abort.abort();
        const task = mayBeTask && asTask ? { task: {} } : {};
        kept.attempt = new Attempt({ ...at, method: offer.method, params: { ...offer.params(read.value), ...task } });
        setAttempt(kept.attempt);
    };
    useKeys({
        'mod+enter': ({ target }) => {
            const question = target instanceof Element ? target.closest('.ask') : null;
            // Whoever types an answer sends that.
            if (question === null) run();
            else question.querySelector('form')?.requestSubmit();
        },
    });
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        run();
    };
    return html`<section class="maker" aria-label=${`Try ${offer.name}`}>
        <header class="detail-head">
            <a class="back" href=${link('try', { server: server ?? undefined, revision })}>‹ Offers</a>
            <h2>${offer.name}</h2>
            <span class="muted">${offer.method}</span>
            <span class="grow"></span>
            <div class="modes" role="group" aria-label="How arguments are given">
                <button type="button" class="chip" aria-pressed=${mode === 'form'} onClick=${toForm}>form</button>
                <button type="button" class="chip" aria-pressed=${mode === 'json'} onClick=${toJson}>JSON</button>
            </div>
        </header>
        ${note !== '' && html`<p class="notice" role="status"><${Said} text=${note} /></p>`}
        ${offer.definition.description && html`<p class="description">${offer.definition.description}</p>`}
        <form class="arguments" onSubmit=${submit}>
            ${
                mode === 'form'
                    ? html`<${Field} schema=${offer.schema} root=${offer.schema} value=${value} change=${keep} path="arguments" complete=${complete} />`
                    : html`<textarea
                      class="mono"
                      aria-label="Arguments as JSON"
                      rows=${Math.min(20, text.split('\n').length + 1)}
                      spellcheck=${false}
                      value=${text}
                      onInput=${(/** @type {any} */ event) => setText(event.target.value)}
                  ></textarea>`
            }
            ${wrong !== '' && html`<p class="notice" role="alert">${wrong}</p>`}
            <p class="choices">
                <button type="submit" class="solid">Run</button>
                ${
                    mayBeTask &&
                    html`<label class="as-task">
                    <input type="checkbox" checked=${asTask} onChange=${(/** @type {any} */ event) => setAsTask(event.target.checked)} />
                    as a task
                </label>`
                }
            </p>
        </form>
        ${attempt !== null && html`<${Outcome} key=${attempt} attempt=${attempt} />`}
    </section>`;
}

/** @param {string} text @returns {{ value: any, wrong: string }} */
function parse(text) {
    try {
        return { value: JSON.parse(text), wrong: '' };
    } catch (error) {
        return { value: null, wrong: `This is no JSON: ${sentence(error)}` };
    }
}

/**
 * What a server offers; while another revision is read, what it offered in the one before.
 * @param {string | undefined} server
 * @param {string} revision
 */
function useOffers(server, revision) {
    const [held, setHeld] = useState(
        /** @type {{ server: string | undefined, offers: Offer[] | null, errors: Record<string, string>, why: string }} */ (
            NO_OFFERS
        ),
    );
    useEffect(() => {
        if (server === undefined) return;
        const abort = new AbortController();
        const search = revision === '' ? '' : `?revision=${revision}`;
        get(`/v1/servers/${encodeURIComponent(server)}/offers${search}`, abort.signal).then(
            (found) => setHeld({ server, offers: listed(found), errors: found.errors ?? {}, why: '' }),
            (error) => {
                if (abort.signal.aborted) return;
                setHeld((before) => ({
                    ...(before.server === server ? before : NO_OFFERS),
                    server,
                    why: sentence(error),
                }));
            },
        );
        return () => abort.abort();
    }, [server, revision]);
    return held.server === server ? held : NO_OFFERS;
}

/** The parameters of the call that is made again. @param {string | undefined} id */
function useRecorded(id) {
    const [held, setHeld] = useState({
        id: /** @type {string | undefined} */ (undefined),
        params: /** @type {any} */ (null),
        why: '',
    });
    useEffect(() => {
        if (id === undefined) return;
        const abort = new AbortController();
        recordedParams(id, abort.signal).then(
            (params) => setHeld({ id, params, why: '' }),
            (error) => {
                if (!abort.signal.aborted) setHeld({ id, params: null, why: sentence(error) });
            },
        );
        return () => abort.abort();
    }, [id]);
    return held.id === id ? { ...held, isReading: false } : { params: null, why: '', isReading: id !== undefined };
}

/** What a recorded call gave to an offer. @param {Offer} offer @param {any} params */
function given(offer, params) {
    // The URI may name the server; the offer has its own.
    return offer.method === 'resources/read' ? undefined : (params?.arguments ?? undefined);
}

/**
 * An offer like the call that was recorded, for what a server does not list.
 * @param {string} kind
 * @param {string | undefined} name
 * @param {string | undefined} server
 * @param {any} params
 * @returns {Offer | undefined}
 */
function asRecorded(kind, name, server, params) {
    if (name === undefined) return undefined;
    const own = ownName(name, server);
    const args = params?.arguments ?? {};
    const texts = Object.keys(args).map((key) => ({ name: key }));
    const [one] = listed(
        kind === 'tools'
            ? { tools: [{ name: own, inputSchema: {} }] }
            : kind === 'prompts'
              ? { prompts: [{ name: own, arguments: texts }] }
              : { resources: [{ uri: own }] },
    );
    return one;
}

/** The answer of the gateway, as what can be tried. @param {any} found @returns {Offer[]} */
function listed(found) {
    const named = (/** @type {any} */ it) => ({ name: it.name, title: it.title ?? '', definition: it });
    return [
        ...(found.tools ?? []).map((/** @type {any} */ it) => ({
            ...named(it),
            kind: 'tools',
            method: 'tools/call',
            schema: it.inputSchema ?? {},
            params: (/** @type {any} */ value) => ({ name: it.name, arguments: value ?? {} }),
        })),
        ...(found.prompts ?? []).map((/** @type {any} */ it) => ({
            ...named(it),
            kind: 'prompts',
            method: 'prompts/get',
            schema: promptSchema(it.arguments ?? []),
            ref: { type: 'ref/prompt', name: it.name },
            params: (/** @type {any} */ value) => ({ name: it.name, arguments: value ?? {} }),
        })),
        ...(found.resources ?? []).map((/** @type {any} */ it) => ({
            ...named(it),
            name: it.uri,
            kind: 'resources',
            method: 'resources/read',
            schema: { type: 'object', properties: { uri: { type: 'string', default: it.uri } }, required: ['uri'] },
            params: (/** @type {any} */ value) => ({ uri: value.uri }),
        })),
        ...(found.templates ?? []).map((/** @type {any} */ it) => ({
            ...named(it),
            name: it.uriTemplate,
            kind: 'templates',
            method: 'resources/read',
            schema: promptSchema(variables(it.uriTemplate).map((name) => ({ name, required: true }))),
            ref: { type: 'ref/resource', uri: it.uriTemplate },
            params: (/** @type {any} */ value) => ({ uri: value.uri ?? expand(it.uriTemplate, value) }),
        })),
    ];
}

/** @param {{ name: string, description?: string, required?: boolean }[]} given */
function promptSchema(given) {
    return {
        type: 'object',
        properties: Object.fromEntries(
            given.map(({ name, description }) => [
                name,
                { type: 'string', ...(description === undefined ? {} : { description }) },
            ]),
        ),
        required: given.filter(({ required }) => required === true).map(({ name }) => name),
    };
}

/** Each kind, its title, and the list that it comes from. */
const KINDS = /** @type {const} */ ([
    ['tools', 'Tools', 'tools'],
    ['prompts', 'Prompts', 'prompts'],
    ['resources', 'Resources', 'resources'],
    ['templates', 'Templates', 'resourceTemplates'],
]);
const REVISIONS = /** @type {const} */ ([
    ['', 'newest'],
    ['2026-07-28', '2026-07-28'],
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2024-11-05'],
]);
const NO_OFFERS = { server: undefined, offers: null, errors: /** @type {Record<string, string>} */ ({}), why: '' };
