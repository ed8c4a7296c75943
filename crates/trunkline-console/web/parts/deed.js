// A button that does something at the gateway, and says how that went.
import { html, useState } from '../html.js';
import { post, sentence } from '../api.js';
import { Said } from './said.js';

/**
 * @param {{ path: string, body?: unknown, label: string, done: string, primary?: boolean, title?: string, then?: () => void }} props
 */
export function Deed({ path, body = {}, label, done, primary = false, title, then }) {
    const [state, setState] = useState({ busy: false, said: '', failed: false });
    const run = async () => {
        setState({ busy: true, said: '', failed: false });
        try {
            await post(path, body);
            setState({ busy: false, said: done, failed: false });
            then?.();
        } catch (error) {
            setState({ busy: false, said: sentence(error), failed: true });
        }
    };
    return html`<span class="deed">
        <button type="button" class=${primary ? 'solid' : 'quiet boxed'} title=${title} disabled=${state.busy} onClick=${run}>
            ${label}
        </button>
        <span role="status" class=${state.failed ? 'outcome failed' : 'muted'}><${Said} text=${state.said} /></span>
    </span>`;
}
