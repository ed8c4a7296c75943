// The npm client @modelcontextprotocol/client held to one revision: what it sees of a server, or of a gateway before it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { within } from '../check.mjs';

const MODERN = '2026-07-28';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const NOTES = ['notifications/message', 'notifications/progress', 'notifications/resources/updated'];
const CONTENT = { name: 'Ada', age: 36 };
const SAMPLED = { model: 'peer-model', role: 'assistant', content: { type: 'text', text: 'four' } };
const ROOTS = { roots: [{ uri: 'file:///one', name: 'one' }, { uri: 'file:///two' }] };

/** A subclass is probed in place; otherwise finding the revision takes a process of its own. */
class InPlace extends StdioClientTransport {}

/** Everything that a client of a revision can be asked. */
export function able(revision) {
    const forms = revision >= '2025-11-25' ? { form: {}, url: {} } : {};
    return { sampling: {}, roots: { listChanged: true }, ...(revision >= '2025-06-18' && { elicitation: forms }) };
}

export class Peer {
    /** `way` is the command of a server or the URL of a gateway, and what stands before the names of tools there. */
    static async connect(way, revision, capabilities) {
        const peer = new Peer();
        Object.assign(peer, { prefix: way.prefix, asked: [], notes: [], due: [] });
        // In the newest revision it speaks an older one to a server that has no other.
        const options = revision === MODERN ? { versionNegotiation: { mode: 'auto' } } : { supportedProtocolVersions: [revision] };
        peer.client = new Client({ name: 'table', version: '1.0.0' }, { capabilities, ...options });
        peer.client.onerror = () => {};
        if (capabilities.elicitation) peer.answers('elicitation/create', (params) => peer.elicited(params));
        if (capabilities.sampling) peer.answers('sampling/createMessage', () => SAMPLED);
        if (capabilities.roots) peer.answers('roots/list', () => ROOTS);
        const transport = way.url === undefined
            ? new InPlace({ ...way.command, stderr: 'ignore' }) : new StreamableHTTPClientTransport(new URL(way.url));
        await within(60_000, peer.client.connect(transport));
        // Noted as it comes: the client forgets a call's `onprogress` when its answer is read.
        const receive = transport.onmessage;
        transport.onmessage = (message, extra) => {
            // The gateway says so while a server starts; directly, connecting takes as long.
            const isWaiting = message.params?.message?.startsWith?.('Waiting for `') === true;
            if (NOTES.includes(message.method) && !isWaiting) peer.notes.push({ method: message.method, params: message.params });
            return receive(message, extra);
        };
        return peer;
    }

    answers(method, answer) {
        this.client.setRequestHandler(method, async ({ params }) => {
            this.asked.push({ method, params });
            return answer(params);
        });
    }

    elicited({ mode }) {
        return { action: this.answer, ...(this.answer === 'accept' && mode !== 'url' && { content: CONTENT }) };
    }

    get isModern() {
        return this.client.getNegotiatedProtocolVersion() === MODERN;
    }

    /** The names of the server's tools. */
    async tools() {
        const { tools } = await this.client.listTools();
        return tools.filter(({ name }) => name.startsWith(this.prefix)).map(({ name }) => name.slice(this.prefix.length));
    }

    /** A call; `answer` is what is done with its questions. */
    call(name, answer = 'accept') {
        this.answer = answer;
        const meta = this.level !== undefined && this.isModern ? { _meta: { [LOG_LEVEL]: this.level } } : {};
        const params = { name: `${this.prefix}${name}`, arguments: {}, ...meta };
        return this.seen(() => this.client.callTool(params, { timeout: 30_000, onprogress: () => {} }));
    }

    /** Wants logs from this level on; in 2026-07-28 each call says so. */
    setLevel(level) {
        this.level = level;
        return this.seen(async () => (this.isModern ? {} : this.client.setLoggingLevel(level)));
    }

    /** Wants to hear of a resource; `leave` ends that. */
    async subscribe(uri) {
        if (!this.isModern) {
            const seen = await this.seen(() => this.client.subscribeResource({ uri }));
            return { seen, leave: () => this.seen(() => this.client.unsubscribeResource({ uri })) };
        }
        let subscription;
        const seen = await this.seen(async () => {
            subscription = await within(30_000, this.client.listen({ resourceSubscriptions: [uri] }));
            if (!subscription.honoredFilter.resourceSubscriptions?.includes(uri)) throw new Error('It is not listened to.');
            return {};
        });
        return { seen, leave: () => this.seen(async () => ((await subscription?.close()) ?? {})) };
    }

    /** What an action came to, what was asked during it, and what else came. */
    async seen(action) {
        Object.assign(this, { asked: [], notes: [] });
        let outcome;
        try {
            outcome = { result: (await action()) ?? {} };
        } catch ({ code, message, data }) {
            outcome = { error: { code, message, data } };
        }
        // Over HTTP an answer may overtake what is told on another stream: as much is waited for as came directly, and then
        // a little for what is too much.
        const due = this.due.shift() ?? 0;
        for (let tries = 0; this.notes.length < due && tries < 50; tries += 1) await pause(30);
        await pause(due > 0 ? 100 : 10);
        return { ...outcome, asked: this.asked, notes: this.notes };
    }

    close() {
        return this.client.close();
    }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
