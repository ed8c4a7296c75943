// Calls as tasks, by the published clients that have them: npm @modelcontextprotocol/sdk 1.x in 2025-11-25, and PyPI `fastmcp`
// in 2026-07-28.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { within } from '../check.mjs';

/** What comes of a task that is waited for, and of one that is cancelled, in 2025-11-25. */
export async function tasks(way) {
    const client = new Client({ name: 'table', version: '1.0.0' }, { capabilities: {} });
    client.onerror = () => {};
    const transport = way.url === undefined
        ? new StdioClientTransport({ ...way.command, stderr: 'ignore' }) : new StreamableHTTPClientTransport(new URL(way.url));
    await within(60_000, client.connect(transport));
    const steps = [await tried(client, way.prefix, finished), await tried(client, way.prefix, cancelled)];
    await client.close();
    return steps;
}

async function tried(client, prefix, then) {
    const params = { name: `${prefix}work`, arguments: {}, task: { ttl: 60_000 } };
    const request = (method, params) => client.request({ method, params }, ResultSchema, { timeout: 30_000 });
    try {
        // A server without tasks answers as if none had been asked for.
        const result = await request('tools/call', params);
        return { result: result.task === undefined ? result : await then(request, result.task.taskId) };
    } catch ({ code, message, data }) {
        return { error: { code, message, data } };
    }
}

async function finished(request, taskId) {
    const result = await request('tasks/result', { taskId });
    const { status } = await request('tasks/get', { taskId });
    return { ...result, status };
}

async function cancelled(request, taskId) {
    const { status } = await request('tasks/cancel', { taskId });
    return { cancelled: status, after: (await request('tasks/get', { taskId })).status };
}

/** The same in 2026-07-28 for several servers at once, in one process of Python. */
export async function modernTasks(python, ways) {
    const told = ways.map(({ url, command, prefix }) => [prefix, url ?? [command.command, ...command.args]]);
    const script = fileURLToPath(new URL('tasks.py', import.meta.url));
    const { stdout } = await promisify(execFile)(python, [script, JSON.stringify(told)], { timeout: 200_000 });
    return JSON.parse(stdout);
}
