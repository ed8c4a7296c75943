// URI templates (RFC 6570) as servers of MCP use them: their variables, and the URI with values for them.

/** The variables, each once. @param {string} template */
export function variables(template) {
    const found = [...template.matchAll(EXPRESSION)].flatMap(([, , names = '']) => names.split(',').map(bare));
    return [...new Set(found)].filter((name) => name !== '');
}

/** @param {string} template @param {Record<string, unknown>} values */
export function expand(template, values) {
    return template.replaceAll(EXPRESSION, (_, operator = '', names = '') => {
        const given = names
            .split(',')
            .map(bare)
            .filter((/** @type {string} */ name) => Object.hasOwn(values, name) && (values[name] ?? '') !== '');
        const keeps = operator === '+' || operator === '#';
        const written = (/** @type {string} */ name) =>
            keeps ? encodeURI(String(values[name])) : encodeURIComponent(String(values[name]));
        const [first, between, isNamed] = OPERATORS[operator] ?? ['', ',', false];
        if (given.length === 0) return '';
        return (
            first +
            given
                .map((/** @type {string} */ name) => (isNamed ? `${name}=${written(name)}` : written(name)))
                .join(between)
        );
    });
}

/** A name without its modifier. @param {string} name */
const bare = (name) => name.trim().replace(/(\*|:\d+)$/, '');

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;
/** What stands first and between, and whether names are written. @type {Record<string, [string, string, boolean]>} */
const OPERATORS = {
    '+': ['', ',', false],
    '#': ['#', ',', false],
    '.': ['.', '.', false],
    '/': ['/', '/', false],
    ';': [';', ';', true],
    '?': ['?', '&', true],
    '&': ['&', '&', true],
};
