// A value that views watch.
import { useLayoutEffect, useState } from './html.js';

/** @template T */
export class Store {
    /** @param {T} value */
    constructor(value) {
        this.value = value;
        /** @type {Set<() => void>} */
        this.watchers = new Set();
    }

    /** @param {T} value */
    set(value) {
        if (value === this.value) return;
        this.value = value;
        for (const watcher of [...this.watchers]) watcher();
    }

    /** @param {() => void} watcher */
    watch(watcher) {
        this.watchers.add(watcher);
        return () => void this.watchers.delete(watcher);
    }
}

/**
 * The value of a store; the view is drawn again when it changes.
 * @template T
 * @param {Store<T>} store
 * @returns {T}
 */
export function useStore(store) {
    const [, draw] = useState(0);
    const drawn = store.value;
    // Not `useEffect`: that waits for the next frame, and what changed until then would never be drawn. A tab behind others
    // has no frames, and a busy machine late ones.
    useLayoutEffect(() => {
        const again = () => draw((count) => count + 1);
        // What is drawn for the first time in the same go may have changed it.
        if (store.value !== drawn) again();
        return store.watch(again);
    }, [store]);
    return drawn;
}
