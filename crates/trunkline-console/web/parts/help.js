// The keys.
import { html } from '../html.js';
import { MOD } from '../keys.js';
import { Dialog } from './dialog.js';

/** @param {{ close: () => void }} props */
export function Help({ close }) {
    return html`<${Dialog} label="Keys" kind="help" close=${close}>
        <h2>Keys</h2>
        <dl>
            ${KEYS.map(
                ([keys, what]) =>
                    html`<div key=${what}>
                        <dt>${keys.map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt>
                        <dd>${what}</dd>
                    </div>`,
            )}
        </dl>
        <button type="button" class="solid" onClick=${close}>Close</button>
    </${Dialog}>`;
}

/** @type {[string[], string][]} */
const KEYS = [
    [['j', '↓'], 'the next row'],
    [['k', '↑'], 'the row before'],
    [['g'], 'the newest row'],
    [['/'], 'to the filter'],
    [['p'], 'pause, resume'],
    [['Esc'], 'close the detail'],
    [[`${MOD}K`], 'go anywhere'],
    [[`${MOD}Enter`], 'make the call that is tried'],
    [['t'], 'light, dark, or as the system has it'],
    [['?'], 'these keys'],
];
