// The stages of a call as bars over time.
import { html } from '../html.js';
import { duration } from '../format.js';

/** @typedef {import('../types.d.ts').Call} Call */

/** The bar of a row. Its length is the duration on a logarithmic scale, its parts are the stages. @param {{ call: Call }} props */
export function Bar({ call }) {
    const ms = call.ms ?? 0;
    const width = Math.max(3, Math.min(100, (Math.log10(1 + ms) / Math.log10(1 + MINUTE)) * 100));
    const total = Math.max(ms, 0.001);
    return html`<span class="bar" style=${{ width: `${width}%` }}>
        ${call.stages.map(
            (stage) =>
                html`<i class=${`stage ${stage.stage}`} style=${place(stage.from, stage.to ?? total, total)}></i>`,
        )}
    </span>`;
}

/** @param {{ call: Call, messages: { t: number, side: string, dir: string, label: string }[] }} props */
export function Waterfall({ call, messages }) {
    const ends = [...call.stages.map(({ from, to }) => to ?? from), ...messages.map(({ t }) => t), call.ms ?? 0, 0.01];
    const total = Math.max(...ends);
    /** @type {Map<string, { from: number, to: number | null }[]>} */
    const lanes = new Map();
    for (const { stage, from, to } of call.stages) lanes.set(stage, [...(lanes.get(stage) ?? []), { from, to }]);
    const ticks = steps(total);
    return html`<div class="waterfall" role="img" aria-label=${spoken(lanes)}>
        <div class="axis" aria-hidden="true">
            ${ticks.map((tick) => html`<span style=${{ left: `${(tick / total) * 100}%` }}>${axis(tick)}</span>`)}
        </div>
        ${[...lanes].map(
            ([name, parts]) =>
                html`<div class="lane" key=${name}>
                    <span class="lane-name">${name}</span>
                    <span class="track">
                        ${ticks.map((tick) => html`<b class="tick" style=${{ left: `${(tick / total) * 100}%` }}></b>`)}
                        ${parts.map(
                            ({ from, to }) =>
                                html`<i
                                    class=${`stage ${name} ${to === null ? 'open' : ''}`}
                                    style=${place(from, to ?? total, total)}
                                    title=${`${name}: ${duration(from)} to ${to === null ? 'now' : duration(to)}`}
                                ></i>`,
                        )}
                    </span>
                    <span class="lane-ms">${duration(length(parts, total))}</span>
                </div>`,
        )}
        ${
            messages.length > 0 &&
            html`<div class="lane messages">
            <span class="lane-name">messages</span>
            <span class="track">
                ${messages.map(
                    ({ t, side, dir, label }) =>
                        html`<b
                            class=${`dot ${side} ${dir}`}
                            style=${{ left: `${(Math.max(0, t) / total) * 100}%` }}
                            title=${`${duration(t)}: ${label}`}
                        ></b>`,
                )}
            </span>
            <span class="lane-ms">${messages.length}</span>
        </div>`
        }
    </div>`;
}

/** @param {number} from @param {number} to @param {number} total */
function place(from, to, total) {
    const left = Math.max(0, Math.min(100, (from / total) * 100));
    return { left: `${left}%`, width: `${Math.max(0, Math.min(100 - left, ((to - from) / total) * 100))}%` };
}

/** @param {{ from: number, to: number | null }[]} parts @param {number} total */
const length = (parts, total) => parts.reduce((sum, { from, to }) => sum + (to ?? total) - from, 0);

/** @param {Map<string, { from: number, to: number | null }[]>} lanes */
function spoken(lanes) {
    if (lanes.size === 0) return 'No times are known.';
    const parts = [...lanes].map(([name, all]) => `${name} ${duration(length(all, all.at(-1)?.to ?? 0))}`);
    return `Times: ${parts.join(', ')}.`;
}

/** Three to six round numbers between 0 and a time. @param {number} total */
export function steps(total) {
    const rough = total / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough) ?? rough;
    const found = [];
    for (let at = 0; at <= total * 0.98; at += step) found.push(at);
    return found;
}

/** @param {number} ms */
function axis(ms) {
    if (ms === 0) return '0';
    const short = (/** @type {number} */ it) => String(Number(it.toPrecision(3)));
    return ms < 1000 ? `${short(ms)} ms` : `${short(ms / 1000)} s`;
}

const MINUTE = 60_000;
