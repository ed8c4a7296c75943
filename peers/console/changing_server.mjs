// A server whose one tool is described by a file: `node changing_server.mjs FILE`.
import { readFileSync } from 'node:fs';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'changing', version: '1.0.0' });
const description = readFileSync(process.argv[2], 'utf8').trim();
server.registerTool('note', { description }, async () => ({ content: [{ type: 'text', text: 'noted' }] }));
await server.connect(new StdioServerTransport());
console.error(`changing_server describes its tool as: ${description}`);
