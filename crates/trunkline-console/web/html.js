// Templates into Preact's nodes, and the names of Preact that every view uses.
import { Fragment, h, render } from './vendor/preact.js';
import htm from './vendor/htm.js';

/** @typedef {import('./vendor/preact.js').ComponentChildren} Children */

export const html = /** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */ (htm.bind(h));
export { Fragment, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';
