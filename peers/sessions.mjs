// What only HTTP has: a session that ends, a stream that is cut and resumed.
import { assert, failure, within } from './check.mjs';
import { text } from './demo.mjs';
import { Wire } from './http.mjs';

/** Checks how the conversation went over HTTP. */
export async function keepsItsSession(checks, { transport, log, errors }) {
    await checks.check('every exchange was in the session and none was refused', async () => {
        const { sessionId } = transport;
        assert.match(sessionId, /^[\x21-\x7e]{16,}$/);
        const [first, ...rest] = log.items;
        assert.equal(first.session, null);
        assert.deepEqual(rest.filter((entry) => entry.session !== sessionId), []);
        // A stream that ended without an answer is asked for once more, and need not be there.
        assert.deepEqual(log.items.filter((entry) => entry.status >= 400 && entry.resumed === null), []);
        assert.deepEqual(errors, []);
        const came = (method, type) => log.items.some((entry) => entry.method === method && entry.type === type);
        const streams = log.items.filter((entry) => entry.method === 'GET' && entry.resumed === null);
        assert.equal(streams.length, 1, `the GET stream was opened ${streams.length} times`);
        const again = log.items.filter((entry) => entry.resumed !== null);
        assert.ok(again.length < 10, `streams that had ended were asked for ${again.length} times`);
        assert.ok(came('POST', 'application/json'), 'no answer as JSON');
        assert.ok(came('POST', 'text/event-stream'), 'no answer as SSE');
    });
}

/** Ends the session of a conversation; what it left is gone. */
export async function ends(checks, { client, transport, log }) {
    await checks.check('a session that was ended is gone', async () => {
        const { sessionId } = transport;
        await transport.terminateSession();
        const { method, status } = log.items.at(-1);
        assert.deepEqual([method, status], ['DELETE', 204]);
        // The client has forgotten the id; a second one that has not is told to start anew.
        transport._sessionId = sessionId;
        await failure(client.listTools());
        assert.equal(log.items.at(-1).status, 404);
        transport._sessionId = undefined;
    });
}

/** Checks how the conversation went where there are no sessions. */
export async function leavesNothing(checks, { log, errors }) {
    await checks.check('every exchange was a POST without a session', async () => {
        const odd = log.items.filter((entry) => entry.method !== 'POST' || entry.session !== null);
        assert.deepEqual(odd, []);
        assert.deepEqual(errors, []);
        const came = (status, type) => log.items.some((entry) => entry.status === status && entry.type === type);
        assert.ok(came(200, 'application/json'), 'no answer as JSON');
        assert.ok(came(200, 'text/event-stream'), 'no answer as SSE');
        const refused = log.items.filter((entry) => entry.status >= 400);
        assert.deepEqual(refused.filter((entry) => entry.type !== 'application/json'), []);
    });
}

/** Checks that progress right before an answer reaches the caller, though nothing comes between them. */
export async function handsOnProgress(checks, peer) {
    await checks.check('progress right before the answer is handed on', async () => {
        let left = 200;
        let handedOn = 0;
        const caller = async () => {
            while (left > 0) {
                left -= 1;
                await peer.call('progress', { steps: 1 }, { onprogress: () => { handedOn += 1; } });
            }
        };
        await Promise.all(Array.from({ length: 8 }, caller));
        assert.equal(handedOn, 200);
    });
}

