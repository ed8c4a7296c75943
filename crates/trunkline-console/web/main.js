// The page begins: enter, then show what the URL says.
import { html, render } from './html.js';
import { open } from './api.js';
import { App } from './app.js';
import { applyTheme } from './theme.js';

applyTheme();
const key = /^#k=([\w-]+)$/.exec(location.hash)?.[1] ?? null;
// The key is good once; it stays neither in the address nor in the history.
if (key !== null) history.replaceState(null, '', '#/traffic');
const root = document.getElementById('app');
if (root !== null) render(html`<${App} />`, root);
void open(key);
