// The certified OpenID provider `oidc-provider` as an authorization server: clients register themselves, need a proof
// key, and get JWTs for the resource they name. Whoever comes to its pages is signed in as alice and agrees.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { assert } from '../check.mjs';

/**
 * Starts it at a free port. Its tokens may have these scopes; `bound` is whether it binds them to keys, and wants nonces for
 * that; with `pages` a person signs in and agrees at its own pages; `tells` may change what it says about itself.
 */
export async function openIdProvider({ scopes, bound = false, pages = false, tells = () => {} }) {
    let current;
    let seconds = 600;
    const server = createServer((request, response) => current(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const issuer = `http://127.0.0.1:${server.address().port}`;
    const store = new Store();
    const resources = new Set();
    const seen = [];
    const cookies = [crypto.randomUUID()];

    function withKeys(keys) {
        const provider = new Provider(issuer, {
            adapter: (model) => store.of(model),
            jwks: { keys },
            cookies: { keys: cookies },
            clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
            findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
            ...(pages ? {} : { interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` } }),
            pkce: { required: () => true },
            scopes: ['openid', 'offline_access', ...scopes],
            ttl: { AccessToken: () => seconds, Grant: 3600, IdToken: 600, Interaction: 600, RefreshToken: 3600, Session: 600 },
            features: {
                devInteractions: { enabled: pages },
                registration: { enabled: true },
                revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId },
                introspection: { enabled: true },
                dPoP: bound ? { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true } : { enabled: false },
                resourceIndicators: {
                    enabled: true,
                    defaultResource: () => undefined,
                    useGrantedResource: () => true,
                    getResourceServerInfo: (_, resource) => {
                        assert.ok(resources.has(resource), `unknown resource ${resource}`);
                        return {
                            audience: resource, scope: scopes.join(' '), accessTokenTTL: seconds,
                            accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } },
                        };
                    },
                },
            },
        });
        provider.on('grant.success', (context) => {
            const { grant_type: grant, resource } = context.oidc.params;
            seen.push({ grant, resource, client: context.oidc.client.clientId, type: context.body.token_type });
        });
        provider.on('grant.error', (context, error) => {
            seen.push({ grant: context.oidc.params?.grant_type, error: error.error });
        });
        provider.on('server_error', (_, error) => console.error(error));
        provider.use(async (context, next) => {
            await next();
            if (context.oidc?.route === 'discovery') tells(context.body);
        });
        const rest = provider.callback();
        return (request, response) =>
            !pages && request.url.startsWith('/interaction/') ? agree(provider, request, response) : rest(request, response);
    }

    let generation = 0;
    const renew = async () => { current = withKeys(await newKeys(generation += 1)); };
    await renew();
    return {
        issuer,
        seen,
        /** What it remembers of a kind, such as `Client` or `RefreshToken`. */
        all: (model) => store.all(model),
        /** Lets tokens be asked for a resource. */
        knows: (resource) => { resources.add(resource); },
        /** Lets the tokens of from now on live so long. */
        givesFor: (so) => { seconds = so; },
        /** Signs with new keys from now on; the old ones are forgotten. */
        rotate: renew,
        stop: () => {
            server.close();
            server.closeAllConnections();
        },
    };
}

/** Answers each page as a person would: signs in, then agrees to whatever is asked. */
async function agree(provider, request, response) {
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
    if (prompt.name === 'login') {
        await provider.interactionFinished(request, response, { login: { accountId: 'alice' } });
        return;
    }
    assert.equal(prompt.name, 'consent');
    const grant = grantId === undefined
        ? new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
        : await provider.Grant.find(grantId);
    const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
    if (missingOIDCScope.length > 0) grant.addOIDCScope(missingOIDCScope.join(' '));
    for (const [resource, scopes] of Object.entries(missingResourceScopes)) grant.addResourceScope(resource, scopes.join(' '));
    const consent = { grantId: await grant.save() };
    await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

/** A key for access tokens, and one of the kind that OpenID signs identities with unless told otherwise. */
async function newKeys(generation) {
    const rsa = { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' };
    const kinds = [['ES256', { name: 'ECDSA', namedCurve: 'P-256' }], ['RS256', rsa]];
    return Promise.all(kinds.map(async ([alg, how]) => {
        const { privateKey } = await crypto.subtle.generateKey(how, true, ['sign', 'verify']);
        const { key_ops: _, ext: __, ...jwk } = await crypto.subtle.exportKey('jwk', privateKey);
        return { ...jwk, kid: `${alg}-${generation}`, use: 'sig', alg };
    }));
}

/** What the provider remembers, which outlives a change of its keys. */
class Store {
    constructor() { this.models = new Map(); }

    of(model) {
        const rows = this.models.get(model) ?? this.models.set(model, new Map()).get(model);
        return {
            upsert: async (id, row) => { rows.set(id, row); },
            find: async (id) => rows.get(id),
            findByUid: async (uid) => [...rows.values()].find((row) => row.uid === uid),
            findByUserCode: async () => undefined,
            consume: async (id) => { rows.get(id).consumed = Math.floor(Date.now() / 1000); },
            destroy: async (id) => { rows.delete(id); },
            revokeByGrantId: async (grantId) => {
                for (const [id, row] of rows) if (row.grantId === grantId) rows.delete(id);
            },
        };
    }

    all(model) { return [...(this.models.get(model)?.values() ?? [])]; }
}