/** Checks that the answer still comes when the wire is cut, and that nothing is lost or doubled. */
export async function resumes(checks, url, connect, revision) {
    const wire = await Wire.to(url);
    const peer = await connect(wire.url);
    const other = await connect(url);
    const resumed = (entry) => entry.method === 'GET' && entry.resumed !== null;
    // What is posted on a connection that was cut a moment ago fails, so nothing is posted before the client is back.
    const cut = async () => {
        peer.log.clear();
        assert.ok(wire.cut() > 0, 'there was nothing to cut');
        assert.equal((await peer.log.next(resumed)).status, 200);
    };
    await checks.check('a call whose stream is cut is resumed', async () => {
        const calling = peer.call('progress', { steps: 200 }, { onprogress: () => {}, resetTimeoutOnProgress: true });
        calling.catch(() => {});
        for (const step of [3, 40, 90]) {
            await peer.wire.next((message) => message.params?.progress >= step);
            await cut();
        }
        assert.equal(text(await within(10_000, calling)), 'done');
        const steps = peer.wire.items.filter((message) => message.method === 'notifications/progress');
        assert.deepEqual(steps.map((message) => message.params.progress), Array.from({ length: 200 }, (_, i) => i + 1));
        const answers = peer.wire.items.filter((message) => 'result' in message);
        assert.equal(answers.length, 1, JSON.stringify(answers));
        assert.deepEqual(peer.log.items.filter((entry) => entry.body?.includes('"tools/call"')), [], 'called again');
    }, 20_000);
    await checks.check('a call that ends while the wire is down is answered', async () => {
        peer.wire.clear();
        const calling = peer.call('progress', { steps: 30 }, { onprogress: () => {} });
        calling.catch(() => {});
        await peer.wire.next((message) => message.params?.progress >= 3);
        wire.down = true;
        wire.cut();
        // By the end of this one the call is over.
        assert.equal(text(await other.call('sleep', { ms: 500 })), 'slept 500 ms');
        wire.down = false;
        assert.equal(text(await within(5_000, calling)), 'done');
        const steps = peer.wire.items.filter((message) => message.method === 'notifications/progress');
        assert.deepEqual(steps.map((message) => message.params.progress), Array.from({ length: 30 }, (_, i) => i + 1));
    });
    if (revision >= '2025-06-18') {
        await checks.check('a question on a stream that was cut is asked once', async () => {
            peer.person.accepts({ name: 'Ada' });
            const answer = peer.person.elicit;
            peer.person.elicit = async (params) => {
                await cut();
                return answer(params);
            };
            assert.equal(text(await peer.call('greet', {})), 'Hello, Ada!');
            assert.equal(peer.person.asked.length, 1);
        });
    }
    await checks.check('a change that comes while the wire is down is heard once', async () => {
        const changed = (message) => message.method === 'notifications/tools/list_changed';
        await other.call('announce', { kind: 'tools' });
        await peer.inbox.next(changed);
        peer.inbox.clear();
        peer.log.clear();
        wire.down = true;
        wire.cut();
        await other.call('announce', { kind: 'tools' });
        wire.down = false;
        await peer.inbox.next(changed);
        // What came twice would have come by the end of this one.
        await peer.call('sleep', { ms: 100 });
        assert.equal(peer.inbox.items.filter(changed).length, 1, 'it came twice');
    });
    for (const { client, transport } of [peer, other]) {
        await transport.terminateSession();
        await client.close();
    }
    wire.close();
}

/** Checks what is left to a client of an old revision when the server keeps no sessions. */
export async function staysStateless(checks, connect, revision) {
    let peer;
    await checks.check('connects without a session', async () => {
        peer = await connect();
        assert.equal(peer.negotiated, revision);
        assert.equal(peer.transport.sessionId, undefined);
        assert.equal((await peer.log.next((entry) => entry.method === 'GET')).status, 405);
    });
    if (peer === undefined) return;
    await checks.check('lists, calls, reads and prompts', async () => {
        assert.ok((await peer.client.listTools()).tools.length > 10);
        assert.deepEqual(JSON.parse(text(await peer.call('sum', { a: 1, b: 2 }))), { sum: 3 });
        const { contents } = await peer.client.readResource({ uri: 'demo://greeting/Ada' });
        assert.equal(contents[0].text, 'Hello, Ada!');
        assert.equal((await peer.client.getPrompt({ name: 'review', arguments: { code: 'x' } })).messages.length, 1);
    });
    await checks.check('progress comes before the answer', async () => {
        peer.wire.clear();
        assert.equal(text(await peer.call('progress', { steps: 3 }, { onprogress: () => {} })), 'done');
        assert.deepEqual(peer.wire.items.map((message) => message.params?.progress), [1, 2, 3, undefined]);
    });
    await checks.check('a question is refused, since its answer could not come back', async () => {
        peer.person.accepts({ name: 'Ada' });
        const outcome = await peer.call('greet', {}).catch((error) => error);
        assert.ok(outcome.isError === true || outcome.code < 0, JSON.stringify(outcome));
        assert.equal(peer.person.asked.length, 0);
    });
    await peer.client.close();
}
