// What would happen if: any tool, prompt or resource of any server, as any revision.
import { html, useEffect, useMemo, useState } from '../html.js';
import { get, sentence } from '../api.js';
import { Attempt, completions, recordedParams } from '../attempt.js';
import { useKeys } from '../keys.js';
import { change, link, route } from '../route.js';
import { initial } from '../schema.js';
import { expand, variables } from '../template.js';
import { useStore } from '../store.js';
import { Field } from '../parts/form.js';
import { Outcome } from '../parts/outcome.js';

/** @typedef {import('../types.d.ts').Status} Status */

/**
 * Something that can be tried.
 * @typedef {{ kind: string, name: string, title: string, method: string, schema: any, params: (value: any) => object, definition: any, ref?: { type: string, name?: string, uri?: string } }} Offer
 */

/** @param {{ status: Status | null }} props */
export function Try({ status }) {
    const { params } = useStore(route);
    const servers = (status?.servers ?? []).filter(({ state }) => state !== 'out');
    const server = params.server ?? servers[0]?.name;
    const revision = params.revision ?? '';
    const { offers, why } = useOffers(server, revision);
    const [search, setSearch] = useState('');
    const chosen = offers?.find(
        ({ kind, name }) => kind === (params.kind ?? 'tools') && isNamed(name, params.name, server),
    );
    const found = (offers ?? []).filter(({ name, title }) =>
        `${name} ${title}`.toLowerCase().includes(search.toLowerCase()),
    );
    return html`<div class=${`try ${chosen === undefined ? '' : 'with-detail'}`}>
        <aside class="offer-box">
            <div class="pick">
                <label for="try-server">Server</label>
                <select id="try-server" onChange=${(/** @type {any} */ event) => change({ server: event.target.value, name: undefined, kind: undefined, from: undefined })}>
                    ${servers.map(({ name }) => html`<option key=${name} selected=${name === server}>${name}</option>`)}
                </select>
                <label for="try-revision">Revision</label>
                <select id="try-revision" onChange=${(/** @type {any} */ event) => change({ revision: event.target.value })}>
                    ${REVISIONS.map(([value, label]) => html`<option key=${value} value=${value} selected=${value === revision}>${label}</option>`)}
                </select>
                <input type="text" class="search" aria-label="Search" placeholder="Search" value=${search} onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} />
            </div>
            <div class="offers-list" tabindex="0" role="region" aria-label="What it offers">
                ${why !== '' && html`<p class="notice" role="alert">${why}</p>`}
                ${offers === null && why === '' && html`<p class="muted pad">Reading…</p>`}
                ${KINDS.map(([kind, label]) => {
                    const of = found.filter((it) => it.kind === kind);
                    if (of.length === 0) return null;
                    return html`<h2 key=${kind}>${label} <span class="muted">${of.length}</span></h2>
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
            chosen === undefined
                ? html`<p class="empty muted wide-only">Choose what to try.</p>`
                : html`<${Maker} key=${`${server} ${chosen.kind} ${chosen.name} ${params.from ?? ''}`} server=${server} revision=${revision} offer=${chosen} from=${params.from} />`
        }
    </div>`;
}

/** A tool has its server's name before its own, or not. @param {string} name @param {string | undefined} wanted @param {string | undefined} server */
function isNamed(name, wanted, server) {
    return wanted !== undefined && [name, `${server}.${name}`].includes(wanted);
}

/** The arguments, and what came of them. @param {{ server: string, revision: string, offer: Offer, from: string | undefined }} props */
function Maker({ server, revision, offer, from }) {
    const [value, setValue] = useState(/** @type {any} */ (initial(offer.schema, offer.schema)));
    const [mode, setMode] = useState(/** @type {'form' | 'json'} */ ('form'));
    const [text, setText] = useState('');
    const [wrong, setWrong] = useState('');
    const [attempt, setAttempt] = useState(/** @type {Attempt | null} */ (null));
    // In 2025-11-25 the caller asks for a task; from 2026-07-28 on the server decides.
    const mayBeTask = ['optional', 'required'].includes(offer.definition.execution?.taskSupport);
    const [asTask, setAsTask] = useState(true);
    useEffect(() => {
        if (from === undefined) return;
        const abort = new AbortController();
        recordedParams(from, abort.signal).then(
            (params) => {
                const given = offer.kind === 'resources' || offer.kind === 'templates' ? params : params?.arguments;
                if (given !== undefined && given !== null) setValue(given);
            },
            () => {},
        );
        return () => abort.abort();
    }, [from]);
    const at = { server, revision: revision || null };
    const { ref } = offer;
    const complete =
        ref && ((/** @type {string} */ name, /** @type {string} */ typed) => completions(at, ref, name, typed));
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
        setValue(read.value);
        setMode('form');
    };
    const run = () => {
        const read = mode === 'json' ? parse(text) : { value, wrong: '' };
        setWrong(read.wrong);
        if (read.wrong !== '') return;
        attempt?.abort.abort();
        const task = mayBeTask && asTask ? { task: {} } : {};
        setAttempt(new Attempt({ ...at, method: offer.method, params: { ...offer.params(read.value), ...task } }));
    };
    useKeys({ 'mod+enter': run });
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        run();
    };
    return html`<section class="maker" aria-label=${`Try ${offer.name}`}>
        <header class="detail-head">
            <a class="back" href=${link('try', { server, revision })}>‹ Offers</a>
            <h2>${offer.name}</h2>
            <span class="muted">${offer.method}</span>
            <span class="grow"></span>
            <div class="modes" role="group" aria-label="How arguments are given">
                <button type="button" class="chip" aria-pressed=${mode === 'form'} onClick=${toForm}>form</button>
                <button type="button" class="chip" aria-pressed=${mode === 'json'} onClick=${toJson}>JSON</button>
            </div>
        </header>
        ${offer.definition.description && html`<p class="description">${offer.definition.description}</p>`}
        <form class="arguments" onSubmit=${submit}>
            ${
                mode === 'form'
                    ? html`<${Field} schema=${offer.schema} root=${offer.schema} value=${value} change=${setValue} path="arguments" complete=${complete} />`
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

/** @param {string | undefined} server @param {string} revision */
function useOffers(server, revision) {
    const [held, setHeld] = useState({ key: '', offers: /** @type {Offer[] | null} */ (null), why: '' });
    const key = `${server} ${revision}`;
    useEffect(() => {
        if (server === undefined) return;
        const abort = new AbortController();
        const search = revision === '' ? '' : `?revision=${revision}`;
        get(`/v1/servers/${encodeURIComponent(server)}/offers${search}`, abort.signal).then(
            (found) => setHeld({ key, offers: listed(found), why: '' }),
            (error) => {
                if (!abort.signal.aborted) setHeld({ key, offers: null, why: sentence(error) });
            },
        );
        return () => abort.abort();
    }, [key]);
    return useMemo(() => (held.key === key ? held : { offers: null, why: '' }), [held, key]);
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

const KINDS = /** @type {const} */ ([
    ['tools', 'Tools'],
    ['prompts', 'Prompts'],
    ['resources', 'Resources'],
    ['templates', 'Templates'],
]);
const REVISIONS = /** @type {const} */ ([
    ['', 'newest'],
    ['2026-07-28', '2026-07-28'],
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2024-11-05'],
]);
