// What the page reads: events, JSON, filters, messages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine, quote } from '../web/cli.js';
import { format, parse, query, toggle } from '../web/filter.js';
import { at, compact, parseJson, pretty, textAt } from '../web/json.js';
import { conversation } from '../web/messages.js';
import { Grouping, listed } from '../web/recording.js';
import { branch, initial, place } from '../web/schema.js';
import { LineDecoder, SseDecoder } from '../web/sse.js';
import { expand, variables } from '../web/template.js';

test('events come out whole, however they are cut', () => {
    const text =
        ': hello\n\nevent: call\ndata: {"a":1}\n\nevent: dropped\r\ndata: x\r\ndata: y\r\n\r\nid: 7\n\ndata:z\n\n';
    const expected = [
        { event: 'call', data: '{"a":1}' },
        { event: 'dropped', data: 'x\ny' },
        { event: 'message', data: 'z' },
    ];
    for (let size = 1; size <= text.length; size += 1) {
        const decoder = new SseDecoder();
        const events = [];
        for (let from = 0; from < text.length; from += size)
            events.push(...decoder.feed(text.slice(from, from + size)));
        assert.deepEqual(events, expected, `in pieces of ${size}`);
    }
});

test('lines come out whole, however they are cut, without those that only keep the connection', () => {
    const text = '{"line":"a"}\n\n{"missed":3}\n\r\n{"line":"ü"}\n{"line":"half';
    for (let size = 1; size <= text.length; size += 1) {
        const decoder = new LineDecoder();
        const found = [];
        for (let from = 0; from < text.length; from += size) found.push(...decoder.feed(text.slice(from, from + size)));
        assert.deepEqual(found, [{ line: 'a' }, { missed: 3 }, { line: 'ü' }], `in pieces of ${size}`);
    }
});

test('a recording is read a piece at a time, and comes out by call', () => {
    const line = (call, t, message) =>
        JSON.stringify({ v: 1, ...(call && { call }), t, side: 'server', dir: 'out', message });
    const text = [
        line('a', 1000, { id: 1, method: 'tools/call', params: { name: 'x.y' } }),
        line(null, 1001, { method: 'ping' }),
        '',
        line('a', 1010, { id: 1, result: { n: 1.5 } }).replace('1.5', '1.50'),
        JSON.stringify({ v: 1, note: 'no message' }),
    ].join('\n');
    const grouping = new Grouping(text);
    let pieces = 0;
    for (; !grouping.isWhole; pieces += 1) grouping.read(() => true);
    assert.equal(pieces, 5);
    const [call, rest] = [...grouping.calls.values()];
    assert.deepEqual([call.name, call.count, rest.name, rest.id], ['tools/call x.y', 2, 'ping', 'the rest']);
    assert.equal(listed(call).includes('"n":1.50'), true);
    assert.deepEqual(
        JSON.parse(listed(call)).map(({ t, dir }) => [t, dir]),
        [
            [0, 'out'],
            [10, 'out'],
        ],
    );
});

test('what every object has is no field, no member and no value', () => {
    assert.deepEqual(parse('constructor:x toString:y'), { fields: {}, text: 'constructor:x toString:y' });
    assert.equal(place({ $ref: '#/constructor' }, {}).kind, 'any');
    const schema = { type: 'object', properties: { constructor: { type: 'string' }, toString: { type: 'number' } } };
    assert.deepEqual(Object.keys(initial(schema, schema)), []);
    assert.equal(expand('x:{constructor}', {}), 'x:');
});

test('a tree keeps the spelling of numbers, the order of members and what stands twice', () => {
    const text = ' {"b":12345678901234567890,"2":1.50,"1":-0e5,"b":"\\u0041\\n","n":[true,null,{}]} ';
    const tree = parseJson(text);
    assert.equal(compact(tree), '{"b":12345678901234567890,"2":1.50,"1":-0e5,"b":"A\\n","n":[true,null,{}]}');
    assert.equal(textAt(tree, 'b'), 'A\n');
    assert.equal(at(tree, 'n', 0)?.text, 'true');
    assert.equal(at(tree, 'n', 'x'), undefined);
    assert.equal(text.slice(at(tree, 'n').start, at(tree, 'n').end), '[true,null,{}]');
    assert.equal(pretty(parseJson('{"a":[1,{}],"c":{}}')), '{\n  "a": [\n    1,\n    {}\n  ],\n  "c": {}\n}');
});

