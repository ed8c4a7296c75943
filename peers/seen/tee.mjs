// Stands between a program and whoever started it, and copies the bytes of both directions to files before it passes
// them on: `node tee.mjs FOLDER COMMAND [ARG…]`. It knows nothing of what they say.
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const [folder, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const copy = (from, to, name) => {
    const file = openSync(join(folder, `${process.pid}.${name}`), 'a');
    from.on('data', (bytes) => {
        writeSync(file, bytes);
        to.write(bytes);
    });
    from.on('end', () => to.end());
    to.on('error', () => {});
};
copy(process.stdin, child.stdin, 'out');
copy(child.stdout, process.stdout, 'in');
child.on('exit', (code) => process.exit(code ?? 1));
