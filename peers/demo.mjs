// One conversation with `trunkline demo`, spoken by any client that the two npm SDKs make.
import { assert, failure } from './check.mjs';

const MODERN = '2026-07-28';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const README = 'demo://readme';

export const TOOLS = [
    'announce', 'book', 'boom', 'echo', 'fail', 'greet', 'kinds', 'log', 'open_page', 'progress',
    'roots', 'sample', 'sleep', 'sum', 'touch', 'work',
];

/** What the client offers when it offers everything. */
export const CAPABILITIES = {
    elicitation: { form: {}, url: {} },
    sampling: {},
    roots: { listChanged: true },
};

/** The client's side of the questions: what it answers, and what it was asked. */
export class Person {
    constructor() {
        this.asked = [];
        this.elicit = () => ({ action: 'cancel' });
    }

    elicitation(params) {
        this.asked.push(params);
        return this.elicit(params);
    }

    sampling(params) {
        this.asked.push(params);
        return { model: 'peer-model', role: 'assistant', content: { type: 'text', text: 'four' } };
    }

    roots() {
        return { roots: [{ uri: 'file:///one', name: 'one' }, { uri: 'file:///two' }] };
    }

    /** Answers every form by the names of its fields. */
    accepts(content) {
        this.asked.length = 0;
        this.elicit = (params) => {
            const fields = Object.keys(params.requestedSchema?.properties ?? {});
            const wanted = fields.filter((name) => name in content);
            return { action: 'accept', content: Object.fromEntries(wanted.map((name) => [name, content[name]])) };
        };
    }

    /** Gives every question the same action. */
    does(action) {
        this.asked.length = 0;
        this.elicit = () => ({ action });
    }
}

/**
 * Checks everything the demo promises to a client of one revision.
 *
 * `peer` has `client`, `call(name, args, options)`, `person`, `inbox` (notifications), `wire` (raw messages received)
 * and `listen(filter)` where the revision has it. A peer with `lingers` has something in between that drops its wish to
 * leave: a call that was cancelled goes on.
 */
export async function converse(checks, peer, revision) {
    const talk = { check: checks.check.bind(checks), ...peer, revision, has: (since) => revision >= since };
    const parts = [
        lists, tools, kinds, failures, progress, cancellation, reading, prompts, completion, elicitation, asks, logging,
        talk.has(MODERN) ? listening : notifications,
    ];
    for (const part of parts) await part(talk);
}

/** Checks that a client which offers nothing is refused, and not left waiting. */
export async function converseWithoutCapabilities(checks, peer) {
    for (const [tool, args] of [['greet', {}], ['open_page', {}], ['sample', { prompt: 'x' }], ['roots', {}]]) {
        await checks.check(`${tool} is refused to a client that cannot answer`, async () => {
            await refused(peer.call(tool, args));
            assert.equal(text(await peer.call('echo', { text: 'still here' })), 'still here');
        });
    }
}

async function lists({ check, client, revision, has }) {
    await check('the server says who it is', async () => {
        assert.equal(client.getServerVersion().name, 'trunkline-demo');
        const offers = client.getServerCapabilities();
        assert.equal(offers.tools.listChanged, true);
        assert.equal(offers.prompts.listChanged, true);
        assert.equal(offers.resources.listChanged, true);
        assert.equal(offers.resources.subscribe, true);
        assert.ok(offers.logging, 'logging');
        // 2024-11-05 has completion but no capability for it.
        assert.equal(offers.completions !== undefined, has('2025-03-26'), 'completions');
        assert.equal(offers.tasks !== undefined, revision === '2025-11-25', 'tasks');
        const extension = offers.extensions?.['io.modelcontextprotocol/tasks'];
        assert.equal(extension !== undefined, has(MODERN), 'the tasks extension');
    });
    await check('tools are listed', async () => {
        const { tools } = await client.listTools();
        assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
        const sum = tools.find((tool) => tool.name === 'sum');
        assert.deepEqual([...sum.inputSchema.required].sort(), ['a', 'b']);
        assert.equal(sum.inputSchema.properties.a.type, 'number');
        assert.equal(sum.outputSchema?.properties?.sum?.type, has('2025-06-18') ? 'number' : undefined);
    });
    await check('resources are listed', async () => {
        const { resources } = await client.listResources();
        const found = resources.map((resource) => [resource.uri, resource.mimeType]).sort();
        assert.deepEqual(found, [['demo://logo', 'image/png'], [README, 'text/markdown']]);
    });
    await check('templates are listed', async () => {
        const { resourceTemplates } = await client.listResourceTemplates();
        assert.deepEqual(resourceTemplates.map((template) => template.uriTemplate), ['demo://greeting/{name}']);
    });
    await check('prompts are listed', async () => {
        const { prompts } = await client.listPrompts();
        assert.deepEqual(prompts.map((prompt) => prompt.name).sort(), ['greet', 'review']);
        const { arguments: args } = prompts.find((prompt) => prompt.name === 'review');
        assert.deepEqual(args.map((arg) => [arg.name, arg.required ?? false]), [['code', true], ['language', false]]);
    });
}

