// What definitions cost a model's context.
import { html, useEffect, useState } from '../html.js';
import { get, sentence } from '../api.js';
import { bytes, count, plural } from '../format.js';
import { change, link, route } from '../route.js';
import { useStore } from '../store.js';
import { Columns } from '../parts/columns.js';
import { Said } from '../parts/said.js';

/**
 * @typedef {{ bytes: number, tokens: number }} Cost
 * @typedef {Cost & { server: string, tools: (Cost & { name: string })[] }} ServerCost
 * @typedef {{ how: string, servers: ServerCost[], total: Cost, automatic: Cost & { saved: number, on: boolean } }} Costs
 */

export function Tokens() {
    const { params } = useStore(route);
    const [costs, setCosts] = useState(/** @type {Costs | null} */ (null));
    const [why, setWhy] = useState('');
    useEffect(() => {
        const abort = new AbortController();
        get('/v1/tokens', abort.signal).then(setCosts, (error) => {
            if (!abort.signal.aborted) setWhy(sentence(error));
        });
        return () => abort.abort();
    }, []);
    if (why !== '') return html`<p class="empty">${why}</p>`;
    if (costs === null) return html`<p class="empty muted">Reading…</p>`;
    const servers = costs.servers.toSorted((one, other) => other.tokens - one.tokens);
    const tools = servers.reduce((sum, it) => sum + it.tools.length, 0);
    const most = Math.max(1, ...servers.map((it) => it.tokens));
    return html`<div class="tokens" tabindex="0" role="region" aria-label="Cost of definitions">
        <dl class="sums">
            <div>
                <dt>${plural(tools, 'tool')} of ${plural(servers.length, 'server')}</dt>
                <dd>${count(costs.total.tokens)} <small>tokens</small></dd>
            </div>
            <div>
                <dt>with automatic mode${costs.automatic.on ? ', which is on' : ''}</dt>
                <dd>${count(costs.automatic.tokens)} <small>tokens</small></dd>
            </div>
            <div>
                <dt>${costs.automatic.on ? 'saved' : 'it would save'}</dt>
                <dd>${count(costs.automatic.saved)} <small>tokens a conversation</small></dd>
            </div>
        </dl>
        <p class="muted pad"><${Said} text=${costs.how} /></p>
        <div class="table-box">
            <table>
                <${Columns} of=${COLUMNS} />
                <tbody>
                    ${servers.map((it) => html`<${ServerRows} key=${it.server} cost=${it} most=${most} isOpen=${params.server === it.server} />`)}
                </tbody>
            </table>
        </div>
    </div>`;
}

/** @param {{ cost: ServerCost, most: number, isOpen: boolean }} props */
function ServerRows({ cost, most, isOpen }) {
    const tools = isOpen ? cost.tools.toSorted((one, other) => other.tokens - one.tokens) : [];
    const toggle = () => change({ server: isOpen ? undefined : cost.server });
    return html`<tr class=${isOpen ? 'selected' : ''}>
            <th scope="row">
                <button type="button" class="fold" aria-expanded=${isOpen} onClick=${toggle}>
                    <span aria-hidden="true">${isOpen ? '▾' : '▸'}</span> ${cost.server}
                </button>
            </th>
            <td class="right">${cost.tools.length}</td>
            <td class="right">${count(cost.tokens)}</td>
            <td class="right wide">${bytes(cost.bytes)}</td>
            <td class="share"><${Share} part=${cost.tokens} of=${most} /></td>
        </tr>
        ${tools.map(
            (tool) =>
                html`<tr key=${tool.name} class="inner">
                    <th scope="row"><a href=${link('try', { server: cost.server, name: tool.name })}>${tool.name}</a></th>
                    <td></td>
                    <td class="right">${count(tool.tokens)}</td>
                    <td class="right wide">${bytes(tool.bytes)}</td>
                    <td class="share"><${Share} part=${tool.tokens} of=${most} /></td>
                </tr>`,
        )}`;
}

/** @param {{ part: number, of: number }} props */
function Share({ part, of }) {
    return html`<span class="bar" style=${{ width: `${Math.max(1, (part / of) * 100)}%` }}><i class="stage upstream whole"></i></span>`;
}

/** @type {import('../parts/columns.js').Column[]} */
const COLUMNS = [
    ['server, tool'],
    ['tools', 'right'],
    ['tokens', 'right'],
    ['bytes', 'right wide'],
    ['share', 'share'],
];
