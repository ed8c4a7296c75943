// The page begins: enter, then show what the URL says.
import { html, render } from './html.js';
import { open } from './api.js';
import { App } from './app.js';
import { go } from './route.js';
import { applyTheme } from './theme.js';

/** The key of a link, if the address has one. It is good once, and stays neither there nor in the history. */
function takeKey() {
    const key = /^#k=([\w-]+)$/.exec(location.hash)?.[1] ?? null;
    if (key !== null) go('#/traffic', { push: false });
    return key;
}

applyTheme();
const key = takeKey();
const root = document.getElementById('app');
if (root !== null) render(html`<${App} />`, root);
void open(key);
// A link that is opened where the page is already.
addEventListener('hashchange', () => {
    const another = takeKey();
    if (another !== null) void open(another);
});