async function tools({ check, client, call, has }) {
    await check('echo', async () => {
        for (const said of ['hello', '', 'line\nbreak', '☃ 🦀 "quoted" \\', 'x'.repeat(200_000)]) {
            assert.deepEqual((await call('echo', { text: said })).content, [{ type: 'text', text: said }]);
        }
    });
    await check('sum', async () => {
        const result = await call('sum', { a: 2, b: 3.5 });
        assert.deepEqual(result.structuredContent, has('2025-06-18') ? { sum: 5.5 } : undefined);
        assert.deepEqual(JSON.parse(text(result)), { sum: 5.5 });
    });
    await check('sleep', async () => {
        assert.equal(text(await call('sleep', { ms: 5 })), 'slept 5 ms');
    });
    await check('work without a task', async () => {
        assert.equal(text(await call('work', { steps: 2 })), 'worked 2 steps');
    });
    await check('sixty-four calls at once are each answered with their own', async () => {
        const calls = Array.from({ length: 64 }, (_, i) => call('echo', { text: `call ${i}` }));
        const answers = await Promise.all(calls);
        assert.deepEqual(answers.map(text), answers.map((_, i) => `call ${i}`));
    });
    if (!has(MODERN)) {
        await check('ping', async () => {
            assert.deepEqual(await client.ping(), {});
        });
    }
}

