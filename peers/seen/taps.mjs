// What bytes say: copies of them on their way, and the messages in the copies.
import { createServer, request as forward } from 'node:http';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** An HTTP proxy that copies the bodies of requests and responses. It knows nothing of what they say. */
export class HttpTap {
    static async to(url) {
        const tap = new HttpTap();
        /** The bodies of requests, and those of responses as far as they have come. @type {{ type: string, text: string }[]} */
        tap.requests = [];
        tap.responses = [];
        /** Each request with its response, if one came: the same copies, and when the last of their bytes passed. */
        tap.exchanges = [];
        tap.target = new URL(url);
        tap.server = createServer((near, answer) => tap.#carry(near, answer));
        tap.server.listen(0, '127.0.0.1');
        await once(tap.server, 'listening');
        tap.url = new URL(tap.target);
        tap.url.port = String(tap.server.address().port);
        return tap;
    }

    #carry(near, answer) {
        const { hostname, port, host } = this.target;
        const headers = { ...near.headers, host };
        const far = forward({ hostname, port, method: near.method, path: near.url, headers });
        const exchange = { request: keep(this.requests, near), response: null };
        this.exchanges.push(exchange);
        near.on('data', (bytes) => {
            add(exchange.request, bytes);
            far.write(bytes);
        });
        near.on('end', () => far.end());
        far.on('response', (response) => {
            exchange.response = keep(this.responses, response);
            answer.writeHead(response.statusCode, response.headers);
            answer.flushHeaders();
            response.on('data', (bytes) => {
                add(exchange.response, bytes);
                answer.write(bytes);
            });
            response.on('end', () => answer.end());
            response.on('error', () => answer.destroy());
        });
        far.on('error', () => answer.destroy());
        // Whoever leaves early has left on both sides.
        answer.on('close', () => far.destroy());
        near.on('error', () => far.destroy());
    }

    close() {
        this.server.closeAllConnections();
        this.server.close();
    }
}

function keep(all, { headers }) {
    const copy = { type: (headers['content-type'] ?? '').split(';')[0], chunks: [] };
    all.push(copy);
    return copy;
}

function add(copy, bytes) {
    copy.chunks.push(bytes);
    copy.at = Date.now();
}

/** The messages in bodies: one, a batch, or those of an event stream. */
export function inBodies(bodies) {
    return bodies.flatMap(({ type, chunks }) => {
        const text = Buffer.concat(chunks).toString();
        if (type !== 'text/event-stream') return messages(text);
        return text.split(/\r?\n\r?\n/).slice(0, -1).flatMap((event) => {
            const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
            return messages(data.map((line) => line.slice(5).trimStart()).join('\n'));
        });
    });
}

/** The messages in the copies that `tee.mjs` made: one a line. */
export function inFiles(folder, name) {
    const files = readdirSync(folder).filter((file) => file.endsWith(`.${name}`));
    return files.flatMap((file) => inFile(folder, file));
}

/** The questions of servers in those copies that got no answer. */
export function unanswered(folder) {
    const files = readdirSync(folder).filter((file) => file.endsWith('.in'));
    return files.flatMap((file) => {
        const said = inFile(folder, file.replace(/in$/, 'out')).filter((it) => it.method === undefined);
        const asked = inFile(folder, file).filter((it) => it.method !== undefined && it.id !== undefined);
        return asked.filter(({ id }) => !said.some((it) => it.id === id));
    });
}

function inFile(folder, file) {
    return readFileSync(join(folder, file), 'utf8').split('\n').slice(0, -1).flatMap(messages);
}

function messages(text) {
    if (text.trim() === '') return [];
    let value;
    try {
        value = JSON.parse(text);
    } catch {
        // A page of an HTTP server, for example.
        return [];
    }
    return (Array.isArray(value) ? value : [value]).filter((it) => it?.jsonrpc === '2.0');
}
