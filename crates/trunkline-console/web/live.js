// The list of calls and its stream into one store, a frame at a time.
import { follow, get, sentence } from './api.js';
import { Calls } from './calls.js';
import { query } from './filter.js';
import { SseDecoder } from './sse.js';
import { Store } from './store.js';

/** @typedef {import('./types.d.ts').Call} Call */

/**
 * @typedef {object} LiveState
 * @property {'connecting' | 'live' | 'lost'} link
 * @property {string} why why the link is lost, or why the list is not there
 * @property {boolean} paused
 * @property {number} waiting calls that came while it is paused
 * @property {number} dropped calls that the gateway left out, because the page was too slow or its memory full
 * @property {boolean} loaded
 * @property {boolean} isWhole there is nothing older
 * @property {Record<string, unknown> | null} recording
 * @property {number} rate calls per second, lately
 */

export class Live {
    constructor() {
        this.calls = new Calls(MOST);
        /** Changes with every batch; the calls themselves are in `calls`. */
        this.rows = new Store(0);
        this.state = new Store(/** @type {LiveState} */ (BEGIN));
        /** @type {string[]} */
        this.pending = [];
        /** What was left out since the list was last drawn. */
        this.dropped = 0;
        /** What came while it is paused, by id. @type {Map<string, Call>} */
        this.held = new Map();
        /** Whether the list begins anew with what is held, because calls between are missing. */
        this.anew = false;
        /** When the calls end that are known without a gap, while those after it are asked for. @type {string | null} */
        this.behind = null;
        this.scheduled = false;
        /** When the list was last drawn, and how long that took. */
        this.drawn = { at: 0, took: 0 };
        this.abort = new AbortController();
        this.filter = '';
        this.seen = new Rate();
        /** What was seen in the fields that can be filtered by. @type {Map<string, Set<string>>} */
        this.values = new Map(NOTED.map((field) => [field, new Set()]));
        document.addEventListener('visibilitychange', () => this.#flush());
    }

    /** Shows what fits a filter. @param {string} filter */
    start(filter) {
        this.stop();
        this.filter = filter;
        this.calls.clear();
        this.held.clear();
        this.state.set({ ...BEGIN, paused: this.state.value.paused, recording: this.state.value.recording });
        this.rows.set(this.rows.value + 1);
        const { signal } = (this.abort = new AbortController());
        void follow(() => `/v1/traffic/stream${query(filter)}`, {
            signal,
            decoder: () => new SseDecoder(),
            opened: () => {
                this.#tell({ link: 'live', why: '' });
                // Asked for once the stream is open, so that no call falls between the two.
                void (this.state.value.loaded && this.calls.length > 0
                    ? this.#catchUp(signal)
                    : this.#load({}, signal));
            },
            heard: (events) => {
                let dropped = 0;
                for (const { event, data } of events) {
                    if (event === 'call') this.pending.push(data);
                    else if (event === 'dropped') dropped += JSON.parse(data).count;
                }
                if (this.pending.length > 2 * MOST) {
                    dropped += this.pending.splice(0, this.pending.length - MOST).length;
                }
                this.dropped += dropped;
                this.#schedule();
            },
            lost: (why) => this.#tell({ link: 'lost', why }),
        });
    }

    /** Ends the stream and lets go of all that is known. */
    forget() {
        this.stop();
        this.calls.clear();
        this.held.clear();
        for (const seen of this.values.values()) seen.clear();
        this.state.set(BEGIN);
    }

    stop() {
        this.abort.abort();
        this.anew = false;
        this.behind = null;
        this.pending = [];
        this.dropped = 0;
    }

    /** Asks for calls before the oldest one here. */
    async older() {
        const oldest = this.calls.at(this.calls.length - 1);
        const { loaded, isWhole } = this.state.value;
        if (oldest === undefined || !loaded || isWhole || this.isAsking || this.calls.length >= MOST) return;
        this.isAsking = true;
        await this.#load({ before: oldest.id }, this.abort.signal);
        this.isAsking = false;
    }

    /** Values to filter by. @param {string} field */
    known(field) {
        return field === 'since' ? ['1m', '5m', '15m', '1h', '1d'] : [...(this.values.get(field) ?? [])].sort();
    }

    /** @param {boolean} paused */
    pause(paused) {
        if (!paused) {
            if (this.anew) this.calls.clear();
            this.anew = false;
            this.calls.apply([...this.held.values()]);
            this.held.clear();
        }
        this.#tell({ paused, waiting: 0 });
        this.rows.set(this.rows.value + 1);
    }

    /**
     * The calls that came while the stream was not there: page by page back to the newest that is known, and to the
     * oldest that was running. If they are too many, the list begins anew with them and goes on when somebody scrolls.
     * @param {AbortSignal} signal
     */
    async #catchUp(signal) {
        const { order } = this.calls;
        const until = this.behind ?? (order.find(({ state }) => state === 'running') ?? order.at(-1))?.at ?? '';
        this.behind = until;
        /** @type {Call[]} */
        const missed = [];
        try {
            for (let page = 0; page < CATCH_UP; page += 1) {
                const before = missed.at(-1);
                const more = before === undefined ? {} : { before: before.id };
                const found = await get(`/v1/traffic${query(this.filter, { limit: String(PAGE), ...more })}`, signal);
                if (signal.aborted) return;
                /** @type {Call[]} */
                const calls = found.calls;
                missed.push(...calls);
                this.#tell({ recording: found.recording ?? null });
                if (calls.length < PAGE || (calls.at(-1)?.at ?? '') <= until) {
                    this.behind = null;
                    this.#add(missed);
                    return;
                }
            }
        } catch (error) {
            if (!signal.aborted) this.#tell({ why: sentence(error) });
            return;
        }
        this.behind = null;
        if (this.state.value.paused) this.anew = true;
        else {
            // What the stream said meanwhile stays.
            const newest = this.calls.order.filter(({ at }) => at > until);
            this.calls.clear();
            this.calls.apply(newest);
        }
        this.#tell({ isWhole: false });
        this.#add(missed);
    }

    /** Calls that the gateway kept, to the list, or to what waits while it is paused. @param {Call[]} calls @param {boolean} [areOlder] */
    #add(calls, areOlder = false) {
        this.#note(calls);
        // What the stream said meanwhile is newer.
        const isNew = (/** @type {Call} */ { id }) =>
            this.calls.byId.get(id)?.state !== 'done' && this.held.get(id)?.state !== 'done';
        const fresh = calls.filter(isNew);
        if (!areOlder && this.state.value.paused && this.state.value.loaded) {
            this.#hold(fresh.toReversed());
            this.#tell({ waiting: this.held.size });
            return;
        }
        this.calls.apply(fresh);
        this.rows.set(this.rows.value + 1);
    }