test('what is no JSON is an error, not a guess', () => {
    for (const bad of ['', '{', '[1,]', '{"a"}', '{"a":}', '"x', 'tru', '1 2', '{a:1}', '\u00a01', '"\\x"']) {
        assert.throws(() => parseJson(bad), SyntaxError, bad);
    }
    assert.throws(() => parseJson('['.repeat(100_000)), SyntaxError);
});

test('a filter is read, written and sent', () => {
    assert.deepEqual(parse('server:files some  words principal:"ci bot" x:y outcome:'), {
        fields: { server: 'files', principal: 'ci bot' },
        text: 'some words x:y',
    });
    for (const typed of ['', 'server:files', 'principal:"ci bot" words', 'http://x a']) {
        assert.equal(format(parse(typed)), typed);
    }
    assert.equal(toggle('outcome:error words', 'outcome', 'asked'), 'outcome:asked words');
    assert.equal(toggle('outcome:error words', 'outcome', 'error'), 'words');
    assert.equal(query(''), '');
    assert.equal(query('server:ci-* since:15m a b', { limit: '5' }), '?server=ci-*&since=15m&limit=5&text=a+b');
    assert.equal(query('since:soon'), '');
});

test('a request becomes the command that makes it again', () => {
    const request = (method, params) => parseJson(JSON.stringify({ id: 1, method, params }));
    const nobody = { server: null, told: undefined };
    const line = (method, params, target = nobody) =>
        commandLine(request(method, params), 'http://127.0.0.1:1/mcp', target);
    const target = { server: 'a', told: request('tools/call', { name: 'b' }) };
    assert.equal(line('tools/call', { name: 'b' }, target), 'trunkline call b http://127.0.0.1:1/mcp/server/a');
    assert.equal(line('tools/call', { name: 'a_b' }, target), 'trunkline call a_b http://127.0.0.1:1/mcp');
    assert.equal(
        line('tools/call', { name: 'a.b', arguments: { text: "it's" } }),
        `trunkline call a.b --args '{"text":"it'\\''s"}' http://127.0.0.1:1/mcp`,
    );
    assert.equal(line('tools/call', { name: 'a.b', arguments: {} }), 'trunkline call a.b http://127.0.0.1:1/mcp');
    assert.equal(
        line('prompts/get', { name: 'p', arguments: { x: '1 2' } }),
        "trunkline prompt p 'x=1 2' http://127.0.0.1:1/mcp",
    );
    assert.equal(line('resources/read', { uri: 'file:///a b' }), "trunkline read 'file:///a b' http://127.0.0.1:1/mcp");
    assert.equal(line('ping', {}), null);
    assert.equal(commandLine(undefined, 'x', nobody), null);
    assert.equal(quote('$(x)'), "'$(x)'");
});

