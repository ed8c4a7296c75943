// Very many rows of one height, of which only those in sight are in the page.
import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from '../html.js';

/**
 * @typedef {object} ListProps
 * @property {number} count
 * @property {number} rowHeight
 * @property {string} label
 * @property {any} [head] a row that stays at the top
 * @property {number} selected the selected row, or -1
 * @property {(row: number) => string} keyOf
 * @property {(key: string) => number} rowOf
 * @property {(row: number) => any} children what is in a row
 * @property {(row: number) => string} [rowClass]
 * @property {(row: number) => void} select
 * @property {() => void} [atEnd] the last rows come into sight
 */

/** @param {ListProps} props */
export function VirtualList(props) {
    const { count, rowHeight, label, head, selected, keyOf, rowOf, children, rowClass, select, atEnd } = props;
    const box = useRef(/** @type {HTMLDivElement | null} */ (null));
    const [view, setView] = useState({ top: 0, height: 600 });
    /** The row that stays where it is when others come above it. */
    const anchor = useRef({ key: '', offset: 0 });
    /** Under the pointer rows stay, so that a click hits what was aimed at; at the top they go on once it leaves. */
    const pointer = useRef({ isOver: false, goesOn: false });

    const look = useCallback(() => {
        const it = box.current;
        if (it === null) return;
        const row = Math.floor(it.scrollTop / rowHeight);
        anchor.current =
            (it.scrollTop <= 1 && !pointer.current.isOver) || row >= count
                ? { key: '', offset: 0 }
                : { key: keyOf(row), offset: it.scrollTop - row * rowHeight };
        setView((before) =>
            before.top === it.scrollTop && before.height === it.clientHeight
                ? before
                : { top: it.scrollTop, height: it.clientHeight },
        );
    }, [rowHeight, count, keyOf]);

    useEffect(() => {
        if (box.current === null) return;
        const observer = new ResizeObserver(look);
        observer.observe(box.current);
        return () => observer.disconnect();
    }, [look]);

    useLayoutEffect(() => {
        const it = box.current;
        const { key, offset } = anchor.current;
        if (it === null || key === '') return;
        const row = rowOf(key);
        if (row < 0) return;
        const top = row * rowHeight + offset;
        if (Math.abs(it.scrollTop - top) > 0.5) {
            it.scrollTop = top;
            look();
        }
    });

    const wasSelected = useRef(-1);
    const selectedKey = selected >= 0 ? keyOf(selected) : '';
    useLayoutEffect(() => {
        const it = box.current;
        const row = selected;
        if (it === null || row < 0) return;
        const headHeight = head === undefined ? 0 : rowHeight;
        const top = row * rowHeight;
        const isFar = wasSelected.current < 0 && (top < it.scrollTop || top > it.scrollTop + it.clientHeight);
        if (isFar) it.scrollTop = top - it.clientHeight / 3;
        else if (top < it.scrollTop) it.scrollTop = top;
        else if (top + rowHeight * 2 + headHeight > it.scrollTop + it.clientHeight) {
            it.scrollTop = top + rowHeight * 2 + headHeight - it.clientHeight;
        }
        wasSelected.current = row;
        look();
        // Only a newly selected row comes into sight; one that moves down because others came does not.
    }, [selectedKey]);

    const first = Math.max(0, Math.floor(view.top / rowHeight) - SPARE);
    const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + SPARE);
    const pool = Math.ceil(view.height / rowHeight) + 2 * SPARE + 2;
    useEffect(() => {
        if (last >= count - 5) atEnd?.();
    }, [last, count, atEnd]);

    const rows = [];
    for (let row = first; row < last; row += 1) {
        const isSelected = row === selected;
        rows.push(
            html`<div
                key=${row % pool}
                id=${`row-${row}`}
                role="row"
                aria-rowindex=${row + 2}
                aria-selected=${isSelected}
                data-row=${row}
                class=${`row ${isSelected ? 'selected' : ''} ${rowClass?.(row) ?? ''}`}
                style=${{ transform: `translateY(${row * rowHeight}px)`, height: `${rowHeight}px` }}
            >
                ${children(row)}
            </div>`,
        );
    }
    const active = selected >= first && selected < last ? `row-${selected}` : undefined;
    return html`<div
        class="list"
        data-rows
        role="grid"
        tabindex="0"
        aria-label=${label}
        aria-rowcount=${count + 1}
        aria-activedescendant=${active}
        ref=${box}
        onScroll=${look}
        onMouseEnter=${() => {
            pointer.current = { isOver: true, goesOn: (box.current?.scrollTop ?? 0) <= 1 };
            look();
        }}
        onMouseLeave=${() => {
            const { goesOn } = pointer.current;
            pointer.current = { isOver: false, goesOn: false };
            if (goesOn) box.current?.scrollTo(0, 0);
            look();
        }}
        onWheel=${() => {
            pointer.current.goesOn = false;
        }}
        onClick=${(/** @type {MouseEvent} */ event) => {
            const row = event.target instanceof Element ? event.target.closest('[data-row]') : null;
            if (row !== null && String(getSelection()) === '') select(Number(row.getAttribute('data-row')));
        }}
    >
        ${head !== undefined && html`<div class="row head" role="row" aria-rowindex="1">${head}</div>`}
        <div class="rows" role="rowgroup" style=${{ height: `${count * rowHeight}px` }}>${rows}</div>
    </div>`;
}

const SPARE = 6;
