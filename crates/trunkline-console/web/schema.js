// JSON Schemas into what a form needs to know.

/** @typedef {Record<string, any>} Schema */

/**
 * What a place of a form is.
 * @typedef {{ kind: 'text' | 'number' | 'integer' | 'boolean' | 'any', schema: Schema }
 *     | { kind: 'choice', schema: Schema, values: { value: unknown, label: string }[] }
 *     | { kind: 'object', schema: Schema, members: { name: string, schema: Schema, isRequired: boolean }[] }
 *     | { kind: 'list', schema: Schema, items: Schema }
 *     | { kind: 'union', schema: Schema, of: { label: string, schema: Schema }[] }} Place
 */

/**
 * The kind of a schema, its references resolved.
 * @param {unknown} given
 * @param {Schema} root where `$ref` leads
 * @returns {Place}
 */
export function place(given, root) {
    const schema = resolve(given, root);
    if ('const' in schema)
        return { kind: 'choice', schema, values: [{ value: schema.const, label: label(schema.const) }] };
    if (Array.isArray(schema.enum)) {
        const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
        const values = schema.enum.map((value, at) => ({ value, label: String(names[at] ?? label(value)) }));
        return { kind: 'choice', schema, values };
    }
    const several = schema.oneOf ?? schema.anyOf;
    if (Array.isArray(several)) return union(schema, several, root);
    const type = Array.isArray(schema.type) ? schema.type.find((it) => it !== 'null') : schema.type;
    switch (type) {
        case 'string':
            return { kind: 'text', schema };
        case 'number':
        case 'integer':
        case 'boolean':
            return { kind: type, schema };
        case 'array':
            return { kind: 'list', schema, items: isSchema(schema.items) ? schema.items : {} };
        default:
            if (type === 'object' || isSchema(schema.properties)) return object(schema);
            return { kind: 'any', schema };
    }
}

/** What a form begins with: defaults, and what is required. @param {unknown} given @param {Schema} root @param {number} [depth] @returns {unknown} */
export function initial(given, root, depth = 0) {
    const it = place(given, root);
    if ('default' in it.schema) return structuredClone(it.schema.default);
    if (depth > DEEPEST) return null;
    switch (it.kind) {
        case 'choice':
            return it.values[0]?.value ?? null;
        case 'object':
            return Object.fromEntries(
                it.members
                    .filter(({ isRequired, schema }) => isRequired || 'default' in resolve(schema, root))
                    .map(({ name, schema }) => [name, initial(schema, root, depth + 1)]),
            );
        case 'list':
            return [];
        case 'union':
            return initial(it.of[0]?.schema ?? {}, root, depth + 1);
        case 'boolean':
            return false;
        case 'number':
        case 'integer':
            return it.schema.minimum ?? 0;
        case 'text':
            return '';
        default:
            return null;
    }
}

/** Which branch of a union a value is of: the one that it was of, or the first that could be it. @param {{ schema: Schema }[]} of @param {unknown} value @param {Schema} root @param {number} [before] */
export function branch(of, value, root, before = -1) {
    const could = (/** @type {{ schema: Schema } | undefined} */ it) =>
        it !== undefined && fits(place(it.schema, root), value);
    if (could(of[before])) return before;
    const found = of.findIndex(could);
    return Math.max(0, found);
}

/** @param {Place} it @param {unknown} value */
function fits(it, value) {
    switch (it.kind) {
        case 'choice':
            return it.values.some((one) => one.value === value);
        case 'text':
            return typeof value === 'string';
        case 'number':
            return typeof value === 'number';
        case 'integer':
            return Number.isInteger(value);
        case 'boolean':
            return typeof value === 'boolean';
        case 'list':
            return Array.isArray(value);
        case 'object': {
            if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
            const has = Object.keys(value);
            const known = it.members.map(({ name }) => name);
            return (
                it.members.every(({ name, isRequired, schema }) => {
                    if (!has.includes(name)) return !isRequired;
                    return !('const' in schema) || schema.const === /** @type {any} */ (value)[name];
                }) && has.every((name) => known.includes(name))
            );
        }
        default:
            return true;
    }
}

/** @param {Schema} schema @returns {Place} */
function object(schema) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    const members = Object.entries(isSchema(schema.properties) ? schema.properties : {}).map(([name, it]) => ({
        name,
        schema: isSchema(it) ? it : {},
        isRequired: required.includes(name),
    }));
    return { kind: 'object', schema, members };
}

/** Titles of single values are a choice; anything else is a union. @param {Schema} schema @param {unknown[]} several @param {Schema} root @returns {Place} */
function union(schema, several, root) {
    const all = several.map((it) => resolve(it, root)).filter((it) => it.type !== 'null');
    if (all.length > 0 && all.every((it) => 'const' in it)) {
        return {
            kind: 'choice',
            schema,
            values: all.map((it) => ({ value: it.const, label: String(it.title ?? label(it.const)) })),
        };
    }
    const [only] = all;
    if (only !== undefined && all.length === 1) return place({ ...only, ...without(schema) }, root);
    return {
        kind: 'union',
        schema,
        of: all.map((it, at) => ({ label: String(it.title ?? it.type ?? `form ${at + 1}`), schema: it })),
    };
}

/** @param {Schema} schema */
function without(schema) {
    const { oneOf: _one, anyOf: _any, ...rest } = schema;
    return rest;
}

/** Follows `$ref` within the document; what leads nowhere is anything. @param {unknown} given @param {Schema} root @returns {Schema} */
function resolve(given, root) {
    let schema = isSchema(given) ? given : {};
    for (let steps = 0; typeof schema.$ref === 'string' && steps < DEEPEST; steps += 1) {
        const { $ref, ...beside } = schema;
        /** @type {any} */
        let found = $ref.startsWith('#') ? root : undefined;
        for (const step of $ref.split('/').slice(1))
            found = own(found, step.replaceAll('~1', '/').replaceAll('~0', '~'));
        schema = { ...(isSchema(found) ? found : {}), ...beside };
    }
    if (Array.isArray(schema.allOf) && schema.allOf.length === 1) {
        const { allOf, ...beside } = schema;
        return { ...resolve(allOf[0], root), ...beside };
    }
    return schema;
}

/** A member, unless every object has it. @param {any} of @param {string} name */
const own = (of, name) => (typeof of === 'object' && of !== null && Object.hasOwn(of, name) ? of[name] : undefined);

/** @param {unknown} it @returns {it is Schema} */
const isSchema = (it) => typeof it === 'object' && it !== null && !Array.isArray(it);

/** @param {unknown} value */
const label = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

const DEEPEST = 12;
