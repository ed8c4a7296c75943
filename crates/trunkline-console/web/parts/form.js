// A form made from a schema.
import { html, useEffect, useRef, useState } from '../html.js';
import { branch, initial, place } from '../schema.js';

/** @typedef {import('../schema.js').Schema} Schema */

/**
 * @typedef {object} FieldProps
 * @property {unknown} schema
 * @property {Schema} root where references of the schema lead
 * @property {unknown} value
 * @property {(value: unknown) => void} change
 * @property {string} path names the field for its label
 * @property {string} [name]
 * @property {boolean} [isRequired]
 * @property {(() => void)} [remove]
 * @property {(name: string, typed: string, signal: AbortSignal) => Promise<string[]>} [complete] suggests values of a text
 */

/** @param {FieldProps} props */
export function Field(props) {
    const it = place(props.schema, props.root);
    const Kind = KINDS[it.kind];
    return html`<${Kind} ...${props} it=${it} />`;
}

/** @param {FieldProps & { it: any }} props */
function Line({ it, value, change, path, name, isRequired, remove, complete }) {
    const id = `field-${path}`;
    return html`<div class="field">
        <label for=${id}>${name ?? it.schema.title ?? 'value'}${isRequired && html`<span class="needed" title="required"> *</span>`}</label>
        <div class="control">${
            complete !== undefined && it.kind === 'text'
                ? html`<${Completed} id=${id} value=${value} change=${change} complete=${(/** @type {string} */ typed, /** @type {AbortSignal} */ signal) => complete(name ?? '', typed, signal)} />`
                : control(it, id, value, change)
        }<${Remove} remove=${remove} name=${name} /></div>
        <${About} schema=${it.schema} />
    </div>`;
}

/** @param {any} it @param {string} id @param {unknown} value @param {(value: unknown) => void} change */
function control(it, id, value, change) {
    switch (it.kind) {
        case 'boolean':
            return html`<input id=${id} type="checkbox" checked=${value === true} onChange=${(/** @type {any} */ event) => change(event.target.checked)} />`;
        case 'choice':
            return html`<select id=${id} onChange=${(/** @type {any} */ event) => change(it.values[event.target.selectedIndex].value)}>
                ${it.values.map(
                    (/** @type {any} */ one, /** @type {number} */ at) =>
                        html`<option key=${at} selected=${isSame(one.value, value)}>${one.label}</option>`,
                )}
            </select>`;
        case 'number':
        case 'integer':
            return html`<${Numeral} id=${id} it=${it} value=${value} change=${change} />`;
        case 'any':
            return html`<${Raw} id=${id} value=${value} change=${change} />`;
        default:
            return html`<${Text} id=${id} schema=${it.schema} value=${value} change=${change} />`;
    }
}

/**
 * The text of a field, as somebody typed it: `1.` and `-` are on the way to a number. It is written anew when the value
 * becomes one that was not typed here.
 * @param {unknown} value
 * @param {(value: unknown) => string} write
 */
function useTyped(value, write) {
    const [, draw] = useState(0);
    const typed = useRef(/** @type {{ text: string, of: unknown, edition: number } | null} */ (null));
    if (typed.current === null || !isSame(typed.current.of, value))
        typed.current = { text: write(value), of: value, edition: (typed.current?.edition ?? 0) + 1 };
    const { text, edition } = typed.current;
    const type = (/** @type {string} */ to, /** @type {unknown} */ means) => {
        typed.current = { text: to, of: means, edition };
        draw((count) => count + 1);
    };
    return { text, edition, type };
}

/** @param {{ id: string, it: any, value: unknown, change: (value: unknown) => void }} props */
function Numeral({ id, it, value, change }) {
    const { text, type } = useTyped(value, (number) => (typeof number === 'number' ? String(number) : ''));
    const input = (/** @type {any} */ event) => {
        const to = event.target.value;
        const means = to === '' ? null : Number(to);
        type(to, means);
        change(means);
    };
    return html`<input
        id=${id}
        type="number"
        step=${it.kind === 'integer' ? 1 : 'any'}
        min=${it.schema.minimum}
        max=${it.schema.maximum}
        value=${text}
        onInput=${input}
    />`;
}