async function kinds({ check, call, revision, has }) {
    await check('kinds', async () => {
        const { content } = await call('kinds', {});
        const types = content.map((block) => block.type);
        assert.equal(types.length, 5);
        // An older revision gets what it cannot name as something it can.
        const expected = ['text', 'image', 'audio', 'resource_link', 'resource'];
        if (!has('2025-06-18')) expected[3] = 'text';
        if (!has('2025-03-26')) expected[2] = types[2] === 'resource' ? 'resource' : 'text';
        assert.deepEqual(types, expected, `in ${revision}`);
        assert.equal(content[1].mimeType, 'image/png');
        assert.equal(bytes(content[1].data).subarray(1, 4).toString(), 'PNG');
        if (has('2025-03-26')) {
            assert.match(content[2].mimeType, /^audio\/(x-)?wav$/);
            assert.equal(bytes(content[2].data).subarray(0, 4).toString(), 'RIFF');
        }
        if (has('2025-06-18')) assert.match(content[3].uri, /^demo:\/\//);
        assert.match(content[4].resource.uri, /^demo:\/\//);
    });
}

async function failures({ check, client, call, wire, has }) {
    await check('a tool that fails says so in its result', async () => {
        const result = await call('fail', { message: 'no luck' });
        assert.equal(result.isError, true);
        assert.equal(text(result), 'no luck');
    });
    await check('a tool that panics says so in its result, and the next call works', async () => {
        const result = await call('boom', {});
        assert.equal(result.isError, true);
        assert.match(text(result), /^`boom` failed unexpectedly\./);
        assert.equal(text(await call('echo', { text: 'alive' })), 'alive');
    });
    await check('an unknown tool is refused', async () => {
        assert.equal((await failure(call('nothing', {}))).code, -32602);
    });
    await check('arguments that do not fit are refused', async () => {
        const outcome = await call('sum', { a: 'one', b: 2 }).catch((error) => error);
        if (has('2025-11-25')) assert.equal(outcome.isError, true);
        else assert.equal(outcome.code, -32602);
    });
    await check('an unknown resource is refused', async () => {
        wire.clear();
        await failure(client.readResource({ uri: 'demo://nothing' }));
        // Read from the wire: one SDK shows its users the newest revision's code whatever came.
        const codes = wire.items.filter((message) => 'error' in message).map((message) => message.error.code);
        assert.deepEqual(codes, [has(MODERN) ? -32602 : -32002]);
    });
    await check('an unknown prompt is refused', async () => {
        assert.equal((await failure(client.getPrompt({ name: 'nothing' }))).code, -32602);
    });
    await check('a prompt without its required argument is refused', async () => {
        assert.equal((await failure(client.getPrompt({ name: 'review', arguments: {} }))).code, -32602);
    });
}

async function progress({ check, call, wire }) {
    await check('progress', async () => {
        wire.clear();
        const seen = [];
        const result = await call('progress', { steps: 5 }, { onprogress: (step) => seen.push(step.progress) });
        assert.equal(text(result), 'done');
        const said = (step) => ({ progress: step, total: 5, message: `step ${step} of 5` });
        assert.deepEqual(progressOn(wire), [1, 2, 3, 4, 5].map(said));
        assert.deepEqual(seen, [1, 2, 3, 4, 5].slice(0, seen.length), 'out of order');
        assert.ok('result' in wire.items.at(-1), `after the answer came ${JSON.stringify(wire.items.at(-1))}`);
    });
}

// Read from the wire: both SDKs forget a call's `onprogress` when its answer is read, before they have run it for the
// notifications that came in the same chunk.
function progressOn(wire) {
    const sent = wire.items.filter((message) => message.method === 'notifications/progress');
    return sent.map(({ params: { progressToken: _token, _meta, ...step } }) => step);
}

async function cancellation({ check, call, wire, lingers }) {
    if (!lingers) await check('a cancelled call stops, is not answered, and does not delay the next', async () => {
        const stop = new AbortController();
        wire.clear();
        const working = failure(call('work', { steps: 200 }, { signal: stop.signal, onprogress: () => {} }));
        // Its first step shows that the server has read it.
        const { params: { progressToken } } = await wire.next((message) => message.method === 'notifications/progress');
        stop.abort();
        assert.ok((await working) instanceof Error);
        assert.equal(text(await call('echo', { text: 'next' })), 'next');
        // Whatever was under way has come by the end of this one.
        assert.equal(text(await call('sleep', { ms: 100 })), 'slept 100 ms');
        const steps = progressOn(wire).length;
        assert.ok(steps < 150, `${steps} steps of 200`);
        assert.equal(text(await call('sleep', { ms: 200 })), 'slept 200 ms');
        assert.equal(progressOn(wire).length, steps, 'it went on');
        assert.deepEqual(wire.items.filter((message) => message.id === progressToken), [], 'it was answered');
    });
    await check('a cancelled call of a minute does not delay the next', async () => {
        const stop = new AbortController();
        const sleeping = failure(call('sleep', { ms: 60_000 }, { signal: stop.signal }));
        await call('echo', { text: 'meanwhile' });
        const start = performance.now();
        stop.abort();
        await sleeping;
        assert.equal(text(await call('echo', { text: 'next' })), 'next');
        assert.ok(performance.now() - start < 2_000, 'the next call waited');
    });
}

async function reading({ check, client }) {
    await check('a text resource is read', async () => {
        const { contents } = await client.readResource({ uri: README });
        assert.equal(contents.length, 1);
        assert.equal(contents[0].uri, README);
        assert.equal(contents[0].mimeType, 'text/markdown');
        assert.match(contents[0].text, /trunkline/i);
    });
    await check('a binary resource is read', async () => {
        const { contents } = await client.readResource({ uri: 'demo://logo' });
        assert.equal(contents[0].mimeType, 'image/png');
        assert.equal(bytes(contents[0].blob).subarray(1, 4).toString(), 'PNG');
    });
    await check('a template is read', async () => {
        const { contents } = await client.readResource({ uri: 'demo://greeting/Ada' });
        assert.equal(contents[0].uri, 'demo://greeting/Ada');
        assert.equal(contents[0].text, 'Hello, Ada!');
    });
}

async function prompts({ check, client, person, has }) {
    await check('a prompt is filled in', async () => {
        const code = 'fn main() {}';
        const { messages } = await client.getPrompt({ name: 'review', arguments: { code, language: 'rust' } });
        assert.equal(messages.length, 1);
        assert.equal(messages[0].role, 'user');
        assert.equal(messages[0].content.type, 'text');
        assert.ok(messages[0].content.text.includes(code), messages[0].content.text);
        assert.match(messages[0].content.text, /rust/i);
    });
    await check('a prompt that has its argument does not ask', async () => {
        person.does('decline');
        const { messages } = await client.getPrompt({ name: 'greet', arguments: { name: 'Grace' } });
        assert.match(messages[0].content.text, /Grace/);
        assert.equal(person.asked.length, 0);
    });
    await check('a prompt that lacks its argument asks for it', async () => {
        person.accepts({ name: 'Ada' });
        const asking = client.getPrompt({ name: 'greet', arguments: {} });
        if (!has('2025-06-18')) {
            assert.ok((await failure(asking)).code < 0);
            return;
        }
        assert.match((await asking).messages[0].content.text, /Ada/);
        assert.equal(person.asked.length, 1);
    });
    if (has('2025-06-18')) {
        await check('a prompt whose question is declined fails', async () => {
            person.does('decline');
            assert.ok((await failure(client.getPrompt({ name: 'greet', arguments: {} }))).code < 0);
            assert.equal(person.asked.length, 1);
        });
    }
}

async function completion({ check, client }) {
    const values = async (ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values;
    await check('a prompt argument is completed', async () => {
        const ref = { type: 'ref/prompt', name: 'review' };
        assert.deepEqual((await values(ref, 'language', 'ru')).sort(), ['ruby', 'rust']);
        assert.deepEqual(await values(ref, 'language', 'py'), ['python']);
        assert.deepEqual(await values(ref, 'language', 'zz'), []);
    });
    await check('a template variable is completed', async () => {
        const ref = { type: 'ref/resource', uri: 'demo://greeting/{name}' };
        assert.deepEqual((await values(ref, 'name', 'A')).sort(), ['Ada', 'Alan']);
        assert.deepEqual(await values(ref, 'name', 'Gr'), ['Grace']);
    });
}

async function elicitation({ check, call, person, wire, has }) {
    if (!has('2025-06-18')) {
        await check('a question is refused where the revision has none', async () => {
            person.accepts({ name: 'Ada' });
            await refused(call('greet', {}));
            assert.equal(person.asked.length, 0);
        });
        return;
    }
    await check('a question is accepted', async () => {
        person.accepts({ name: 'Ada' });
        assert.equal(text(await call('greet', {})), 'Hello, Ada!');
        assert.equal(person.asked.length, 1);
        assert.equal(person.asked[0].message, 'What is your name?');
        assert.deepEqual(person.asked[0].requestedSchema.required, ['name']);
        assert.equal(person.asked[0].requestedSchema.properties.name.type, 'string');
        assert.equal(person.asked[0].requestedSchema.properties.formal.type, 'boolean');
    });
    await check('a question is accepted with an optional field', async () => {
        person.accepts({ name: 'Ada', formal: true });
        assert.equal(text(await call('greet', {})), 'Good day, Ada.');
    });
    for (const action of ['decline', 'cancel']) {
        await check(`a question meets ${action}`, async () => {
            person.does(action);
            const result = await call('greet', {});
            assert.equal(result.isError, true);
            assert.equal(text(result), 'The user declined.');
        });
    }
    await check('three questions, two of them at once, and progress sent once', async () => {
        person.accepts({ ok: true, name: 'Ada' });
        wire.clear();
        const seen = [];
        const onprogress = ({ progress }) => seen.push(progress);
        const result = await call('book', { city: 'Paris', nights: 2 }, { onprogress });
        assert.notEqual(result.isError, true, text(result));
        assert.equal(person.asked.length, 3);
        const fields = person.asked.map((params) => Object.keys(params.requestedSchema.properties).join());
        assert.deepEqual(fields.slice(0, 2).sort(), ['name', 'ok']);
        assert.equal(fields[2], 'ok');
        assert.equal(typeof result.structuredContent.reference, 'string');
        assert.equal(typeof result.structuredContent.total, 'number');
        const steps = progressOn(wire).map(({ progress, total }) => [progress, total]);
        assert.deepEqual(steps, [[1, 3], [2, 3], [3, 3]]);
        // A question lies between the first step and the answer, so the callback has had its turn.
        assert.ok(seen.includes(1), `the callback saw ${seen}`);
    });
    if (!has('2025-11-25')) {
        await check('a page is refused where the revision has none', async () => {
            person.does('accept');
            await refused(call('open_page', {}));
            assert.equal(person.asked.length, 0);
        });
        return;
    }
    for (const [action, answer] of [['accept', 'accepted'], ['decline', 'declined']]) {
        await check(`a page meets ${action}`, async () => {
            person.does(action);
            assert.equal(text(await call('open_page', {})), answer);
            assert.equal(person.asked.length, 1);
            assert.equal(person.asked[0].mode, 'url');
            assert.equal(person.asked[0].url, 'https://example.com/consent');
        });
    }
}

async function asks({ check, call, person }) {
    await check('the client samples', async () => {
        person.asked.length = 0;
        assert.equal(text(await call('sample', { prompt: 'What is 2 + 2?' })), 'peer-model said: four');
        const [{ messages, maxTokens }] = person.asked;
        assert.equal(maxTokens, 100);
        assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: 'What is 2 + 2?' } }]);
    });
    await check('the client lists its roots', async () => {
        assert.equal(text(await call('roots', {})), 'file:///one\nfile:///two');
    });
}

