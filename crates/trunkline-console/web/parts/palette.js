// Go anywhere: a few letters into a view, a server or a deed.
import { html, useLayoutEffect, useState } from '../html.js';
import { leave } from '../api.js';
import { go, link } from '../route.js';
import { setTheme } from '../theme.js';
import { VIEWS } from '../views.js';
import { Dialog } from './dialog.js';

/** @typedef {{ label: string, about: string, run: () => void }} Command */

/** @param {{ status: import('../types.d.ts').Status | null, close: () => void }} props */
export function Palette({ status, close }) {
    const [text, setText] = useState('');
    const [chosen, setChosen] = useState(0);
    const found = commands(status).filter((it) => fits(text, `${it.label} ${it.about}`));
    useLayoutEffect(() => {
        document.getElementById(`command-${chosen}`)?.scrollIntoView({ block: 'nearest' });
    }, [chosen, text]);
    const run = (/** @type {Command | undefined} */ command) => {
        close();
        command?.run();
    };
    const press = (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'ArrowDown') setChosen(Math.min(chosen + 1, found.length - 1));
        else if (event.key === 'ArrowUp') setChosen(Math.max(chosen - 1, 0));
        else if (event.key === 'Enter') run(found[chosen]);
        else return;
        event.preventDefault();
    };
    return html`<${Dialog} label="Go anywhere" kind="palette" close=${close}>
        <input
            type="text"
            role="combobox"
            aria-label="Search views, servers and commands"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant=${found.length > 0 ? `command-${chosen}` : undefined}
            autocomplete="off"
            spellcheck=${false}
            placeholder="Where to?"
            value=${text}
            onInput=${(/** @type {any} */ event) => {
                setText(event.target.value);
                setChosen(0);
            }}
            onKeyDown=${press}
        />
        <ul id="palette-list" role="listbox" aria-label="Commands">
            ${found.map(
                (command, at) =>
                    html`<li
                        key=${command.label}
                        id=${`command-${at}`}
                        role="option"
                        aria-selected=${at === chosen}
                        onMouseMove=${() => setChosen(at)}
                        onClick=${() => run(command)}
                    >
                        <span>${command.label}</span> <span class="muted">${command.about}</span>
                    </li>`,
            )}
        </ul>
        ${found.length === 0 && html`<p class="muted pad">Nothing is called that.</p>`}
    </${Dialog}>`;
}

/** @param {import('../types.d.ts').Status | null} status @returns {Command[]} */
function commands(status) {
    const traffic = (/** @type {string} */ q) => () => go(link('traffic', { q }));
    return [
        ...VIEWS.map(({ name, label, about }) => ({ label, about, run: () => go(link(name)) })),
        { label: 'Failed calls', about: 'outcome:*error', run: traffic('outcome:*error') },
        { label: 'Calls of the last 5 minutes', about: 'since:5m', run: traffic('since:5m') },
        ...(status?.servers ?? []).map(({ name, state }) => ({
            label: `Calls of ${name}`,
            about: state,
            run: traffic(`server:${name}`),
        })),
        { label: 'Light theme', about: '', run: () => setTheme('light') },
        { label: 'Dark theme', about: '', run: () => setTheme('dark') },
        { label: 'Theme of the system', about: '', run: () => setTheme('system') },
        { label: 'Sign out', about: 'end this session', run: () => void leave() },
    ];
}

/** Whether the letters occur in this order. @param {string} letters @param {string} text */
function fits(letters, text) {
    let from = 0;
    const lower = text.toLowerCase();
    for (const letter of letters.toLowerCase().replaceAll(' ', '')) {
        const found = lower.indexOf(letter, from);
        if (found < 0) return false;
        from = found + 1;
    }
    return true;
}
