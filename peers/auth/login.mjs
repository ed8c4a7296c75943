// What both npm clients ask an application for when they log in: a place for what they learn, and a browser.
import { assert, REVISIONS } from '../check.mjs';
import { serve } from '../http.mjs';
import { approve } from './browser.mjs';

export const [NEWEST_LEGACY, MODERN] = REVISIONS.slice(-2);

/** The server at a URL, or our demo: protected by an authorization server of its own that approves at once. */
export async function protectedServer(line) {
    if (/^https?:/.test(line[0])) return { url: new URL(line[0]), stop: async () => {} };
    return { ...await serve(line, '--auth', '--auth-approve', 'alice'), isDemo: true };
}

/** An `OAuthClientProvider` in memory, which counts what its client did. */
export class Login {
    constructor(name, more = {}) {
        // Nobody listens there: the redirect is read, not followed.
        this.redirectUrl = 'http://127.0.0.1:41739/callback';
        this.clientMetadata = {
            client_name: name,
            redirect_uris: [this.redirectUrl],
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code'],
            token_endpoint_auth_method: 'none',
            application_type: 'native',
            ...more,
        };
        this.registered = 0;
        this.saved = 0;
        this.asked = [];
    }

    state() {
        this.expected = crypto.randomUUID();
        return this.expected;
    }

    clientInformation() { return this.client; }

    saveClientInformation(client) {
        this.registered += 1;
        this.client = client;
    }

    tokens() { return this.held; }

    saveTokens(tokens) {
        this.saved += 1;
        this.held = tokens;
    }

    redirectToAuthorization(url) { this.asked.push(url); }

    saveCodeVerifier(verifier) { this.verifier = verifier; }

    codeVerifier() { return this.verifier; }

    saveDiscoveryState(state) { this.discovered = state; }

    discoveryState() { return this.discovered; }

    /** Approves what was asked for last; what the redirect tells the client. */
    async approved() {
        const params = await approve(this.asked.at(-1));
        assert.equal(params.get('error'), null, params.get('error_description') ?? '');
        assert.equal(params.get('state'), this.expected);
        assert.ok(params.get('code'), `no code in ${[...params.keys()]}`);
        return params;
    }

    /** Makes the access token one that nobody handed out. */
    spoil() {
        const before = this.held;
        this.held = { ...before, access_token: 'spoiled' };
        return before;
    }
}

/** Without a token there is a challenge that says where to find out more, and no error; what it is called there. */
export async function isChallenged(url) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const response = await fetch(url, { method: 'POST', headers, body });
    await response.body?.cancel();
    assert.equal(response.status, 401);
    const challenge = response.headers.get('www-authenticate');
    const [, metadata] = /resource_metadata="([^"]+)"/.exec(challenge) ?? assert.fail(`no metadata in ${challenge}`);
    assert.equal(/error=/.test(challenge), false, challenge);
    const { resource, authorization_servers: issuers } = await (await fetch(metadata)).json();
    assert.ok(String(url).startsWith(resource), `${url} is not in ${resource}`);
    assert.equal(issuers.length, 1);
    return resource;
}

/** The client asked for a code as it must: with a proof key, for this resource alone. */
export function askedWell(asked, resource) {
    const query = asked.searchParams;
    assert.equal(query.get('response_type'), 'code');
    assert.equal(query.get('code_challenge_method'), 'S256');
    assert.ok(query.get('code_challenge').length >= 43);
    assert.equal(query.get('resource'), resource);
}

/** Lists the tools and calls one. */
export async function works(client) {
    const { tools } = await client.listTools();
    const tool = ['sum', 'add'].find((name) => tools.some((it) => it.name === name));
    const result = await client.callTool({ name: tool, arguments: { a: 2, b: 40 } });
    assert.equal(result.structuredContent.sum, 42, JSON.stringify(result));
}
