// Numbers over time as a chart.
import { html, useEffect, useRef } from '../html.js';
import { useStore } from '../store.js';
import { theme } from '../theme.js';
import uPlot from '../vendor/uplot.js';

/** @typedef {{ label: string, colour: string, values: (number | null)[] }} Series */

/**
 * @param {{ title: string, spoken: string, times: number[], series: Series[], show: (value: number) => string }} props
 *     `times` in seconds since 1970; a colour is the name of one in the style sheet
 */
export function Chart({ title, spoken, times, series, show }) {
    const box = useRef(/** @type {HTMLDivElement | null} */ (null));
    const plot = useRef(/** @type {uPlot | null} */ (null));
    const mode = useStore(theme);
    const data = /** @type {uPlot.AlignedData} */ ([times, ...series.map(({ values }) => values)]);
    const latest = useRef(data);
    latest.current = data;
    const names = series.map(({ label }) => label).join();

    useEffect(() => {
        const it = box.current;
        if (it === null) return;
        const made = () => {
            plot.current?.destroy();
            plot.current = new uPlot(options(it, series, show), latest.current, it);
        };
        made();
        const observer = new ResizeObserver(() => plot.current?.setSize({ width: it.clientWidth, height: HEIGHT }));
        observer.observe(it);
        SYSTEM.addEventListener('change', made);
        return () => {
            SYSTEM.removeEventListener('change', made);
            observer.disconnect();
            plot.current?.destroy();
            plot.current = null;
        };
    }, [mode, names]);
    useEffect(() => plot.current?.setData(data), [data]);

    return html`<figure class="chart">
        <figcaption>${title}</figcaption>
        <div ref=${box} role="img" aria-label=${spoken}></div>
    </figure>`;
}

/** @param {HTMLElement} at @param {Series[]} series @param {(value: number) => string} show @returns {uPlot.Options} */
function options(at, series, show) {
    const colour = resolver(at);
    const axis = {
        stroke: colour('--muted'),
        font: '11px system-ui, sans-serif',
        grid: { stroke: colour('--line'), width: 1 },
        ticks: { show: false },
    };
    return {
        width: at.clientWidth,
        height: HEIGHT,
        cursor: { y: false, points: { size: 5 } },
        legend: { live: true },
        scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 0.1)] } },
        axes: [
            { ...axis, size: 22, space: 80, values: (_, all) => all.map((second) => time(second)) },
            { ...axis, size: 62, space: 26, values: (_, all) => all.map((value) => show(value)) },
        ],
        series: [
            { label: 'time', value: (_, second) => (second === null ? '' : time(second, true)) },
            ...series.map((it) => ({
                label: it.label,
                stroke: colour(it.colour),
                width: 1.5,
                spanGaps: true,
                points: { show: false },
                value: (/** @type {unknown} */ _, /** @type {number | null} */ value) =>
                    value === null ? '–' : show(value),
            })),
        ],
    };
}

/** A canvas knows no variables. @param {HTMLElement} at */
function resolver(at) {
    return (/** @type {string} */ name) => {
        const probe = document.createElement('span');
        probe.style.color = `var(${name})`;
        at.append(probe);
        const { color } = getComputedStyle(probe);
        probe.remove();
        return color;
    };
}

/** @param {number} second @param {boolean} [exact] */
function time(second, exact = false) {
    const two = (/** @type {number} */ it) => String(it).padStart(2, '0');
    const at = new Date(second * 1000);
    return `${two(at.getHours())}:${two(at.getMinutes())}${exact ? `:${two(at.getSeconds())}` : ''}`;
}

const SYSTEM = matchMedia('(prefers-color-scheme: dark)');
const HEIGHT = 118;
