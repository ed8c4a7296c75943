// What was seen directly and through the gateway into a word for the cell, and what differs.

/** What is never the same twice, or belongs to one revision alone. */
const LEFT_OUT = ['_meta', 'progressToken', 'traceId', 'elicitationId'];

/** What was seen, as it would be seen at any server that says the same. */
export function normal(value, server) {
    if (Array.isArray(value)) return value.map((item) => normal(item, server));
    if (typeof value === 'string') {
        // People are told which server asks, and tools are named after theirs. A server that names the revision it is spoken
        // to in names the newest of its caller's era.
        return value.replace(`[${server}] `, '').replaceAll(`${server}.`, '').replace(/negotiated '[\d-]+'/, "negotiated 'it'");
    }
    if (value === null || typeof value !== 'object') return value;
    const entries = Object.entries(value).filter(([key]) => !LEFT_OUT.includes(key));
    const kept = entries.map(([key, it]) => [key, normal(it, server)]).filter(([key, it]) => {
        // A form is what is meant without a word for it, and no params are as good as empty ones.
        if (key === 'mode' && it === 'form') return false;
        return it !== undefined && !(key === 'params' && Object.keys(it).length === 0);
    });
    return Object.fromEntries(kept.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Whether a step ended in an error of either kind. */
const isFailed = (step) => step.error !== undefined || step.result?.isError === true;

/** Whether more was told through the gateway than the server says: somebody made it up. */
const isInvented = ({ direct, through }) => (through?.notes?.length ?? 0) > (direct.notes?.length ?? 0);

/**
 * A cell: `same`, `same error`, `better` if the first step that differs failed directly and not through the gateway and
 * nothing was made up, `DIFFERS` otherwise.
 */
export function compare(direct, through) {
    const pairs = direct.map((step, at) => ({ step: at + 1, direct: step, through: through[at] ?? null }));
    const differing = pairs.filter((it) => JSON.stringify(it.direct) !== JSON.stringify(it.through));
    if (differing.length === 0) return { word: isFailed(direct[0]) ? 'same error' : 'same', differing };
    const [first] = differing;
    const works = first.through !== null && !isFailed(first.through);
    const isBetter = isFailed(first.direct) && works && !differing.some(isInvented);
    return { word: isBetter ? 'better' : 'DIFFERS', differing };
}

/** The lines for one step that differs. */
export function lines({ step, direct, through }) {
    const line = (seen) => {
        const text = JSON.stringify(seen);
        return text.length > 700 ? `${text.slice(0, 700)}…` : text;
    };
    return `  step ${step}, directly: ${line(direct)}\n  step ${step}, through:  ${line(through)}`;
}
