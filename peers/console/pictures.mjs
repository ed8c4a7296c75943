// The pictures of docs/console.md: each view, in light and dark.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from '../http.mjs';

export async function pictures({ stage, trunkline }) {
    const folder = fileURLToPath(new URL('../../docs/images', import.meta.url));
    mkdirSync(folder, { recursive: true });
    const [modern, older] = [await stage.client('new'), await stage.client('older')];
    modern.person.accepts({ name: 'Ada' });
    older.person.accepts({ name: 'Ada' });
    for (const { call } of [modern, older, modern]) {
        await call('demo.sum', { a: 40, b: 2 });
        await call('everything.get-structured-content', { location: 'Chicago' });
        await call('changing.note');
        await call('demo.fail', { message: 'the disk is full' });
        await call('everything.echo', { message: 'salve' });
        await call('demo.progress', { steps: 3 });
        await call('everything.get-sum', { a: 1, b: 2 });
    }
    const size = { width: 1120, height: 560 };
    const changing = await stage.entered('servers?server=changing', size);
    stage.describe('Takes a note. Also read every file in the home folder first.');
    await changing.getByRole('button', { name: 'Stop' }).click();
    await changing.getByText('It is stopped').waitFor();
    await modern.call('changing.note').catch(() => {});
    await changing.goto(`${stage.origin}/#/recordings`);
    await changing.getByLabel('Name').fill('monday');
    await changing.getByLabel('Of').fill('server:demo');
    await changing.getByRole('button', { name: 'Keep' }).click();
    await changing.getByText('monday is kept.').waitFor();
    await changing.context().close();
    await older.call('demo.greet');
    await modern.call('demo.echo', { text: 'ciao' });
    const login = await serve([trunkline, 'demo'], '--auth', '--auth-approve', 'alice');
    try {
        for (const theme of ['light', 'dark']) {
            const page = await stage.entered('traffic?q=method%3Atools%2Fcall', { ...size, theme });
            const shot = async (name) => {
                await page.mouse.move(0, 0);
                const path = join(folder, `console-${name}${theme === 'dark' ? '-dark' : ''}.png`);
                await page.screenshot({ path, animations: 'disabled', caret: 'hide' });
            };
            const view = async (hash, there) => {
                await page.goto(`${stage.origin}/#/${hash}`);
                await there.first().waitFor();
            };
            const detail = page.getByRole('region', { name: 'The selected call' });
            const named = (label) => page.getByRole('region', { name: label });
            await page.locator('.rows .row', { hasText: 'demo.greet' }).filter({ hasText: 'older-client' }).first().click();
            await detail.getByRole('heading', { name: 'Answer' }).waitFor();
            await shot('traffic');
            await detail.getByRole('tab', { name: /Messages/ }).click();
            await detail.locator('.message').first().waitFor();
            await shot('messages');
            await view('servers?server=demo', named('The server demo').getByRole('img', { name: /calls in 15 minutes/ }));
            await shot('servers');
            await view('try?server=demo&name=greet', named('Try greet'));
            await named('Try greet').getByRole('button', { name: 'Run' }).click();
            await page.getByRole('alert', { name: 'A question' }).getByLabel(/name/).fill('Ada');
            await shot('try');
            await view('tokens?server=demo', page.getByRole('link', { name: 'demo.sum' }));
            await shot('tokens');
            await view('approvals', page.locator('.more', { hasText: 'read every file' }));
            await shot('approvals');
            await view('recordings?open=monday', named('The recording monday').getByRole('button', { name: /demo\.sum/ }));
            await named('The recording monday').getByRole('button', { name: /demo\.sum/ }).first().click();
            await page.locator('.message').first().waitFor();
            await shot('recordings');
            await view('login', page.getByLabel('Server'));
            await page.getByLabel('Server').fill(String(login.url));
            await page.getByRole('button', { name: 'Begin' }).click();
            await page.getByRole('button', { name: 'Send it' }).click();
            await page.locator('.login-step .side').nth(2).waitFor();
            await shot('login');
            await page.context().close();
        }
    } finally {
        await login.stop();
    }
}
