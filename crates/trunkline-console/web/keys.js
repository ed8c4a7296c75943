// Keys into what they do.
import { useLayoutEffect, useRef } from './html.js';

/**
 * Keys of a view, while it is shown. A key is what `KeyboardEvent.key` says, `mod+` before it for ⌘ or Ctrl.
 * @param {Record<string, (event: KeyboardEvent) => void>} keys
 */
export function useKeys(keys) {
    const latest = useRef(keys);
    latest.current = keys;
    // Not after the next frame: what can be seen can be used.
    useLayoutEffect(() => {
        const press = (/** @type {KeyboardEvent} */ event) => {
            if (event.altKey || event.isComposing || event.defaultPrevented) return;
            const hasMod = event.metaKey || event.ctrlKey;
            const run = latest.current[hasMod ? `mod+${event.key.toLowerCase()}` : event.key];
            if (run === undefined) return;
            if (!hasMod && (isTyping(event.target) || document.querySelector('dialog[open]') !== null)) return;
            if (event.key.startsWith('Arrow') && !isAtRows(event.target)) return;
            event.preventDefault();
            run(event);
        };
        addEventListener('keydown', press);
        return () => removeEventListener('keydown', press);
    }, []);
}

/** @param {EventTarget | null} target */
function isTyping(target) {
    return (
        target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    );
}

/** Arrows go through the rows from there, or if nothing has the focus; a panel that has it scrolls. @param {EventTarget | null} target */
function isAtRows(target) {
    return target === document.body || (target instanceof Element && target.closest('[data-rows]') !== null);
}

/** How the modifier is called here. */
export const MOD = /mac|iphone|ipad/i.test(navigator.platform) ? '⌘' : 'Ctrl ';
