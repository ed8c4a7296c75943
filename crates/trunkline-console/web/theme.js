// Light, dark, or as the system has it.
import { Store } from './store.js';

const THEMES = /** @type {const} */ (['system', 'light', 'dark']);

/** @typedef {typeof THEMES[number]} Theme */

export const theme = new Store(stored());

export function applyTheme() {
    if (theme.value === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
}

/** @param {Theme} value */
export function setTheme(value) {
    theme.set(value);
    applyTheme();
    try {
        localStorage.setItem(PLACE, value);
    } catch {
        // A browser that stores nothing forgets the choice.
    }
}

export function nextTheme() {
    setTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system');
}

/** @returns {Theme} */
function stored() {
    try {
        return THEMES.find((it) => it === localStorage.getItem(PLACE)) ?? 'system';
    } catch {
        return 'system';
    }
}

const PLACE = 'trunkline-theme';