    /** @param {Record<string, string>} more @param {AbortSignal} signal */
    async #load(more, signal) {
        try {
            const limit = String(PAGE);
            const found = await get(`/v1/traffic${query(this.filter, { limit, ...more })}`, signal);
            if (signal.aborted) return;
            /** @type {Call[]} */
            const calls = found.calls;
            this.#add(calls, more.before !== undefined);
            this.#tell({ loaded: true, why: '', isWhole: calls.length < PAGE, recording: found.recording ?? null });
        } catch (error) {
            if (!signal.aborted) this.#tell({ loaded: true, why: sentence(error) });
        }
    }

    /** @param {Call[]} batch */
    #note(batch) {
        for (const field of NOTED) {
            const seen = this.values.get(field);
            for (const call of batch) {
                const value = call[field];
                if (value !== null && value !== '' && seen !== undefined && seen.size < VALUES) seen.add(value);
            }
        }
    }

    #schedule() {
        if (this.scheduled) return;
        this.scheduled = true;
        if (document.hidden) {
            setTimeout(() => this.#flush(), HIDDEN);
            return;
        }
        // However much comes, drawing takes a quarter of the time at most; the rest is for whoever uses the page.
        const { at, took } = this.drawn;
        const wait = at + Math.max(PAUSE, 3 * took) - performance.now();
        const draw = () => requestAnimationFrame(() => this.#flush());
        if (wait > 0) setTimeout(draw, wait);
        else draw();
    }

    #flush() {
        this.scheduled = false;
        if (this.pending.length === 0 && this.dropped === 0) return;
        const began = performance.now();
        // What is scheduled now runs once the frame is drawn.
        setTimeout(() => {
            const at = performance.now();
            this.drawn = { at, took: Math.min(at - began, LONGEST) };
        });
        const batch = this.pending.map((data) => /** @type {Call} */ (JSON.parse(data)));
        this.pending = [];
        this.#note(batch);
        this.seen.add(batch.filter((call) => call.state === 'done').length + this.dropped, began);
        const dropped = this.state.value.dropped + this.dropped;
        this.dropped = 0;
        const rate = this.seen.perSecond(began);
        if (this.state.value.paused) {
            this.#hold(batch);
            this.#tell({ waiting: this.held.size, rate, dropped });
            return;
        }
        this.calls.apply(batch);
        this.#tell({ rate, dropped });
        this.rows.set(this.rows.value + 1);
    }

    /** Keeps calls until the list goes on; the oldest make way. @param {Call[]} batch */
    #hold(batch) {
        for (const call of batch) this.held.set(call.id, call);
        for (const id of this.held.keys()) {
            if (this.held.size <= MOST) break;
            this.held.delete(id);
        }
    }

    /** @param {Partial<LiveState>} changes */
    #tell(changes) {
        const before = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (this.state.value));
        if (Object.entries(changes).some(([name, value]) => before[name] !== value)) {
            this.state.set({ ...this.state.value, ...changes });
        }
    }
}

/** How many in the last seconds. */
class Rate {
    constructor() {
        /** @type {{ second: number, count: number }[]} */
        this.seconds = [];
    }

    /** @param {number} count @param {number} now */
    add(count, now) {
        const second = Math.floor(now / 1000);
        const last = this.seconds.at(-1);
        if (last?.second === second) last.count += count;
        else this.seconds.push({ second, count });
    }

    /** @param {number} now */
    perSecond(now) {
        const from = Math.floor(now / 1000) - WINDOW;
        this.seconds = this.seconds.filter(({ second }) => second >= from);
        const whole = this.seconds.filter(({ second }) => second < Math.floor(now / 1000));
        return Math.round(whole.reduce((sum, { count }) => sum + count, 0) / WINDOW);
    }
}

/** @type {LiveState} */
const BEGIN = {
    link: 'connecting',
    why: '',
    paused: false,
    waiting: 0,
    dropped: 0,
    loaded: false,
    isWhole: false,
    recording: null,
    rate: 0,
};
/** The most calls in the page; older ones are still at the gateway. */
const MOST = 10_000;
const PAGE = 200;
/** How many pages are read to catch up after the stream was lost. */
const CATCH_UP = 10;
const NOTED = /** @type {const} */ (['server', 'outcome', 'principal', 'method']);
const VALUES = 500;
const HIDDEN = 1000;
/** How long the list stands still at least, and how long drawing it may have taken at most, in milliseconds. */
const PAUSE = 30;
const LONGEST = 250;
const WINDOW = 5;
