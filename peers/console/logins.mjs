// Logins at an authorization server that is not ours, npm `oidc-provider`, stepped through in the Login view.
import { dirname, join } from 'node:path';
import { assert } from '../check.mjs';
import { openIdProvider } from '../auth/oidc.mjs';
import { start } from '../http.mjs';

export async function logins({ stage, story }) {
    const page = await stage.entered('login');
    const steps = page.locator('.login-step');

    await story('a login at the npm oidc-provider: every request, every answer, what is made of it', async () => {
        await at(stage, {}, async ({ url, provider }) => {
            await begin(page, url);
            const visits = [];
            await through(page, async (link) => visits.push(await person(stage, link)));
            assert.match(await end(page).textContent(), /^Logged in as alice at http:\/\/127\.0\.0\.1:\d+ with the scopes /);
            const titles = (await steps.locator('h2').allTextContents()).map((it) => it.replace(/^\d+\. /, ''));
            assert.deepEqual(titles, [
                'Ask the server without a token',
                'Ask who issues tokens for the server',
                'Ask what the authorization server can do',
                'Register the client',
                'Exchange the code for a token',
            ]);
            // Each step has its request, its answer, and what the client decided.
            const [hello, resource, metadata, registration, token] = await steps.all();
            for (const it of [hello, resource, metadata, registration, token]) {
                assert.equal(await it.locator('.side').count(), 2);
            }
            await says(hello, /answered 401/, /resource_metadata=/, /Looks for the authorization server of/);
            await says(resource, /answered 200/, /authorization_servers/, new RegExp(provider.issuer));
            await says(metadata, /answered 200/, /code_challenge_methods_supported/, /S256/, /Registers itself at/);
            await says(registration, /answered 201/, /redirect_uris/, /client_id/, /Sends a person to the page of/);
            await says(token, /answered 200/, /grant_type=authorization_code/, /code_verifier=\*\*\*/, /Has a token of/);
            assert.equal(visits.length, 1);
            const [asked] = visits;
            assert.equal(asked.get('code_challenge_method'), 'S256');
            assert.equal(asked.get('resource'), url);
            assert.deepEqual(provider.seen.map(({ grant, error }) => error ?? grant), ['authorization_code']);
            // Nothing secret is on the page.
            const shown = await page.content();
            for (const model of ['AccessToken', 'AuthorizationCode', 'RefreshToken', 'RegistrationAccessToken']) {
                for (const { jti } of provider.all(model)) assert.ok(!shown.includes(jti), `a ${model} is shown`);
            }
        });
    }, 60_000);
    await story('a person who does not agree: the login says so', async () => {
        await at(stage, {}, async ({ url }) => {
            await begin(page, url);
            await through(page, (link) => person(stage, link, { agrees: false }));
            await page.locator('.steps > .reason.failed').getByText(/access_denied|aborted|refused/).waitFor();
        });
    }, 60_000);
    const faults = [
        ['says that it is another issuer', (metadata) => { metadata.issuer = 'https://elsewhere.example'; }, /elsewhere\.example/],
        ['does not say that it has PKCE', (metadata) => { delete metadata.code_challenge_methods_supported; }, /PKCE with S256/],
    ];
    for (const [name, tells, why] of faults) {
        await story(`an authorization server that ${name}: the step that fails says why`, async () => {
            await at(stage, { tells }, async ({ url, provider }) => {
                await begin(page, url);
                await through(page, () => assert.fail('no person is sent anywhere'));
                const failed = page.locator('.login-step.failed');
                assert.equal(await failed.count(), 1);
                assert.equal(await failed.locator('h2').textContent(), await steps.last().locator('h2').textContent());
                assert.match(await failed.locator('.reason.failed').textContent(), why);
                assert.match(await failed.locator('h2').textContent(), /Ask what the authorization server can do/);
                assert.match(await end(page).textContent(), why);
                assert.deepEqual(provider.seen, []);
            });
        }, 60_000);
    }
    await page.context().close();
}

/** A server of ours that trusts the provider alone, while a story is told. */
async function at(stage, options, tell) {
    const provider = await openIdProvider({ scopes: ['notes', 'notes:write'], pages: true, ...options });
    const binary = join(dirname(stage.trunkline), 'protected-server');
    const server = await start(binary, [provider.issuer, '127.0.0.1:0'], /http:\/\/\S+\/mcp/);
    try {
        const [url] = server.found;
        provider.knows(url);
        await tell({ url, provider });
    } finally {
        await server.stop();
        provider.stop();
    }
}

const end = (page) => page.locator('.steps > .reason');

async function begin(page, url) {
    await page.reload();
    await page.getByLabel('Server').fill(url);
    await page.getByRole('button', { name: 'Begin' }).click();
}

/** Sends each request, and a person to each page, until the login has ended. */
async function through(page, visit) {
    const send = page.getByRole('button', { name: 'Send it' });
    const there = page.getByRole('button', { name: 'I have been there' });
    for (let steps = 0; steps < 20; steps += 1) {
        await send.or(there).or(end(page)).first().waitFor();
        if (await end(page).count() > 0) return;
        if (await there.count() > 0) {
            await visit(await page.locator('.steps .ask a').getAttribute('href'));
            await there.click();
        } else await send.click();
        await page.waitForFunction(() => document.querySelector('.steps button:disabled') === null);
    }
    assert.fail('the login does not end');
}

/** Somebody signs in at the provider's own pages, in a browser of their own; what the page was asked for. */
async function person(stage, link, { agrees = true } = {}) {
    const context = await stage.browser.newContext();
    // The pages of the provider want a font from elsewhere.
    await context.route((url) => url.hostname !== '127.0.0.1', (route) => route.abort());
    const page = await context.newPage();
    await page.goto(link);
    await page.getByPlaceholder('Enter any login').fill('alice');
    await page.getByPlaceholder('and password').fill('any');
    await page.getByRole('button', { name: 'Sign-in' }).click();
    await page.getByRole('heading', { name: 'Authorize' }).waitFor();
    if (agrees) await page.getByRole('button', { name: 'Continue' }).click();
    else await page.getByRole('link', { name: '[ Cancel ]' }).click();
    await page.waitForURL(new URL(link).searchParams.get('redirect_uri') + '**');
    await context.close();
    return new URL(link).searchParams;
}

async function says(step, ...patterns) {
    const text = await step.textContent();
    for (const pattern of patterns) assert.match(text, pattern);
}
