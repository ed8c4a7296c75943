// A dialog above the page; Escape and a click beside it close it.
import { html, useEffect, useRef } from '../html.js';

/** @param {{ label: string, kind: string, close: () => void, children: any }} props */
export function Dialog({ label, kind, close, children }) {
    const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
    useEffect(() => {
        const it = box.current;
        const before = document.activeElement;
        it?.showModal();
        return () => {
            it?.close();
            if (before instanceof HTMLElement) before.focus();
        };
    }, []);
    return html`<dialog
        class=${kind}
        ref=${box}
        aria-label=${label}
        onCancel=${(/** @type {Event} */ event) => {
            event.preventDefault();
            close();
        }}
        onClick=${(/** @type {MouseEvent} */ event) => {
            if (event.target === box.current) close();
        }}
    >
        ${children}
    </dialog>`;
}
