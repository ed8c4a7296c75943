// Calls that become tasks, followed in the Try view: servers of both generations, as a client of both.
import { assert } from '../check.mjs';

export async function tasks({ stage, story }) {
    const page = await stage.entered('try?server=demo');
    /** Runs a tool with these arguments, as a client of a revision. */
    const run = async (server, name, revision, args) => {
        // Another tool first: a form that is shown already stays as it is.
        await page.goto(`${stage.origin}/#/try?server=${server}`);
        await page.goto(`${stage.origin}/#/try?server=${server}&revision=${revision}&name=${name}`);
        const it = page.getByRole('region', { name: `Try ${name}` });
        await it.getByRole('button', { name: 'JSON' }).click();
        await it.getByLabel('Arguments as JSON').fill(JSON.stringify(args));
        // In 2025-11-25 the caller asks for a task, in 2026-07-28 the server decides.
        assert.equal(await it.getByLabel('as a task').count(), revision === '2025-11-25' ? 1 : 0);
        await it.getByRole('button', { name: 'Run' }).click();
        return it;
    };
    // The server asks for roots as well, which need not be answered.
    const asked = page.getByRole('alert', { name: 'A question' }).filter({ hasText: 'multiple interpretations' });
    const states = async (it) => it.locator('.heard .task-state').allTextContents();
    const ended = (it, how) => it.getByRole('status').getByText(how, { exact: true }).waitFor();

    for (const revision of ['2026-07-28', '2025-11-25']) {
        await story(`a call that becomes a task is followed to its end: ${revision}`, async () => {
            const it = await run('demo', 'work', revision, { steps: 200 });
            await ended(it, 'working');
            await ended(it, 'ok');
            await it.getByText('worked 200 steps').first().waitFor();
            const seen = await states(it);
            assert.equal(seen[0], 'working');
            assert.equal(seen.at(-1), 'completed');
            await it.getByRole('link', { name: 'Its messages' }).click();
            const detail = page.getByRole('region', { name: 'The selected call' });
            await detail.getByRole('tab', { name: /Messages/ }).click();
            await detail.locator('.message', { hasText: 'tasks/get' }).first().waitFor();
        });
        await story(`a task asks while it works, and goes on with the answer: ${revision}`, async () => {
            const it = await run('everything', 'simulate-research-query', revision, { topic: 'python', ambiguous: true });
            await asked.waitFor();
            await ended(it, 'input required');
            await asked.getByRole('combobox').selectOption({ label: 'Python snake species' });
            await asked.getByRole('button', { name: 'Accept' }).click();
            await asked.waitFor({ state: 'detached' });
            await ended(it, 'ok');
            await it.getByText('Research Report: python (snake)').first().waitFor();
            const seen = await states(it);
            assert.deepEqual([seen[0], seen.includes('input required'), seen.at(-1)], ['working', true, 'completed'], seen.join());
            await it.locator('.heard', { hasText: 'Gathering sources' }).waitFor();
        });
        await story(`a task is cancelled at its server: ${revision}`, async () => {
            const it = await run('everything', 'simulate-research-query', revision, { topic: 'patience', ambiguous: true });
            await asked.waitFor();
            await it.locator('.outcome-box header').getByRole('button', { name: 'Cancel' }).click();
            await ended(it, 'error');
            await it.getByText('The task was cancelled.').first().waitFor();
            assert.equal((await states(it)).at(-1), 'cancelled');
            await asked.waitFor({ state: 'detached' });
        });
    }
    await page.context().close();
}
