// What is tried at each server, as the steps that a client takes and what it sees of them.

const called = (tool) => ({ tool, steps: async (peer) => [await peer.call(tool)] });
const answered = (tool) => ({
    tool, steps: async (peer) => [await peer.call(tool), await peer.call(tool, 'decline'), await peer.call(tool, 'cancel')],
});

/**
 * Each feature: the tool it needs, and its steps. What is `returned` is a question that the handler returns, to run once
 * more with the answer; the others ask in the middle.
 */
export const FEATURES = {
    ask: answered('ask'),
    'ask returned': answered('ask_returned'),
    visit: answered('visit'),
    'visit returned': answered('visit_returned'),
    // The tool fails until a page was visited (-32042), and takes the next call for one after the visit.
    'visit first': {
        tool: 'visit_first', steps: async (peer) => [await peer.call('visit_first'), await peer.call('visit_first')],
    },
    sample: called('sample'),
    'sample returned': called('sample_returned'),
    roots: called('roots'),
    'roots returned': called('roots_returned'),
    'logs unasked': called('log'),
    logs: {
        tool: 'log',
        steps: async (peer) => [
            await peer.setLevel('info'), await peer.call('log'), await peer.setLevel('warning'), await peer.call('log'),
        ],
    },
    progress: called('progress'),
    subscriptions: {
        tool: 'touch',
        async steps(peer, uri) {
            const { seen, leave } = await peer.subscribe(uri);
            const touched = await peer.call('touch');
            // Whoever is promised to hear of it and does not is worse off than who is refused.
            const isBroken = seen.error === undefined && touched.notes.length === 0;
            const first = isBroken ? { error: { message: 'It was promised, and nothing came.' } } : seen;
            return [first, touched, await leave(), await peer.call('touch')];
        },
    },
    tasks: called('work'),
};

/** What a client that can be asked nothing is told by every tool that asks. */
export async function refusals(peer, tools) {
    const asking = ['ask', 'visit', 'sample', 'roots'].flatMap((tool) => [tool, `${tool}_returned`]);
    const steps = [];
    for (const tool of asking.filter((it) => tools.includes(it))) steps.push(await peer.call(tool));
    return steps;
}