/** @param {{ id: string, schema: Schema, value: unknown, change: (value: unknown) => void }} props */
function Text({ id, schema, value, change }) {
    const { text, edition, type } = useTyped(value, (it) => (typeof it === 'string' ? it : ''));
    // Not while somebody types: the field would lose the focus.
    const shape = useRef({ edition: 0, isLong: false });
    if (shape.current.edition !== edition)
        shape.current = { edition, isLong: text.length > LINE || text.includes('\n') };
    const input = (/** @type {any} */ event) => {
        type(event.target.value, event.target.value);
        change(event.target.value);
    };
    const isSecret = schema.format === 'password' || schema.writeOnly === true;
    if (isSecret || !shape.current.isLong)
        return html`<input id=${id} type=${isSecret ? 'password' : 'text'} autocomplete="off" value=${text} onInput=${input} />`;
    return html`<textarea id=${id} rows="4" value=${text} onInput=${input}></textarea>`;
}

/** A text whose server suggests how it could go on. @param {{ id: string, value: unknown, change: (value: unknown) => void, complete: (typed: string, signal: AbortSignal) => Promise<string[]> }} props */
function Completed({ id, value, change, complete }) {
    const [offers, setOffers] = useState(/** @type {string[]} */ ([]));
    const [isActive, setActive] = useState(false);
    const typed = typeof value === 'string' ? value : '';
    useEffect(() => {
        // Every suggestion is a call to the server: only whoever is here asks for one.
        if (!isActive) return;
        const abort = new AbortController();
        const timer = setTimeout(() => {
            // A server that completes nothing is no reason to complain.
            complete(typed, abort.signal).then(
                (found) => !abort.signal.aborted && setOffers(found),
                () => {},
            );
        }, 250);
        return () => {
            clearTimeout(timer);
            abort.abort();
        };
    }, [typed, isActive]);
    return html`<input
            id=${id}
            type="text"
            list=${`${id}-offers`}
            autocomplete="off"
            value=${typed}
            onFocus=${() => setActive(true)}
            onBlur=${() => setActive(false)}
            onInput=${(/** @type {any} */ event) => change(event.target.value)}
        />
        <datalist id=${`${id}-offers`}>
            ${offers.map((offer) => html`<option key=${offer} value=${offer}></option>`)}
        </datalist>`;
}

/** Anything, as JSON. @param {{ id: string, value: unknown, change: (value: unknown) => void }} props */
function Raw({ id, value, change }) {
    const { text, type } = useTyped(value, (it) => JSON.stringify(it) ?? '');
    const read = parsed(text);
    const input = (/** @type {any} */ event) => {
        const to = parsed(event.target.value);
        type(event.target.value, to === null ? value : to.value);
        if (to !== null) change(to.value);
    };
    return html`<textarea id=${id} class="mono" rows="2" spellcheck=${false} aria-invalid=${read === null} value=${text} onInput=${input}></textarea>`;
}

/** @param {FieldProps & { it: any }} props */
function Members({ it, root, value, change, path, name, isRequired, remove, complete }) {
    const held = /** @type {Record<string, unknown>} */ (typeof value === 'object' && value !== null ? value : {});
    const set = (/** @type {string} */ key, /** @type {unknown} */ to) => change({ ...held, [key]: to });
    const drop = (/** @type {string} */ key) => {
        const { [key]: _gone, ...rest } = held;
        change(rest);
    };
    const isHeld = (/** @type {any} */ member) => Object.hasOwn(held, member.name);
    const absent = it.members.filter((/** @type {any} */ member) => !isHeld(member));
    return html`<fieldset class=${name === undefined ? 'outermost' : ''}>
        ${name !== undefined && html`<legend>${name}${isRequired && ' *'} <${Remove} remove=${remove} name=${name} /></legend>`}
        ${name !== undefined && html`<${About} schema=${it.schema} />`}
        ${it.members.filter(isHeld).map(
            (/** @type {any} */ member) =>
                html`<${Field}
                        key=${member.name}
                        schema=${member.schema}
                        root=${root}
                        value=${held[member.name]}
                        change=${(/** @type {unknown} */ to) => set(member.name, to)}
                        path=${`${path}-${member.name}`}
                        name=${member.name}
                        isRequired=${member.isRequired}
                        complete=${complete}
                        remove=${member.isRequired ? undefined : () => drop(member.name)}
                    />`,
        )}
        ${
            absent.length > 0 &&
            html`<div class="absent">
            ${absent.map(
                (/** @type {any} */ member) =>
                    html`<button
                        key=${member.name}
                        type="button"
                        class="chip"
                        title=${member.schema.description}
                        onClick=${() => set(member.name, initial(member.schema, root))}
                    >
                        + ${member.name}
                    </button>`,
            )}
        </div>`
        }
        ${it.members.length === 0 && name === undefined && html`<p class="muted">It takes no arguments.</p>`}
    </fieldset>`;
}

