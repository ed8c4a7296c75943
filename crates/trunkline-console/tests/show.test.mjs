// What the page shows: rows in order, differences, numbers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Calls } from '../web/calls.js';
import { diffLines, within } from '../web/diff.js';
import { bytes, duration, meaning, plural } from '../web/format.js';

const call = (id, at, more = {}) => ({ id, at, state: 'done', ...more });
const ids = (calls) => Array.from({ length: calls.length }, (_, row) => calls.at(row).id);

test('rows are newest first, whatever order they come in, and a call stays one row', () => {
    const calls = new Calls(100);
    calls.apply([call('b', '2'), call('a', '1'), call('d', '4', { state: 'running' }), call('c', '3')]);
    assert.deepEqual(ids(calls), ['d', 'c', 'b', 'a']);
    calls.apply([call('d', '4'), call('e', '2')]);
    assert.deepEqual(ids(calls), ['d', 'c', 'e', 'b', 'a']);
    assert.equal(calls.at(0).state, 'done');
    for (const id of ids(calls)) assert.equal(calls.at(calls.rowOf(id)).id, id);
    assert.equal(calls.rowOf('x'), -1);
    calls.apply([call('a', '9')]);
    assert.deepEqual(ids(calls), ['a', 'd', 'c', 'e', 'b']);
});

test('the page is bounded, and says how much it let go', () => {
    const calls = new Calls(1000);
    for (let from = 0; from < 5000; from += 100) {
        calls.apply(
            Array.from({ length: 100 }, (_, more) => call(`c${from + more}`, String(from + more).padStart(5, '0'))),
        );
        assert.ok(calls.length <= 1500, String(calls.length));
    }
    assert.equal(calls.at(0).id, 'c4999');
    assert.equal(calls.length + calls.forgotten, 5000);
    assert.equal(calls.byId.size, calls.length);
});

test('a difference shows what was taken and what was added, and folds what is equal', () => {
    const lines = (text) => text.split('').join('\n');
    const shown = diffLines(lines('abcdefghij'), lines('abcdXfghij'), 1);
    assert.deepEqual(
        shown.map(({ kind, text }) => `${kind} ${text}`),
        ['gap 3 equal lines', 'same d', 'less e', 'more X', 'same f', 'gap 4 equal lines'],
    );
    assert.deepEqual(
        diffLines('a\nb', 'a\nb').map(({ kind }) => kind),
        ['gap'],
    );
    assert.deepEqual(
        diffLines('', 'x').map(({ kind }) => kind),
        ['less', 'more'],
    );
    // Whatever is shown, both texts can be put together from it.
    const [a, b] = ['a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc'];
    const all = diffLines(a, b, 99);
    const side = (not) =>
        all
            .filter(({ kind }) => kind !== not)
            .map(({ text }) => text)
            .join('\n');
    assert.equal(side('more'), a);
    assert.equal(side('less'), b);
});

test('numbers read well', () => {
    assert.deepEqual([0, 0.04, 4.21, 42.4, 999.4, 1234, 45_600, 61_000, 3_700_000].map(duration), [
        '0 ms',
        '0.04 ms',
        '4.2 ms',
        '42 ms',
        '999 ms',
        '1.23 s',
        '45.6 s',
        '1 min 1 s',
        '1 h 1 min',
    ]);
    assert.deepEqual([0, 1023, 1536, 5_242_880].map(bytes), ['0 B', '1023 B', '1.5 KiB', '5.0 MiB']);
    assert.deepEqual([plural(1, 'call'), plural(12_000, 'call')], ['1 call', '12,000 calls']);
    assert.equal(meaning({ state: 'running', outcome: null }), 'running');
    assert.equal(meaning({ state: 'done', outcome: 'a word of tomorrow' }), 'unknown');
});
