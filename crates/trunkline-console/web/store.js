// A value that views watch.
import { useEffect, useState } from './html.js';

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
        this.changed();
    }

    /** Tells the watchers that the value, or what is in it, is another. */
    changed() {
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
    useEffect(() => store.watch(() => draw((count) => count + 1)), [store]);
    return store.value;
}
