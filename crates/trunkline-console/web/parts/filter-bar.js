// The line that filters, with suggestions from what has been seen.
import { html, useEffect, useRef, useState } from '../html.js';
import { FIELDS } from '../filter.js';

/**
 * @param {{ typed: string, change: (typed: string) => void, known: (field: string) => string[], inputRef: { current: HTMLInputElement | null } }} props
 */
export function FilterBar({ typed, change, known, inputRef }) {
    const [text, setText] = useState(typed);
    const [open, setOpen] = useState(false);
    const [chosen, setChosen] = useState(-1);
    const sent = useRef(typed);
    useEffect(() => {
        // The URL changed by other means than typing.
        if (typed !== sent.current) setText(typed);
        sent.current = typed;
    }, [typed]);
    useEffect(() => {
        if (text === sent.current) return;
        const timer = setTimeout(() => {
            sent.current = text.trim();
            change(text.trim());
        }, 200);
        return () => clearTimeout(timer);
    }, [text]);

    const offers = open ? suggestions(text, known) : [];
    const take = (/** @type {string} */ offer) => {
        const isWhole = !offer.endsWith(':');
        setText(text.replace(/\S*$/, '') + offer + (isWhole ? ' ' : ''));
        setChosen(-1);
        inputRef.current?.focus();
    };
    const press = (/** @type {KeyboardEvent} */ event) => {
        const offer = offers[chosen];
        if (event.key === 'ArrowDown') setChosen(Math.min(chosen + 1, offers.length - 1));
        else if (event.key === 'ArrowUp') setChosen(Math.max(chosen - 1, -1));
        else if (event.key === 'Enter' && offer !== undefined) take(offer.value);
        else if (event.key === 'Enter') {
            sent.current = text.trim();
            change(text.trim());
            setOpen(false);
        } else if (event.key === 'Escape' && open && offers.length > 0) setOpen(false);
        else if (event.key === 'Escape') inputRef.current?.blur();
        else return;
        event.preventDefault();
    };
    return html`<div class="filter">
        <input
            ref=${inputRef}
            type="text"
            role="combobox"
            aria-label="Filter"
            aria-autocomplete="list"
            aria-expanded=${offers.length > 0}
            aria-controls="filter-offers"
            aria-activedescendant=${chosen >= 0 ? `offer-${chosen}` : undefined}
            autocomplete="off"
            autocapitalize="off"
            spellcheck=${false}
            placeholder="Filter: server:files outcome:error since:15m, or words"
            value=${text}
            onInput=${(/** @type {any} */ event) => {
                setText(event.target.value);
                setOpen(true);
                setChosen(-1);
            }}
            onFocus=${() => setOpen(true)}
            onBlur=${() => setOpen(false)}
            onKeyDown=${press}
        />
        ${
            text !== '' &&
            html`<button class="clear" type="button" aria-label="Clear the filter" onClick=${() => setText('')}>×</button>`
        }
        <ul id="filter-offers" class="offers" role="listbox" aria-label="Suggestions" hidden=${offers.length === 0}>
            ${offers.map(
                ({ value, about }, at) =>
                    html`<li
                        key=${value}
                        id=${`offer-${at}`}
                        role="option"
                        aria-selected=${at === chosen}
                        onMouseDown=${(/** @type {Event} */ event) => {
                            event.preventDefault();
                            take(value);
                        }}
                    >
                        <code>${value}</code> <span class="muted">${about}</span>
                    </li>`,
            )}
        </ul>
    </div>`;
}

/** @param {string} text @param {(field: string) => string[]} known */
function suggestions(text, known) {
    const word = /\S*$/.exec(text)?.[0] ?? '';
    const colon = word.indexOf(':');
    if (colon < 0) {
        return Object.entries(FIELDS)
            .filter(([name]) => name.startsWith(word))
            .map(([name, about]) => ({ value: `${name}:`, about }));
    }
    const name = word.slice(0, colon);
    const begun = word.slice(colon + 1);
    return known(name)
        .filter((value) => value.startsWith(begun) && value !== begun)
        .slice(0, 8)
        .map((value) => ({ value: `${name}:${/\s/.test(value) ? `"${value}"` : value}`, about: '' }));
}
