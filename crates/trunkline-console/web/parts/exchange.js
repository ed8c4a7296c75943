// What was asked for and what came of it, without the envelope.
import { html } from '../html.js';
import { at, pretty } from '../json.js';
import { Copy } from './copy.js';
import { Diff } from './diff.js';
import { JsonTree } from './tree.js';

/**
 * @typedef {import('../messages.js').Conversation} Conversation
 * @typedef {import('../messages.js').Message} Message
 * @typedef {import('../json.js').Json} Json
 */

/** @param {{ talk: Conversation, mode: string, call: import('../types.d.ts').Call, note?: string | null }} props */
export function Exchange({ talk, mode, call, note }) {
    if (mode === 'diff') return html`<${Carried} talk=${talk} />`;
    if (talk.request?.node === undefined && talk.response?.node === undefined) return html`<${NotKept} note=${note} />`;
    const error = at(talk.response?.node, 'error');
    return html`<${Section} title="Request" message=${talk.request} node=${wanted(talk.request?.node)} mode=${mode} />
        ${talk.questions.map(
            ({ question, answer }, number) =>
                html`<${Section}
                        key=${`q${number}`}
                        title="Question"
                        message=${question}
                        node=${at(question.node, 'params') ?? at(question.node, 'result', 'inputRequests')}
                        mode=${mode}
                        tone="asked"
                    />
                    ${
                        answer === undefined
                            ? html`<p class="muted pad">No answer ${call.state === 'running' ? 'yet' : 'came'}.</p>`
                            : html`<${Section}
                              title="Answer"
                              message=${answer}
                              node=${at(answer.node, 'result') ?? at(answer.node, 'params', 'inputResponses') ?? at(answer.node, 'error')}
                              mode=${mode}
                              tone="asked"
                          />`
                    }`,
        )}
        ${
            talk.response === undefined
                ? html`<p class="muted pad">${call.state === 'running' ? 'No answer yet.' : 'No answer was sent.'}</p>`
                : html`<${Section}
                  title=${error === undefined ? 'Result' : 'Error'}
                  message=${talk.response}
                  node=${error ?? at(talk.response.node, 'result')}
                  mode=${mode}
                  tone=${talk.response.label === 'result' ? '' : 'failed'}
              />`
        }`;
}

/** What a message holds that people look for; raw shows all of it. @param {{ title: string, message: Message | undefined, node: Json | undefined, mode: string, tone?: string }} props */
function Section({ title, message, node, mode, tone = '' }) {
    if (message?.node === undefined) return null;
    return html`<section class=${`part ${tone}`}>
        <header>
            <h3>${title}</h3>
            <span class="muted">${message.label}</span>
            <span class="grow"></span>
            <${Copy} text=${() => (node === undefined || mode === 'raw' ? message.text : pretty(node))}>Copy</${Copy}>
        </header>
        ${
            mode === 'raw'
                ? html`<pre class="raw" tabindex="0" aria-label=${title}>${message.text}</pre>`
                : html`<${JsonTree} node=${node ?? message.node} label=${title} />`
        }
    </section>`;
}

/** What the gateway changed on the way. @param {{ talk: Conversation }} props */
function Carried({ talk }) {
    const pairs = /** @type {const} */ ([
        ['Request: the client’s, then the server’s', talk.request, talk.serverRequest],
        ['Answer: the server’s, then the client’s', talk.serverResponse, talk.response],
    ]);
    return pairs.map(([title, before, after]) => {
        const isWhole = before?.node !== undefined && after?.node !== undefined;
        return html`<section class="part" key=${title}>
            <header><h3>${title}</h3></header>
            ${
                isWhole
                    ? html`<${Diff} before=${pretty(/** @type {Json} */ (before.node))} after=${pretty(/** @type {Json} */ (after.node))} label=${title} />`
                    : html`<p class="muted pad">There are not both: the gateway answered itself, or content is not kept.</p>`
            }
        </section>`;
    });
}

/** @param {{ note?: string | null }} props */
export function NotKept({ note }) {
    return html`<p class="muted pad">${note ?? 'The content of this call is not kept.'}</p>`;
}

/** The arguments of a call; the parameters of anything else. @param {Json | undefined} node */
function wanted(node) {
    const params = at(node, 'params');
    return at(params, 'arguments') ?? params;
}
