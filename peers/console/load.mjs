// Calls a tool at a steady rate over a few connections, with as little work of its own as possible:
// `node load.mjs URL TOOL ARGUMENTS RATE SECONDS`. The last line says what came of it, as JSON.
import { connect } from 'node:net';

const [url, tool, given, rate, seconds] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(url);
const CONNECTIONS = 32;

/** One request of 2026-07-28; all are the same, and a response tells by its connection which it answers. */
const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
        name: tool,
        arguments: JSON.parse(given),
        _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1.0.0' },
            'io.modelcontextprotocol/clientCapabilities': {},
        },
    },
});
const request = Buffer.from([
    `POST ${pathname} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/call',
    `mcp-name: ${tool}`,
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
].join('\r\n'));

let [sent, answered, failed] = [0, 0, 0];
const idle = [];
const dial = () => {
    const socket = connect(Number(port), hostname, () => idle.push(socket));
    socket.setNoDelay(true);
    let rest = '';
    socket.on('data', (bytes) => {
        rest += bytes.latin1Slice();
        const head = rest.indexOf('\r\n\r\n');
        if (head < 0) return;
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(rest.slice(0, head))?.[1] ?? NaN);
        if (rest.length < head + 4 + length) return;
        answered += 1;
        if (!rest.startsWith('HTTP/1.1 200') || rest.includes('"error"')) failed += 1;
        rest = '';
        idle.push(socket);
    });
    socket.on('error', () => {
        failed += 1;
    });
};
for (let at = 0; at < CONNECTIONS; at += 1) dial();

const began = performance.now();
const timer = setInterval(() => {
    const passed = performance.now() - began;
    if (passed >= Number(seconds) * 1000) {
        clearInterval(timer);
        console.log(JSON.stringify({ sent, answered, failed, perSecond: Math.round((answered / passed) * 1000) }));
        process.exit(0);
    }
    // Whoever is late does not catch up at once: at most a tenth of a second of calls is owed.
    const due = Math.floor((passed / 1000) * Number(rate));
    if (due - sent > Number(rate) / 10) sent = due - Math.floor(Number(rate) / 10);
    while (sent < due && idle.length > 0) {
        idle.pop().write(request);
        sent += 1;
    }
}, 1);