async function logging({ check, client, call, inbox, has }) {
    const isLog = (message) => message.method === 'notifications/message';
    await check('logs arrive from the level asked for', async () => {
        inbox.clear();
        let asked = {};
        if (has(MODERN)) asked = { _meta: { [LOG_LEVEL]: 'warning' } };
        else await client.setLoggingLevel('warning');
        for (const [level, message] of [['info', 'too quiet'], ['error', 'loud enough']]) {
            assert.equal(text(await call('log', { level, message }, {}, asked)), 'logged');
        }
        const first = await inbox.next(isLog);
        assert.deepEqual(
            { level: first.params.level, logger: first.params.logger, data: first.params.data },
            { level: 'error', logger: 'demo', data: 'loud enough' },
        );
    });
    if (has(MODERN)) {
        await check('no log arrives unasked', async () => {
            inbox.clear();
            await call('log', { level: 'emergency', message: 'unasked' });
            await call('log', { level: 'error', message: 'asked' }, {}, { _meta: { [LOG_LEVEL]: 'debug' } });
            assert.equal((await inbox.next(isLog)).params.data, 'asked');
        });
    }
}

async function notifications({ check, client, call, inbox }) {
    const isUpdate = (message) => message.method === 'notifications/resources/updated';
    await check('a subscriber hears of updates until it leaves', async () => {
        inbox.clear();
        await client.subscribeResource({ uri: README });
        assert.equal(text(await call('touch', { uri: README })), 'touched');
        assert.equal((await inbox.next(isUpdate)).params.uri, README);
        await client.unsubscribeResource({ uri: README });
        inbox.clear();
        await call('touch', { uri: README });
        await call('announce', { kind: 'tools' });
        await inbox.next((message) => message.method === 'notifications/tools/list_changed');
        assert.equal(inbox.items.some(isUpdate), false, 'an update came after leaving');
    });
    for (const kind of ['tools', 'prompts', 'resources']) {
        await check(`the client hears that the ${kind} changed`, async () => {
            inbox.clear();
            assert.equal(text(await call('announce', { kind })), 'announced');
            await inbox.next((message) => message.method === `notifications/${kind}/list_changed`);
        });
    }
}

