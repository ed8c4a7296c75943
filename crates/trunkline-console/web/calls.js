// The calls that the page knows, newest first, bounded.

/** @typedef {import('./types.d.ts').Call} Call */

export class Calls {
    /** @param {number} most */
    constructor(most) {
        this.most = most;
        /** Oldest first. @type {Call[]} */
        this.order = [];
        /** @type {Map<string, Call>} */
        this.byId = new Map();
        /** How many were let go to make room. */
        this.forgotten = 0;
    }

    get length() {
        return this.order.length;
    }

    /** The call at a row; row 0 is the newest. @param {number} row */
    at(row) {
        return this.order[this.order.length - 1 - row];
    }

    /** The row of a call, or -1. @param {string} id */
    rowOf(id) {
        const call = this.byId.get(id);
        if (call === undefined) return -1;
        return this.order.length - 1 - this.#place(call);
    }

    /** Adds calls, and replaces those that are known. @param {Call[]} batch */
    apply(batch) {
        for (const call of batch) {
            const known = this.byId.get(call.id);
            this.byId.set(call.id, call);
            if (known !== undefined) {
                const place = this.#place(known);
                if (known.at === call.at) {
                    this.order[place] = call;
                    continue;
                }
                this.order.splice(place, 1);
            }
            const last = this.order.at(-1);
            if (last === undefined || compare(last, call) < 0) this.order.push(call);
            else this.order.splice(this.#place(call), 0, call);
        }
        this.#bound();
    }

    clear() {
        this.order = [];
        this.byId.clear();
        this.forgotten = 0;
    }

    /** Room is made for many at once, so that it is rarely made. */
    #bound() {
        if (this.order.length <= this.most + SLACK) return;
        const gone = this.order.splice(0, this.order.length - this.most);
        for (const call of gone) this.byId.delete(call.id);
        this.forgotten += gone.length;
    }

    /** Where a call is, or belongs. @param {Call} call */
    #place(call) {
        let from = 0;
        let to = this.order.length;
        while (from < to) {
            const middle = (from + to) >> 1;
            const at = this.order[middle];
            if (at !== undefined && compare(at, call) < 0) from = middle + 1;
            else to = middle;
        }
        return from;
    }
}

/** @param {Call} a @param {Call} b */
function compare(a, b) {
    if (a.at !== b.at) return a.at < b.at ? -1 : 1;
    return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

const SLACK = 500;
