// What the servers of the table say, so that all of them say the same.

export const QUESTION = 'Who are you?';
export const FORM = {
    type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } }, required: ['name'],
};
export const PAGE = { message: 'Please sign in.', url: 'https://example.com/sign-in', elicitationId: 'page-1' };
export const PROMPT = { messages: [{ role: 'user', content: { type: 'text', text: 'Two and two?' } }], maxTokens: 10 };
export const LEVELS = ['debug', 'info', 'warning', 'error'];
/** The resource of a server, by its SDK: a gateway has all of them. */
export const note = (sdk) => `table://${sdk}`;

/** A tool's result: a text, or what was answered as JSON. */
export const said = (what) => ({ content: [{ type: 'text', text: typeof what === 'string' ? what : JSON.stringify(what) }] });
