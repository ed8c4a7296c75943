// Stands between a program and whoever started it, and copies the bytes of both directions to files before it passes
// them on: `node tee.mjs FOLDER COMMAND [ARG…]`. It knows nothing of what they say.
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const [folder, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const file = (name) => openSync(join(folder, `${process.pid}.${name}`), 'a');
const copy = (from, to, into) => {
    from.on('data', (bytes) => {
        writeSync(into(), bytes);
        to.write(bytes);
    });
    from.on('end', () => to.end());
    to.on('error', () => {});
};
const [out, into, late] = ['out', 'in', 'late'].map(file);
let hasLeft = false;
process.stdin.on('end', () => {
    hasLeft = true;
});
copy(process.stdin, child.stdin, () => out);
// Whoever has closed its end listens no longer.
copy(child.stdout, process.stdout, () => (hasLeft ? late : into));
child.on('exit', (code) => process.exit(code ?? 1));
