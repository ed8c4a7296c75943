// Numbers and times into what people read.

/** The time of day with milliseconds, in the reader's zone. @param {string} at */
export function clock(at) {
    const date = new Date(at);
    if (Number.isNaN(date.getTime())) return at;
    const two = (/** @type {number} */ it) => String(it).padStart(2, '0');
    const ms = String(date.getMilliseconds()).padStart(3, '0');
    return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** @param {number | null | undefined} ms */
export function duration(ms) {
    if (ms === null || ms === undefined) return '';
    if (ms === 0) return '0 ms';
    if (ms < 1) return `${ms.toFixed(2)} ms`;
    if (ms < 10) return `${ms.toFixed(1)} ms`;
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
    const seconds = Math.round(ms / 1000);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** @param {number} size */
export function bytes(size) {
    if (size < 1024) return `${size} B`;
    if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KiB`;
    return `${(size / 1024 / 1024).toFixed(1)} MiB`;
}

/** @param {number} number */
export const count = (number) => number.toLocaleString('en');

/** A number of things, with the right ending. @param {number} number @param {string} one @param {string} [many] */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** How an outcome is shown: one of five meanings. @param {{ state: string, outcome: string | null }} call */
export function meaning(call) {
    if (call.state === 'running') return 'running';
    return MEANINGS[call.outcome ?? ''] ?? 'unknown';
}

/** @param {{ state: string, outcome: string | null }} call */
export const outcomeWord = (call) =>
    call.state === 'running' ? 'running' : (call.outcome ?? 'unknown').replaceAll('_', ' ');

/** @type {Record<string, 'ok' | 'asked' | 'failed' | 'unknown'>} */
const MEANINGS = {
    ok: 'ok',
    asked: 'asked',
    tool_error: 'failed',
    error: 'failed',
    refused: 'failed',
    denied: 'failed',
    unavailable: 'failed',
    timed_out: 'failed',
    unknown: 'unknown',
    cancelled: 'unknown',
};
