// Secrets that were planted, looked for in everything that the console shows, exports and copies.
import { readFileSync } from 'node:fs';
import { assert } from '../check.mjs';
import { PLANTED } from './stage.mjs';

export async function secrets({ stage, story }) {
    const page = await stage.entered('traffic?q=server%3Aforms');
    const client = await stage.client('older');
    const detail = page.getByRole('region', { name: 'The selected call' });
    const row = (name) => page.locator('.rows .row', { hasText: name }).filter({ hasText: 'older-client' }).first();
    const clean = async (where, text) => {
        for (const [what, secret] of Object.entries(PLANTED)) assert.ok(!text.includes(secret), `the ${what} is in ${where}`);
    };
    const look = async (where) => clean(where, await page.content());
    /** Everything that is shown of a call. */
    const lookAt = async (name) => {
        await row(name).click();
        await detail.getByRole('heading', { name, level: 2 }).waitFor();
        await detail.locator('.part').first().waitFor();
        await look(`${name}, pretty`);
        for (const mode of ['raw', 'carried']) {
            await detail.getByRole('button', { name: mode }).click();
            await detail.locator('.part').first().waitFor();
            await look(`${name}, ${mode}`);
        }
        await detail.getByRole('tab', { name: /Messages/ }).click();
        for (const message of await detail.locator('.message').all()) await message.click();
        await look(`the messages of ${name}`);
        await detail.getByRole('tab', { name: /Exchange/ }).click();
    };

    await story('secrets of a server, of a header and of an argument are nowhere: calls, export, command', async () => {
        const args = { price: 1, address: { street: 'x' }, tags: [], notes: [], size: 'small', pay: 'x', pin: PLANTED.argument };
        // The servers themselves have them.
        assert.match(JSON.stringify(await client.call('forms.fill', args)), new RegExp(PLANTED.argument));
        assert.match(JSON.stringify(await client.call('forms.reveal')), new RegExp(PLANTED.env));
        assert.match(JSON.stringify(await client.call('far.reveal')), new RegExp(PLANTED.header));
        await lookAt('forms.fill');
        await detail.getByRole('button', { name: 'pretty' }).click();
        await detail.getByText('***').first().waitFor();
        await detail.getByRole('button', { name: 'Copy as command' }).click();
        const command = await page.evaluate(() => navigator.clipboard.readText());
        assert.match(command, /^trunkline call forms\.fill/);
        await clean('the command', command);
        const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export' }).click()]);
        const lines = readFileSync(await download.path(), 'utf8');
        assert.match(lines, /forms/);
        await clean('the export', lines);
        await lookAt('forms.reveal');
        await page.goto(`${stage.origin}/#/traffic?q=server%3Afar`);
        await lookAt('far.reveal');
    });
    await story('a call with a masked argument is made again: what is missing is said', async () => {
        await page.goto(`${stage.origin}/#/traffic?q=server%3Aforms`);
        await row('forms.fill').click();
        await detail.getByRole('link', { name: 'Try again' }).click();
        const it = page.getByRole('region', { name: 'Try fill' });
        await it.getByText('Some arguments were masked').waitFor();
        assert.equal(await it.getByLabel('pin *').inputValue(), '***');
        await look('the form');
        await it.getByLabel('pin *').fill(PLANTED.argument);
        await look('the form that is filled in');
    });
    await story('planted secrets are in no other view', async () => {
        const named = (label) => page.getByRole('region', { name: label });
        const table = page.getByRole('region', { name: 'Servers' });
        const views = [
            ['servers', table.getByRole('link', { name: 'forms' })],
            ['servers?server=forms', named('The server forms').getByRole('log').getByText('form_server is there')],
            ['servers?server=far', named('The server far')],
            ['try?server=forms&name=reveal', named('Try reveal')],
            ['try?server=far&name=reveal', named('Try reveal')],
            ['tokens?server=forms', page.getByRole('link', { name: 'forms.fill' })],
            ['approvals', page.getByText('Nothing is held back.')],
            ['login', page.getByLabel('Server')],
        ];
        for (const [hash, there] of views) {
            await page.goto(`${stage.origin}/#/${hash}`);
            await there.first().waitFor();
            await look(hash);
        }
        await page.goto(`${stage.origin}/#/recordings`);
        await page.getByLabel('Name').fill('planted');
        await page.getByLabel('Of').fill('server:forms,far');
        await page.getByRole('button', { name: 'Keep' }).click();
        await page.getByRole('link', { name: /^planted/ }).click();
        const opened = named('The recording planted');
        await opened.getByRole('button', { name: /forms\.fill/ }).first().click();
        await opened.locator('.message').first().waitFor();
        await look('the recording');
        const kept = await page.evaluate(async () => (await fetch('/v1/recordings/planted')).text());
        await clean('what is kept', kept);
    });
    await page.context().close();
}
