// Checks into lines: one `ok NAME` or `FAILED NAME` each, and a count at the end.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';

/** Runs checks one after the other, none longer than its time. */
export class Checks {
    constructor(prefix) {
        this.prefix = prefix;
        this.passed = 0;
        this.failed = [];
    }

    /** Runs one check. A check that fails does not stop the next. */
    async check(name, body, ms = 10_000) {
        const full = `${this.prefix} ${name}`;
        try {
            await within(ms, body());
            this.passed += 1;
            console.log(`ok ${full}`);
        } catch (error) {
            this.failed.push(full);
            const reason = String(error?.message ?? error).replace(/\s+/g, ' ');
            console.log(`FAILED ${full}: ${reason.slice(0, 800)}`);
        }
    }

    /** Prints the count and ends the process with it. */
    end() {
        for (const name of this.failed) console.log(`failed: ${name}`);
        console.log(`${this.passed} passed, ${this.failed.length} failed`);
        process.exit(this.failed.length === 0 && this.passed > 0 ? 0 : 1);
    }
}

/** The value of a promise, or an error when it takes longer. */
export function within(ms, promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`nothing came within ${ms} ms`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The error a promise ends in; it is an error if it ends in none. */
export async function failure(promise) {
    let value;
    try {
        value = await promise;
    } catch (error) {
        return error;
    }
    throw new Error(`expected an error, got ${JSON.stringify(value)}`);
}

/** Things that arrive, in order, and a way to wait for the next that fits. */
export class Inbox {
    constructor() {
        this.items = [];
        this.waiting = [];
    }

    push(item) {
        this.items.push(item);
        this.waiting.splice(0).forEach((wake) => wake());
    }

    clear() {
        this.items.length = 0;
    }

    async next(fits, ms = 5_000) {
        const search = async () => {
            for (;;) {
                const found = this.items.find(fits);
                if (found !== undefined) return found;
                await new Promise((wake) => this.waiting.push(wake));
            }
        };
        return within(ms, search());
    }
}

/** Has an inbox see every message that a connected transport receives. */
export function overhear(transport, wire) {
    const receive = transport.onmessage;
    transport.onmessage = (message, extra) => {
        wire.push(message);
        return receive(message, extra);
    };
}

/** Runs a program: its exit code, and what it wrote. */
export function run(command, args, ms) {
    return new Promise((resolve, reject) => {
        const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
        let out = '';
        let err = '';
        child.stdout.on('data', (bytes) => { out += bytes; });
        child.stderr.on('data', (bytes) => { err += bytes; });
        const timer = setTimeout(() => {
            child.kill('SIGKILL');
            reject(new Error(`\`${command} ${args.join(' ')}\` did not end within ${ms} ms; it said: ${err}`));
        }, ms);
        child.on('error', reject);
        child.on('close', (code) => {
            clearTimeout(timer);
            resolve({ code, out, err, said: `exit ${code}; out: ${out.slice(-2000)}; err: ${err.slice(-2000)}` });
        });
    });
}

/** The five revisions, oldest first. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];

export { assert };
