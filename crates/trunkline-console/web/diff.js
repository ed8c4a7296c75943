// Two texts into the lines that they share and those that they do not.

/** @typedef {{ kind: 'same' | 'less' | 'more' | 'gap', text: string }} DiffLine */

/**
 * The lines of both, in order; long stretches of shared lines are left out.
 * @param {string} before
 * @param {string} after
 * @param {number} [around] how many shared lines stay beside a difference
 * @returns {DiffLine[]}
 */
export function diffLines(before, after, around = 3) {
    const a = before.split('\n');
    const b = after.split('\n');
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
    const lines = [
        ...a.slice(0, head).map(same),
        ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
        ...a.slice(a.length - tail).map(same),
    ];
    return fold(lines, around);
}

/**
 * What two lines share at their begin and end, and what is between.
 * @param {string} one
 * @param {string} other
 * @returns {{ head: string, one: string, other: string, tail: string }}
 */
export function within(one, other) {
    const most = Math.min(one.length, other.length);
    let head = 0;
    while (head < most && one[head] === other[head]) head += 1;
    let tail = 0;
    while (tail < most - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1;
    return {
        head: one.slice(0, head),
        one: one.slice(head, one.length - tail),
        other: other.slice(head, other.length - tail),
        tail: one.slice(one.length - tail),
    };
}

/** The longest common subsequence, if both are short enough for it. @param {string[]} a @param {string[]} b @returns {DiffLine[]} */
function middle(a, b) {
    if (a.length * b.length > LARGEST) return [...a.map(less), ...b.map(more)];
    const width = b.length + 1;
    const longest = new Uint32Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i -= 1) {
        for (let j = b.length - 1; j >= 0; j -= 1) {
            const at = i * width + j;
            longest[at] =
                a[i] === b[j]
                    ? (longest[at + width + 1] ?? 0) + 1
                    : Math.max(longest[at + width] ?? 0, longest[at + 1] ?? 0);
        }
    }
    const lines = [];
    let [i, j] = [0, 0];
    while (i < a.length && j < b.length) {
        const at = i * width + j;
        if (a[i] === b[j]) {
            lines.push(same(a[i++] ?? ''));
            j += 1;
        } else if ((longest[at + width] ?? 0) >= (longest[at + 1] ?? 0)) lines.push(less(a[i++] ?? ''));
        else lines.push(more(b[j++] ?? ''));
    }
    return [...lines, ...a.slice(i).map(less), ...b.slice(j).map(more)];
}

/** @param {DiffLine[]} lines @param {number} around */
function fold(lines, around) {
    const near = new Uint8Array(lines.length);
    lines.forEach((line, at) => {
        if (line.kind !== 'same') near.fill(1, Math.max(0, at - around), at + around + 1);
    });
    /** @type {DiffLine[]} */
    const shown = [];
    let left = 0;
    const gap = (/** @type {number} */ at) => {
        const only = lines[at - 1];
        if (left === 1 && only !== undefined) shown.push(only);
        else if (left > 0) shown.push({ kind: 'gap', text: `${left} equal lines` });
        left = 0;
    };
    lines.forEach((line, at) => {
        if (near[at] !== 1) {
            left += 1;
            return;
        }
        gap(at);
        shown.push(line);
    });
    gap(lines.length);
    return shown;
}

/** @param {string} text @returns {DiffLine} */
const same = (text) => ({ kind: 'same', text });
/** @param {string} text @returns {DiffLine} */
const less = (text) => ({ kind: 'less', text });
/** @param {string} text @returns {DiffLine} */
const more = (text) => ({ kind: 'more', text });

const LARGEST = 4_000_000;
