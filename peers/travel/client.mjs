// `ts1|ts2 ERA (URL | COMMAND ARG…)` into what that npm client sees of the travel server, as one line of JSON.
import * as ts2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { within } from '../check.mjs';

const [sdk, era, target, ...args] = process.argv.slice(2);
if (!['ts1', 'ts2'].includes(sdk) || !['auto', 'legacy'].includes(era) || target === undefined) {
    console.error('usage: node client.mjs ts1|ts2 auto|legacy (URL | COMMAND ARG…)');
    process.exit(2);
}

const seen = { revision: null, schema: false, asked: 0, wire: [], heard: [], error: false, result: null };
const isFirst = sdk === 'ts1';
const info = { name: `peer-${sdk}`, version: '1.0.0' };
const capabilities = { elicitation: {} };

/** Says yes to every field. */
const answer = async ({ params }) => {
    seen.asked += 1;
    const fields = Object.entries(params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(fields.map(([name]) => [name, true])) };
};
const step = ({ progress, total }) => [progress, total];

let client;
if (isFirst) {
    client = new Client1(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answer);
} else {
    // Left alone, this client shakes hands as before 2026-07-28.
    const options = era === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {};
    client = new ts2.Client(info, { capabilities, ...options });
    client.setRequestHandler('elicitation/create', answer);
}

const [Stdio, Http] = isFirst ? [Stdio1, Http1] : [Stdio2, ts2.StreamableHTTPClientTransport];
const transport = /^http:/.test(target) ? new Http(new URL(target)) : new Stdio({ command: target, args, stderr: 'inherit' });
const settle = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
    seen.revision = version;
    settle?.(version);
};
await within(20_000, client.connect(transport));
seen.revision = client.getNegotiatedProtocolVersion?.() ?? seen.revision;

// It forgets a call's `onprogress` when its answer is read, before it has run it for what came in the same chunk:
// so what came is noted here, and what it hands on is noted too.
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
    if (message.method === 'notifications/progress') seen.wire.push(step(message.params));
    return receive(message, extra);
};

const { tools } = await client.listTools();
seen.schema = tools.some((tool) => tool.name === 'book' && tool.outputSchema !== undefined);
const params = { name: 'book', arguments: { city: 'Oslo', nights: 3 } };
// The 2.x client tells of each question it answers by `onprogress` too: that is its own, and came over no wire.
const isOwn = ({ message }) => /^Fulfilling input required/.test(message);
const onprogress = (progress) => isOwn(progress) || seen.heard.push(step(progress));
const options = { timeout: 20_000, onprogress };
const result = await (isFirst ? client.callTool(params, CallToolResultSchema, options) : client.callTool(params, options));
seen.error = result.isError ?? false;
seen.result = result.structuredContent ?? null;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
