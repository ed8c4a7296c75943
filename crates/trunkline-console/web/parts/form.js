// A form made from a schema.
import { html, useEffect, useState } from '../html.js';
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
 * @property {(name: string, typed: string) => Promise<string[]>} [complete] suggests values of a text
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
                ? html`<${Completed} id=${id} value=${value} change=${change} complete=${(/** @type {string} */ typed) => complete(name ?? '', typed)} />`
                : control(it, id, value, change)
        }<${Remove} remove=${remove} name=${name} /></div>
        <${About} schema=${it.schema} />
    </div>`;
}

/** @param {any} it @param {string} id @param {unknown} value @param {(value: unknown) => void} change */
function control(it, id, value, change) {
    const input = (/** @type {any} */ event) => event.target.value;
    switch (it.kind) {
        case 'boolean':
            return html`<input id=${id} type="checkbox" checked=${value === true} onChange=${(/** @type {any} */ event) => change(event.target.checked)} />`;
        case 'choice':
            return html`<select id=${id} onChange=${(/** @type {any} */ event) => change(it.values[event.target.selectedIndex].value)}>
                ${it.values.map(
                    (/** @type {any} */ one, /** @type {number} */ at) =>
                        html`<option key=${at} selected=${one.value === value}>${one.label}</option>`,
                )}
            </select>`;
        case 'number':
        case 'integer':
            return html`<input
                id=${id}
                type="number"
                step=${it.kind === 'integer' ? 1 : 'any'}
                min=${it.schema.minimum}
                max=${it.schema.maximum}
                value=${value}
                onInput=${(/** @type {any} */ event) => change(event.target.value === '' ? null : Number(event.target.value))}
            />`;
        case 'any':
            return html`<${Raw} id=${id} value=${value} change=${change} />`;
        default: {
            const isLong = typeof value === 'string' && (value.length > 60 || value.includes('\n'));
            if (isLong)
                return html`<textarea id=${id} rows="4" value=${value} onInput=${(/** @type {any} */ event) => change(input(event))}></textarea>`;
            const type = it.schema.format === 'password' || it.schema.writeOnly === true ? 'password' : 'text';
            return html`<input id=${id} type=${type} autocomplete="off" value=${value ?? ''} onInput=${(/** @type {any} */ event) => change(input(event))} />`;
        }
    }
}

/** A text whose server suggests how it could go on. @param {{ id: string, value: unknown, change: (value: unknown) => void, complete: (typed: string) => Promise<string[]> }} props */
function Completed({ id, value, change, complete }) {
    const [offers, setOffers] = useState(/** @type {string[]} */ ([]));
    const typed = typeof value === 'string' ? value : '';
    useEffect(() => {
        let isCurrent = true;
        const timer = setTimeout(() => {
            // A server that completes nothing is no reason to complain.
            complete(typed).then(
                (found) => isCurrent && setOffers(found),
                () => {},
            );
        }, 250);
        return () => {
            isCurrent = false;
            clearTimeout(timer);
        };
    }, [typed]);
    return html`<input
            id=${id}
            type="text"
            list=${`${id}-offers`}
            autocomplete="off"
            value=${typed}
            onInput=${(/** @type {any} */ event) => change(event.target.value)}
        />
        <datalist id=${`${id}-offers`}>
            ${offers.map((offer) => html`<option key=${offer} value=${offer}></option>`)}
        </datalist>`;
}

/** Anything, as JSON. @param {{ id: string, value: unknown, change: (value: unknown) => void }} props */
function Raw({ id, value, change }) {
    const [text, setText] = useState(JSON.stringify(value));
    const [isWrong, setWrong] = useState(false);
    const type = (/** @type {any} */ event) => {
        setText(event.target.value);
        try {
            change(JSON.parse(event.target.value));
            setWrong(false);
        } catch {
            setWrong(true);
        }
    };
    return html`<textarea id=${id} class="mono" rows="2" spellcheck=${false} aria-invalid=${isWrong} value=${text} onInput=${type}></textarea>`;
}

/** @param {FieldProps & { it: any }} props */
function Members({ it, root, value, change, path, name, isRequired, remove, complete }) {
    const held = /** @type {Record<string, unknown>} */ (typeof value === 'object' && value !== null ? value : {});
    const set = (/** @type {string} */ key, /** @type {unknown} */ to) => change({ ...held, [key]: to });
    const drop = (/** @type {string} */ key) => {
        const { [key]: _gone, ...rest } = held;
        change(rest);
    };
    const absent = it.members.filter((/** @type {any} */ member) => !(member.name in held));
    return html`<fieldset class=${name === undefined ? 'outermost' : ''}>
        ${name !== undefined && html`<legend>${name}${isRequired && ' *'} <${Remove} remove=${remove} name=${name} /></legend>`}
        ${name !== undefined && html`<${About} schema=${it.schema} />`}
        ${it.members
            .filter((/** @type {any} */ member) => member.name in held)
            .map(
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
    return html`<fieldset>
        <legend>${name ?? 'list'}${isRequired && ' *'} <${Remove} remove=${remove} name=${name} /></legend>
        <${About} schema=${it.schema} />
        ${items.map(
            (item, at) =>
                html`<${Field}
                    key=${at}
                    schema=${it.items}
                    root=${root}
                    value=${item}
                    change=${(/** @type {unknown} */ to) => change(items.with(at, to))}
                    path=${`${path}-${at}`}
                    name=${String(at + 1)}
                    remove=${() => change(items.toSpliced(at, 1))}
                />`,
        )}
        <button type="button" class="chip" onClick=${() => change([...items, initial(it.items, root)])}>+ item</button>
    </fieldset>`;
}

/** @param {FieldProps & { it: any }} props */
function Union({ it, root, value, change, path, name, isRequired, remove }) {
    const chosen = branch(it.of, value, root);
    return html`<fieldset>
        <legend>${name ?? 'value'}${isRequired && ' *'} <${Remove} remove=${remove} name=${name} /></legend>
        <select
            aria-label=${`Form of ${name ?? 'the value'}`}
            onChange=${(/** @type {any} */ event) => change(initial(it.of[event.target.selectedIndex].schema, root))}
        >
            ${it.of.map((/** @type {any} */ one, /** @type {number} */ at) => html`<option key=${at} selected=${at === chosen}>${one.label}</option>`)}
        </select>
        <${Field} key=${chosen} schema=${it.of[chosen].schema} root=${root} value=${value} change=${change} path=${`${path}-of`} name=${it.of[chosen].label} />
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