test('the exchange is found among the messages of both sides, in both eras', () => {
    const messages = (list) => {
        const text = JSON.stringify(list.map(([side, dir, message], t) => ({ t, side, dir, size: 1, message })));
        return conversation(text, parseJson(text));
    };
    const older = messages([
        ['client', 'in', { id: 1, method: 'tools/call', params: { name: 'a.b' } }],
        ['server', 'out', { id: 0, method: 'initialize' }],
        ['server', 'out', { id: 9, method: 'tools/call', params: { name: 'b' } }],
        ['server', 'in', { id: 's', method: 'elicitation/create', params: {} }],
        ['client', 'out', { id: 'x', method: 'elicitation/create', params: {} }],
        ['client', 'in', { id: 'x', result: { action: 'accept' } }],
        ['server', 'in', { id: 9, result: { isError: true } }],
        ['client', 'out', { id: 1, result: { isError: true } }],
    ]);
    assert.equal(textAt(older.request?.node, 'params', 'name'), 'a.b');
    assert.equal(textAt(older.serverRequest?.node, 'params', 'name'), 'b');
    assert.equal(older.response?.label, 'result: tool error');
    assert.equal(older.questions.length, 1);
    assert.equal(older.questions[0].answer?.t, 5);

    const newer = messages([
        ['client', 'in', { id: 1, method: 'tools/call', params: {} }],
        ['client', 'out', { id: 1, result: { resultType: 'input_required', inputRequests: { q: {} } } }],
        ['client', 'in', { id: 2, method: 'tools/call', params: { inputResponses: { q: {} } } }],
        ['client', 'out', { id: 2, error: { code: -32603, message: 'no' } }],
    ]);
    assert.equal(newer.response?.label, 'error -32603');
    assert.deepEqual([newer.questions[0].question.t, newer.questions[0].answer?.t], [1, 2]);

    const handshake = messages([
        ['server', 'out', { id: 1, method: 'initialize', params: {} }],
        ['server', 'in', { id: 1, result: { protocolVersion: '2025-11-25' } }],
        ['server', 'out', { method: 'notifications/initialized' }],
        ['server', 'out', { id: 2, method: 'ping' }],
        ['server', 'in', { id: 2, result: {} }],
    ]);
    assert.equal(handshake.request?.label, 'initialize');
    assert.equal(textAt(handshake.response?.node, 'result', 'protocolVersion'), '2025-11-25');

    const bare = messages([['client', 'in', null]]);
    assert.equal(bare.messages[0].label, 'not kept');
    assert.equal(bare.request, undefined);
});

test('a schema becomes a form: references, unions, choices, defaults', () => {
    const root = {
        $defs: {
            person: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
            loop: { $ref: '#/$defs/loop' },
        },
    };
    assert.equal(place({ $ref: '#/$defs/person' }, root).kind, 'object');
    assert.equal(place({ $ref: '#/$defs/loop' }, root).kind, 'any');
    assert.equal(place({ $ref: 'https://example.com/x' }, root).kind, 'any');
    assert.equal(place({ type: ['null', 'integer'] }, root).kind, 'integer');
    assert.equal(place({ anyOf: [{ type: 'string' }, { type: 'null' }] }, root).kind, 'text');
    assert.deepEqual(
        place({ oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] }, root).values.map(({ label }) => label),
        ['A', 'b'],
    );
    assert.equal(place(true, root).kind, 'any');
    const schema = {
        type: 'object',
        required: ['a', 'list', 'who', 'pay'],
        properties: {
            a: { type: 'integer', minimum: 3 },
            b: { type: 'string' },
            c: { type: 'boolean', default: true },
            list: { type: 'array' },
            who: { $ref: '#/$defs/person' },
            pay: {
                oneOf: [
                    { type: 'object', properties: { kind: { const: 'card' } }, required: ['kind'] },
                    { type: 'string' },
                ],
            },
        },
        ...root,
    };
    assert.deepEqual(initial(schema, schema), { a: 3, c: true, list: [], who: { name: '' }, pay: { kind: 'card' } });
    const { of } = place(schema.properties.pay, schema);
    assert.equal(branch(of, 'x', schema), 1);
    assert.equal(branch(of, { kind: 'card' }, schema), 0);
    // What a person has chosen stays, as long as the value could be it.
    const words = [{ schema: { type: 'string' } }, { schema: { type: 'string' } }, { schema: { type: 'null' } }];
    assert.deepEqual(
        [branch(words, 'x', schema), branch(words, 'x', schema, 1), branch(words, 7, schema, 1)],
        [0, 1, 2],
    );
    const endless = { type: 'object', properties: { more: { $ref: '#' } }, required: ['more'] };
    assert.ok(JSON.stringify(initial(endless, endless)).length < 1000);
});

test('a template names its variables and becomes a URI', () => {
    assert.deepEqual(variables('file://{host}/{+path}{?q,page*}{host}'), ['host', 'path', 'q', 'page']);
    const values = { host: 'a b', path: 'x/y z', q: 'é&', page: 2 };
    assert.equal(expand('file://{host}/{+path}{?q,page*}', values), 'file://a%20b/x/y%20z?q=%C3%A9%26&page=2');
    assert.equal(expand('demo://{/id}{#part}{?q}', { id: 7 }), 'demo:///7');
    assert.equal(expand('plain', {}), 'plain');
});
