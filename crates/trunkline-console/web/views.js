// The views there are, in the order of the tabs.
import { Approvals, heldCount } from './views/approvals.js';
import { Login } from './views/login.js';
import { Recordings } from './views/recordings.js';
import { Servers } from './views/servers.js';
import { Tokens } from './views/tokens.js';
import { Traffic } from './views/traffic.js';
import { Try } from './views/try.js';

/**
 * @typedef {object} View
 * @property {string} name as in the URL
 * @property {string} label
 * @property {string} about for the palette
 * @property {any} view
 * @property {(status: import('./types.d.ts').Status | null) => number} [badge]
 */

/** @type {View[]} */
export const VIEWS = [
    { name: 'traffic', label: 'Traffic', about: 'what is happening', view: Traffic },
    { name: 'servers', label: 'Servers', about: 'what runs', view: Servers },
    { name: 'try', label: 'Try', about: 'make a call yourself', view: Try },
    { name: 'tokens', label: 'Tokens', about: 'what definitions cost', view: Tokens },
    {
        name: 'approvals',
        label: 'Approvals',
        about: 'definitions that are held back',
        view: Approvals,
        badge: heldCount,
    },
    { name: 'recordings', label: 'Recordings', about: 'what was kept', view: Recordings },
    { name: 'login', label: 'Login', about: 'step through a login', view: Login },
];