/** @param {FieldProps & { it: any }} props */
function List({ it, root, value, change, path, name, isRequired, remove }) {
    const items = Array.isArray(value) ? value : [];
    // An item keeps its fields when one before it is left out.
    const keys = useRef({ list: /** @type {number[]} */ ([]), next: 0 });
    const { list } = keys.current;
    while (list.length < items.length) list.push(keys.current.next++);
    list.length = items.length;
    const leaveOut = (/** @type {number} */ at) => {
        list.splice(at, 1);
        change(items.toSpliced(at, 1));
    };
    return html`<fieldset>
        <legend>${name ?? 'list'}${isRequired && ' *'} <${Remove} remove=${remove} name=${name} /></legend>
        <${About} schema=${it.schema} />
        ${items.map(
            (item, at) =>
                html`<${Field}
                    key=${list[at]}
                    schema=${it.items}
                    root=${root}
                    value=${item}
                    change=${(/** @type {unknown} */ to) => change(items.with(at, to))}
                    path=${`${path}-${at}`}
                    name=${String(at + 1)}
                    remove=${() => leaveOut(at)}
                />`,
        )}
        <button type="button" class="chip" onClick=${() => change([...items, initial(it.items, root)])}>+ item</button>
    </fieldset>`;
}

/** @param {FieldProps & { it: any }} props */
function Union({ it, root, value, change, path, name, isRequired, remove }) {
    // Several branches may fit a value: the one that a person has chosen stays, until the value comes from elsewhere.
    const choice = useRef(/** @type {{ at: number, of: unknown } | null} */ (null));
    if (choice.current === null || choice.current.of !== value || choice.current.at >= it.of.length)
        choice.current = { at: branch(it.of, value, root, choice.current?.at), of: value };
    const chosen = choice.current.at;
    const set = (/** @type {number} */ at, /** @type {unknown} */ to) => {
        choice.current = { at, of: to };
        change(to);
    };
    const choose = (/** @type {any} */ event) => {
        const at = event.target.selectedIndex;
        set(at, initial(it.of[at].schema, root));
    };
    return html`<fieldset>
        <legend>${name ?? 'value'}${isRequired && ' *'} <${Remove} remove=${remove} name=${name} /></legend>
        <select
            aria-label=${`Form of ${name ?? 'the value'}`}
            onChange=${choose}
        >
            ${it.of.map((/** @type {any} */ one, /** @type {number} */ at) => html`<option key=${at} selected=${at === chosen}>${one.label}</option>`)}
        </select>
        <${Field} key=${chosen} schema=${it.of[chosen].schema} root=${root} value=${value} change=${(/** @type {unknown} */ to) => set(chosen, to)} path=${`${path}-of`} name=${it.of[chosen].label} />
    </fieldset>`;
}

/** @param {{ schema: Schema }} props */
function About({ schema }) {
    const bounds = [
        schema.minimum !== undefined ? `at least ${schema.minimum}` : '',
        schema.maximum !== undefined ? `at most ${schema.maximum}` : '',
        schema.pattern !== undefined ? `like ${schema.pattern}` : '',
        schema.format ?? '',
    ].filter((it) => it !== '');
    const text = [schema.description, bounds.length > 0 ? bounds.join(', ') : ''].filter(Boolean).join(' · ');
    return text === '' ? null : html`<p class="about">${text}</p>`;
}

/** @param {{ remove?: (() => void) | undefined, name?: string | undefined }} props */
function Remove({ remove, name }) {
    if (remove === undefined) return null;
    return html`<button type="button" class="chip" aria-label=${`Leave out ${name ?? ''}`} title="Leave out" onClick=${remove}>×</button>`;
}

/** @param {unknown} a @param {unknown} b */
const isSame = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** @param {string} text @returns {{ value: unknown } | null} */
function parsed(text) {
    try {
        return { value: JSON.parse(text) };
    } catch {
        return null;
    }
}

/** Texts that are longer have several lines. */
const LINE = 60;
/** @type {Record<string, any>} */
const KINDS = {
    text: Line,
    number: Line,
    integer: Line,
    boolean: Line,
    choice: Line,
    any: Line,
    object: Members,
    list: List,
    union: Union,
};
