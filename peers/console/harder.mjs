// The console when something is not as it should be: no answer, a stream that is lost, a link that was used, a small screen.
import { assert } from '../check.mjs';
import { faultsOf } from './stage.mjs';

export async function harder({ stage, story }) {
    const client = await stage.client('new');
    const older = await stage.client('older');
    const detailOf = (page) => page.getByRole('region', { name: 'The selected call' });
    const rowOf = (page, text) => page.locator('.rows .row', { hasText: text }).first();

    await story('whoever signs out without an answer of the gateway leaves the page all the same', async () => {
        const page = await stage.entered('traffic', { isWatched: false });
        await page.route('**/v1/console/leave', (route) => route.abort());
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByText('You have left this page').waitFor();
        assert.equal(await page.getByRole('navigation').count(), 0);
        await page.context().close();
    });
    await story('a link that was used lets a browser go on that is in already', async () => {
        const page = await stage.page({ isWatched: false });
        const link = stage.newLink();
        await page.goto(link);
        await page.getByRole('status').getByText('live').waitFor();
        for (const again of ['with the page there', 'anew']) {
            if (again === 'anew') await page.goto('about:blank');
            const [entered, me] = ['enter', 'me'].map((path) => page.waitForResponse(`**/v1/console/${path}`));
            await page.goto(link);
            assert.equal((await entered).ok(), false, again);
            assert.equal((await me).ok(), true, again);
            await page.getByRole('status').getByText('live').waitFor();
        }
        await page.context().close();
    });
    await story('calls that were made while the stream was lost are there, and a paused list stands still', async () => {
        const page = await stage.page();
        // A connection that can be cut, and stays away.
        await page.addInitScript(() => {
            const real = globalThis.fetch;
            const open = new Set();
            let isDown = false;
            globalThis.fetch = (path, init = {}) => {
                if (!String(path).startsWith('/v1/traffic/stream')) return real(path, init);
                if (isDown) return Promise.reject(new TypeError('no way'));
                const cut = new AbortController();
                open.add(cut);
                return real(path, { ...init, signal: AbortSignal.any([init.signal, cut.signal]) });
            };
            globalThis.lose = () => {
                isDown = true;
                for (const cut of open) cut.abort(new TypeError('cut'));
            };
            globalThis.find = () => (isDown = false);
        });
        await page.goto(stage.newLink());
        await page.goto(`${stage.origin}/#/traffic?q=${encodeURIComponent('server:demo method:tools/call kinds')}`);
        const status = page.locator('.status-line');
        const lose = async (calls) => {
            await page.evaluate(() => globalThis.lose());
            await status.getByText('no connection').or(status.getByText('paused')).waitFor();
            for (let from = 0; from < calls; from += 20) {
                const some = Array.from({ length: Math.min(20, calls - from) }, () => client.call('demo.kinds'));
                await Promise.all(some);
            }
            await page.evaluate(() => globalThis.find());
        };
        await client.call('demo.kinds');
        await status.getByText(/^1 call\b/).waitFor();
        await lose(450);
        await status.getByText(/^451 calls/).waitFor();
        await page.getByRole('button', { name: 'Pause' }).click();
        const before = await page.locator('.rows').innerHTML();
        await lose(30);
        await page.getByRole('button', { name: 'Resume (30 new)' }).waitFor();
        assert.equal(await page.locator('.rows').innerHTML(), before);
        await page.getByRole('button', { name: 'Resume (30 new)' }).click();
        await status.getByText(/^481 calls/).waitFor();
        await page.context().close();
    });
    await story('arrows go through the rows, and scroll a panel that has the focus', async () => {
        for (const text of ['one', 'two', 'three']) await client.call('demo.echo', { text });
        const page = await stage.entered('traffic?q=server%3Ademo%20echo');
        await rowOf(page, 'demo.echo').waitFor();
        await page.keyboard.press('p');
        await rowOf(page, 'demo.echo').click();
        const at = () => new URL(page.url()).hash;
        const first = at();
        await page.keyboard.press('ArrowDown');
        const second = at();
        assert.notEqual(second, first);
        const panel = detailOf(page).getByRole('tabpanel');
        await detailOf(page).locator('.part').first().waitFor();
        await panel.focus();
        await page.keyboard.press('ArrowDown');
        await detailOf(page).getByRole('button', { name: 'raw' }).click();
        await detailOf(page).locator('pre').first().focus();
        await page.keyboard.press('ArrowUp');
        assert.equal(at().replace('&as=raw', ''), second);
        await page.getByRole('grid').focus();
        await page.keyboard.press('ArrowUp');
        assert.equal(at().replace('&as=raw', ''), first);
        await page.context().close();
    });
    await story('the palette shows the line that is chosen', async () => {
        const page = await stage.entered('traffic', { height: 300 });
        await page.keyboard.press('Control+k');
        const options = page.getByRole('option');
        await options.first().waitFor();
        for (let count = await options.count(); count > 1; count -= 1) await page.keyboard.press('ArrowDown');
        const chosen = page.getByRole('option', { selected: true });
        assert.match(await chosen.textContent(), /Sign out/);
        const [inside, list] = [await chosen.boundingBox(), await page.getByRole('listbox').boundingBox()];
        assert.ok(inside.y >= list.y && inside.y + inside.height <= list.y + list.height + 1, 'it is out of sight');
        await page.context().close();
    });
    await story('each stage of a call has a lane', async () => {
        const page = await stage.entered('traffic');
        older.person.accepts({ name: 'Ada' });
        await older.call('demo.greet');
        const row = page.locator('.rows .row', { hasText: 'demo.greet' }).filter({ hasText: 'older-client' }).first();
        await row.filter({ hasText: 'ok' }).click();
        await detailOf(page).getByRole('heading', { name: 'Answer' }).waitFor();
        const lanes = await detailOf(page).locator('.lane-name').allTextContents();
        const id = new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('call');
        const { stages } = await page.evaluate(async (id) => (await fetch(`/v1/calls/${id}`)).json(), id);
        const known = [...new Set(stages.map(({ stage }) => stage))];
        assert.deepEqual(lanes, [...known, 'messages']);
        for (const stage of ['upstream', 'question']) assert.ok(known.includes(stage), `${stage} is not among ${known.join()}`);
        await page.context().close();
    });
    await story('a broken server is tried again when somebody asks for it', async () => {
        await client.call('broken.anything').catch(() => {});
        const page = await stage.entered('servers?server=broken');
        const it = page.getByRole('region', { name: 'The server broken' });
        await it.getByRole('button', { name: 'Retry' }).click();
        await it.getByText('It is tried again.').waitFor();
        await it.getByText('the database is not there').first().waitFor();
        await page.context().close();
    });
    await story('a log says what it left out, and goes on when its stream ends', async () => {
        const page = await stage.entered('servers');
        const line = (text) => JSON.stringify({ at: '2026-07-28T00:00:00Z', server: 'demo', instance: 1, source: 'stderr', line: text });
        let answered = 0;
        await page.route('**/v1/logs*', (route) => {
            answered += 1;
            return route.fulfill({ body: answered === 1 ? `${line('before')}\n{"missed":7}\n` : `${line('after')}\n` });
        });
        await page.goto(`${stage.origin}/#/servers?server=demo`);
        const log = page.getByRole('log');
        await log.getByText('7 lines came too fast').waitFor();
        await log.getByText('The log stands still').waitFor();
        await log.getByText('after').waitFor();
        await page.context().close();
    });
    await story('a recording is deleted once that was confirmed', async () => {
        const page = await stage.entered('recordings', { isWatched: false });
        await page.getByLabel('Name').fill('passing');
        await page.getByRole('button', { name: 'Keep' }).click();
        await page.getByText('passing is kept.').waitFor();
        await page.getByRole('link', { name: /^passing/ }).click();
        const it = page.getByRole('region', { name: 'The recording passing' });
        await it.getByRole('button', { name: 'Delete' }).click();
        await it.getByRole('button', { name: 'Keep it' }).click();
        await it.getByRole('button', { name: 'Delete' }).click();
        const [said] = await Promise.all([
            page.waitForRequest((request) => request.method() === 'DELETE'),
            it.getByRole('button', { name: 'Delete it' }).click(),
        ]);
        assert.match(said.url(), /\/v1\/recordings\/passing$/);
        assert.match(said.headers()['x-trunkline-csrf'] ?? '', /./);
        // A gateway that deletes none says so.
        if ((await said.response()).ok()) await page.getByRole('link', { name: /^passing/ }).waitFor({ state: 'detached' });
        else await it.getByRole('alert').first().waitFor();
        await page.context().close();
    });
    await story('on a small screen in the dark: I find a call, open it, go back, try a tool, and answer its question', async () => {
        const page = await stage.entered('traffic', { width: 390, height: 780, theme: 'dark' });
        const found = [];
        await client.call('demo.echo', { text: 'in the dark' });
        await client.call('demo.fail', { message: 'too dark' });
        await page.getByRole('combobox', { name: 'Filter' }).fill('demo.echo');
        await page.keyboard.press('Enter');
        await page.locator('.rows .row', { hasText: 'demo.fail' }).first().waitFor({ state: 'detached' });
        await rowOf(page, 'demo.echo').click();
        await detailOf(page).getByText('"in the dark"').first().waitFor();
        found.push(...await faultsOf(page, 'the call'));
        await detailOf(page).getByRole('button', { name: '‹ Calls' }).click();
        await rowOf(page, 'demo.echo').waitFor();
        await page.getByRole('link', { name: 'Try', exact: true }).click();
        await page.getByLabel('Server').selectOption('demo');
        await page.locator('.offers-list').getByRole('link', { name: 'greet', exact: true }).first().click();
        const it = page.getByRole('region', { name: 'Try greet' });
        await it.getByRole('button', { name: 'Run' }).click();
        const asked = page.getByRole('alert', { name: 'A question' });
        await asked.getByLabel(/name/).fill('Nox');
        found.push(...await faultsOf(page, 'the question'));
        await asked.getByRole('button', { name: 'Accept' }).click();
        await it.getByText('Hello, Nox!').first().waitFor();
        found.push(...await faultsOf(page, 'the result'));
        await it.getByRole('link', { name: '‹ Offers' }).click();
        await page.locator('.offers-list').getByRole('link', { name: 'echo' }).first().waitFor();
        assert.deepEqual(found, []);
        await page.context().close();
    }, 60_000);
    for (const theme of ['light', 'dark']) {
        await story(`axe finds nothing when there is much to see: ${theme}`, async () => {
            const found = [];
            const outside = await stage.page({ theme, isWatched: false });
            await outside.goto(`${stage.origin}/#/traffic`);
            await outside.getByText('trunkline console', { exact: true }).waitFor();
            found.push(...await faultsOf(outside, 'the entry'));
            await outside.context().close();

            const page = await stage.entered('try?server=demo&name=greet', { theme });
            const look = async (view) => found.push(...await faultsOf(page, view));
            const it = page.getByRole('region', { name: 'Try greet' });
            await it.getByRole('button', { name: 'Run' }).click();
            const asked = page.getByRole('alert', { name: 'A question' });
            await asked.getByLabel(/name/).fill('Ada');
            await look('a question');
            await asked.getByRole('button', { name: 'Accept' }).click();
            await it.getByText('Hello, Ada!').first().waitFor();
            await look('a result');

            await client.call('demo.fail', { message: 'no' });
            await page.goto(`${stage.origin}/#/traffic?q=${encodeURIComponent('outcome:tool_error server:demo')}`);
            await page.keyboard.press('p');
            await rowOf(page, 'demo.fail').click();
            await detailOf(page).locator('.part.failed').first().waitFor();
            await look('a call that failed');

            await client.call('changing.note');
            stage.describe(`Takes a note, ${theme}.`);
            await page.goto(`${stage.origin}/#/servers?server=changing`);
            const server = page.getByRole('region', { name: 'The server changing' });
            await server.getByRole('button', { name: 'Stop' }).click();
            await server.getByText('It is stopped').waitFor();
            await client.call('changing.note').catch(() => {});
            await page.getByRole('link', { name: /Approvals 1/ }).click();
            await page.locator('.more', { hasText: theme }).waitFor();
            await look('a difference');
            await page.getByRole('button', { name: 'Approve' }).click();
            await page.getByText('Nothing is held back.').waitFor();
            await client.call('changing.note');

            await page.goto(`${stage.origin}/#/login`);
            await page.getByLabel('Server').fill(stage.far.found[1]);
            await page.getByRole('button', { name: 'Begin' }).click();
            await page.getByRole('button', { name: 'Send it' }).click();
            await page.locator('.login-step .side').nth(1).waitFor();
            await look('a login');
            assert.deepEqual(found, []);
            await page.context().close();
        }, 60_000);
    }
}