async function listening({ check, call, inbox, listen, lingers }) {
    const changed = (kind) => (message) => message.method === `notifications/${kind}/list_changed`;
    const isUpdate = (message) => message.method === 'notifications/resources/updated';
    await check('a listener hears what it asked for and nothing else', async () => {
        const filter = { toolsListChanged: true, resourceSubscriptions: [README] };
        const subscription = await listen(filter);
        assert.deepEqual(subscription.honoredFilter, filter);
        inbox.clear();
        await call('touch', { uri: README });
        assert.equal((await inbox.next(isUpdate)).params.uri, README);
        await call('announce', { kind: 'prompts' });
        await call('announce', { kind: 'tools' });
        await inbox.next(changed('tools'));
        assert.equal(inbox.items.some(changed('prompts')), false, 'prompts were not asked for');
        await subscription.close();
    });
    if (!lingers) await check('two listeners, one of which leaves', async () => {
        const first = await listen({ promptsListChanged: true });
        const second = await listen({ resourcesListChanged: true });
        inbox.clear();
        await call('announce', { kind: 'prompts' });
        await inbox.next(changed('prompts'));
        await first.close();
        inbox.clear();
        await call('announce', { kind: 'prompts' });
        await call('announce', { kind: 'resources' });
        await inbox.next(changed('resources'));
        assert.equal(inbox.items.some(changed('prompts')), false, 'the first listener had left');
        await second.close();
    });
}

/** The call ends in an error of either kind. */
async function refused(promise) {
    const outcome = await promise.catch((error) => error);
    const refusal = outcome.isError === true || (typeof outcome.code === 'number' && outcome.code < 0);
    assert.ok(refusal, `expected a refusal, got ${JSON.stringify(outcome)}`);
}

/** The text of a result that is one text block. */
export function text(result) {
    assert.deepEqual(result.content.map((block) => block.type), ['text']);
    return result.content[0].text;
}

function bytes(base64) {
    return Buffer.from(base64, 'base64');
}
