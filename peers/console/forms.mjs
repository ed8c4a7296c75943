// Forms and questions of every kind in the Try view, as a person fills them in.
import { assert } from '../check.mjs';

export async function forms({ stage, story }) {
    // An answer that does not arrive is an error in the browser's log.
    const page = await stage.entered('try?server=forms', { isWatched: false });
    const maker = (name) => page.getByRole('region', { name: `Try ${name}`, exact: true });
    const question = (about) => page.getByRole('alert', { name: 'A question' }).filter({ hasText: about });
    const open = async (server, name, more = '') => {
        await page.goto(`${stage.origin}/#/try?server=${server}&name=${encodeURIComponent(name)}${more}`);
        await maker(name).waitFor();
        return maker(name);
    };
    const run = async (it) => it.getByRole('button', { name: 'Run' }).click();
    const ended = (it, how) => it.getByRole('status').getByText(how, { exact: true }).waitFor();
    const result = (it) => it.getByRole('group', { name: 'The result' });

    await story('numbers are typed by keyboard: fractions, zeros, a minus', async () => {
        const it = await open('demo', 'sum');
        const [a, b] = [it.getByLabel('a *'), it.getByLabel('b *')];
        for (const [field, typed] of [[a, '1.05'], [b, '-3'], [a, '0.05'], [b, '100.20']]) {
            await field.focus();
            await page.keyboard.press('Control+a');
            await field.pressSequentially(typed);
            assert.equal(await field.inputValue(), typed);
        }
        await run(it);
        await result(it).getByText('100.25').first().waitFor();
    });
    await story('a form of every kind: nested, lists, unions, choices, defaults, and what must not be seen', async () => {
        const it = await open('forms', 'fill');
        await it.getByLabel('price *').focus();
        await page.keyboard.press('Control+a');
        await it.getByLabel('price *').pressSequentially('-0.50');
        await it.getByLabel('street *').fill('Elm Street');
        await it.getByRole('button', { name: '+ floor' }).click();
        await it.getByLabel('floor', { exact: true }).fill('4');
        const tags = it.getByRole('group', { name: 'tags' });
        for (const tag of ['one', 'two', 'three']) {
            await tags.getByRole('button', { name: '+ item' }).click();
            await tags.getByRole('textbox').last().fill(tag);
        }
        await tags.getByRole('button', { name: 'Leave out 2' }).click();
        // Untyped items are JSON; one that is left out takes its text along.
        const notes = it.getByRole('group', { name: 'notes' });
        for (const note of ['{"a": 1}', '[2]', '"three']) {
            await notes.getByRole('button', { name: '+ item' }).click();
            await notes.getByRole('textbox').last().fill(note);
        }
        assert.equal(await notes.getByRole('textbox').last().getAttribute('aria-invalid'), 'true');
        await notes.getByRole('button', { name: 'Leave out 1' }).click();
        assert.deepEqual(await notes.getByRole('textbox').evaluateAll((all) => all.map(({ value }) => value)), ['[2]', '"three']);
        await notes.getByRole('textbox').last().fill('"three"');
        await it.getByLabel('size *').selectOption('large');
        assert.equal(await it.getByLabel('count', { exact: true }).inputValue(), '3');
        // Two branches are texts: the one that was chosen stays.
        const pay = it.getByLabel('Form of pay');
        await pay.selectOption('other word');
        await it.getByLabel('other word').fill('cash');
        assert.equal(await pay.evaluate((select) => select.selectedOptions[0].label), 'other word');
        await pay.selectOption('card');
        await it.getByLabel('number *').fill('4000 1234');
        // A long secret stays one, and no field loses the focus while it grows.
        const pin = it.getByLabel('pin *');
        await pin.pressSequentially('x'.repeat(70));
        assert.equal(await pin.getAttribute('type'), 'password');
        assert.equal(await pin.inputValue(), 'x'.repeat(70));
        await it.getByRole('button', { name: '+ about' }).click();
        await it.getByLabel('about', { exact: true }).pressSequentially('y'.repeat(70));
        assert.equal(await it.getByLabel('about', { exact: true }).inputValue(), 'y'.repeat(70));
        // Every object has a `constructor`; the form has this one only if it is wanted.
        await it.getByRole('button', { name: '+ constructor' }).waitFor();
        await it.getByRole('button', { name: 'JSON' }).click();
        const sent = JSON.parse(await it.getByLabel('Arguments as JSON').inputValue());
        assert.deepEqual(sent, {
            price: -0.5,
            address: { street: 'Elm Street', floor: 4 },
            tags: ['one', 'three'],
            notes: [[2], 'three'],
            size: 'large',
            count: 3,
            pay: { number: '4000 1234' },
            pin: 'x'.repeat(70),
            about: 'y'.repeat(70),
        });
        await run(it);
        await ended(it, 'ok');
    });
    await story('another revision changes neither the arguments nor the result', async () => {
        const it = await open('demo', 'echo');
        await it.getByLabel('text *').fill('it stays');
        await run(it);
        await result(it).getByText('it stays').first().waitFor();
        await page.getByLabel('Revision').selectOption('2025-06-18');
        await page.waitForURL(/revision=2025-06-18/);
        await page.waitForResponse(/offers/).catch(() => {});
        assert.equal(await it.getByLabel('text *').inputValue(), 'it stays');
        await result(it).getByText('it stays').first().waitFor();
    });
    for (const revision of ['2024-11-05', '2025-03-26']) {
        await story(`a call as a client of ${revision}`, async () => {
            const it = await open('demo', 'echo', `&revision=${revision}`);
            await it.getByLabel('text *').fill(`as of ${revision}`);
            await run(it);
            await result(it).getByText(`as of ${revision}`).first().waitFor();
            await it.getByRole('link', { name: 'Its messages' }).click();
            const detail = page.getByRole('region', { name: 'The selected call' });
            await detail.locator('.facts').getByText(revision).waitFor();
        });
    }
    await story('a page is visited: the question has its link', async () => {
        const it = await open('demo', 'open_page');
        await run(it);
        const asked = question('Please agree to the terms.');
        assert.equal(await asked.getByRole('link').getAttribute('href'), 'https://example.com/consent');
        await asked.getByRole('button', { name: 'Done there' }).click();
        await result(it).getByText('accepted').first().waitFor();
    });
    await story('a person is the model, and sees the system prompt and how long the answer may be', async () => {
        const it = await open('forms', 'translate');
        await run(it);
        const asked = question('sampling/createMessage');
        await asked.getByText('You are a dictionary.').waitFor();
        await asked.getByLabel(/at most 7 tokens/).fill('hello');
        // Whoever types an answer sends that, and makes no other call.
        await page.keyboard.press('Control+Enter');
        await result(it).getByText('It means: hello').first().waitFor();
        await ended(it, 'ok');
    });
    await story('a person says which folders there are', async () => {
        const it = await open('demo', 'roots');
        await run(it);
        await question('roots/list').getByLabel(/Roots/).fill('file:///one\nfile:///two');
        await question('roots/list').getByRole('button', { name: 'Answer' }).click();
        await result(it).getByText(/file:\/\/\/two/).first().waitFor();
    });
    for (const [server, name, method] of [['forms', 'translate', 'sampling/createMessage'], ['demo', 'roots', 'roots/list']]) {
        await story(`a question is declined: ${method}`, async () => {
            const it = await open(server, name);
            await run(it);
            const asked = question(method);
            const [said] = await Promise.all([
                page.waitForRequest(/\/answer$/),
                asked.getByRole('button', { name: 'Decline' }).click(),
            ]);
            assert.deepEqual(said.postDataJSON().error, { code: -1, message: 'The user refused.' });
            // A gateway that takes no refusal says so, and the question is asked still.
            if ((await said.response()).ok()) await it.getByRole('status').getByText(/error/).waitFor();
            else {
                await it.locator('.notice[role=alert]').waitFor();
                await asked.waitFor();
                await it.locator('.outcome-box header').getByRole('button', { name: 'Cancel' }).click();
                await asked.waitFor({ state: 'detached' });
            }
        });
    }
    await story('two questions at once have fields of their own, and an answer that gets lost loses no question', async () => {
        const it = await open('demo', 'book');
        await it.getByLabel('city *').fill('Rome');
        await it.getByLabel('nights *').fill('2');
        await run(it);
        const [sure, name, last] = [question('2 nights in Rome'), question('Name on the booking?'), question('cannot be refunded')];
        await sure.waitFor();
        await name.waitFor();
        const ids = await page.locator('.ask input').evaluateAll((all) => all.map(({ id }) => id.replace(/-[a-z]+$/, '')));
        assert.equal(new Set(ids).size, 2, ids.join());
        // A label belongs to the field of its own question.
        await name.locator('label').click();
        await page.keyboard.type('Ada');
        await page.route('**/answer', (route) => route.abort(), { times: 1 });
        await name.getByRole('button', { name: 'Accept' }).click();
        await it.getByText('The gateway does not answer.').waitFor();
        assert.equal(await name.getByLabel(/name/).inputValue(), 'Ada');
        await name.getByRole('button', { name: 'Accept' }).click();
        await name.waitFor({ state: 'detached' });
        for (const asked of [sure, last]) {
            await asked.getByLabel(/ok/).check();
            await asked.getByRole('button', { name: 'Accept' }).click();
        }
        await result(it).getByText('R-ROME').first().waitFor();
    });
    await story('a call goes on while another view is shown, with its question; signing out ends it', async () => {
        let it = await open('demo', 'greet');
        await run(it);
        await question('What is your name?').waitFor();
        await page.getByRole('link', { name: 'Traffic', exact: true }).click();
        await it.waitFor({ state: 'detached' });
        await page.goBack();
        await question('What is your name?').getByLabel(/name/).fill('Ada');
        await question('What is your name?').getByRole('button', { name: 'Accept' }).click();
        await result(it).getByText('Hello, Ada!').first().waitFor();

        const other = await stage.entered('try?server=demo&name=sleep');
        it = other.getByRole('region', { name: 'Try sleep' });
        await it.getByLabel('ms *').fill('59000');
        await it.getByRole('button', { name: 'Run' }).click();
        await page.goto(`${stage.origin}/#/traffic?q=server%3Ademo`);
        const row = page.locator('.rows .row', { hasText: 'demo.sleep' }).first();
        await row.filter({ hasText: 'running' }).waitFor();
        await other.getByRole('button', { name: 'Sign out' }).click();
        await other.getByText('You have signed out.').waitFor();
        await row.filter({ hasText: 'cancelled' }).waitFor();
        await other.context().close();
    });
    await story('a resource, a template with its completion, a log message', async () => {
        let it = await open('demo', 'demo://readme', '&kind=resources');
        await run(it);
        await result(it).getByText(/The trunkline demo/).first().waitFor();
        it = await open('demo', 'demo://greeting/{name}', '&kind=templates');
        await it.getByLabel('name *').pressSequentially('A');
        await it.locator('datalist option[value="Ada"]').waitFor({ state: 'attached' });
        assert.deepEqual(await it.locator('datalist option').evaluateAll((all) => all.map(({ value }) => value)), ['Ada', 'Alan']);
        await it.getByLabel('name *').fill('Alan');
        await run(it);
        await result(it).getByText('Hello, Alan!').first().waitFor();
        it = await open('far', 'say');
        await run(it);
        await it.locator('.heard', { hasText: 'mind the gap' }).waitFor();
    });
    await story('a completion knows the other arguments, in the revisions that tell them', async () => {
        for (const [revision, cities] of [['2025-06-18', ['Palermo', 'Parma']], ['2025-03-26', []]]) {
            const it = await open('forms', 'travel', `&kind=prompts&revision=${revision}`);
            await it.getByLabel('country *').fill('Italy');
            const said = page.waitForRequest((request) => /"name":"city","value":"Pa"/.test(request.postData() ?? ''));
            await it.getByLabel('city *').pressSequentially('Pa');
            const { params } = (await said).postDataJSON();
            assert.deepEqual(params.context?.arguments, cities.length > 0 ? { country: 'Italy' } : undefined);
            if (cities.length > 0) await it.locator('datalist option[value="Parma"]').waitFor({ state: 'attached' });
            await page.goto(`${stage.origin}/#/try?server=demo&name=echo`);
            await maker('echo').waitFor();
        }
    });
    await story('a server that offers nothing, or whose lists fail, says so', async () => {
        const tell = (answer) => page.route('**/offers*', (route) => route.fulfill({ json: answer }), { times: 1 });
        const offers = page.getByRole('region', { name: 'What it offers' });
        await page.goto(`${stage.origin}/#/traffic`);
        await tell({ tools: [], prompts: [], resources: [], templates: [] });
        await page.goto(`${stage.origin}/#/try?server=changing`);
        await offers.getByText('It offers nothing').waitFor();
        await page.goto(`${stage.origin}/#/traffic`);
        const tools = [{ name: 'note', inputSchema: { type: 'object' } }];
        await tell({ tools, prompts: [], resources: [], templates: [], errors: { resourceTemplates: 'The server said no.' } });
        await page.goto(`${stage.origin}/#/try?server=changing`);
        await offers.getByText('The server said no.').waitFor();
        await offers.getByRole('link', { name: 'note' }).waitFor();
    });
    await story('calls are made again that no list has: a template’s resource, a tool that is gone, a call to no server', async () => {
        const client = await stage.client('older');
        await client.client.readResource({ uri: 'demo://greeting/Barbara' });
        await client.call('demo.nothing', { of: 'this' }).catch(() => {});
        await client.call('nowhere', { to: 'go' }).catch(() => {});
        const again = async (filter, text) => {
            await page.goto(`${stage.origin}/#/traffic?q=${encodeURIComponent(filter)}`);
            await page.locator('.rows .row', { hasText: text }).filter({ hasText: 'older-client' }).first().click();
            await page.getByRole('region', { name: 'The selected call' }).getByRole('link', { name: 'Try again' }).click();
        };
        await again('method:resources/read', 'demo://greeting/Barbara');
        let it = maker('demo://greeting/Barbara');
        assert.equal(await it.getByLabel('uri *').inputValue(), 'demo://greeting/Barbara');
        await run(it);
        await result(it).getByText('Hello, Barbara!').first().waitFor();
        await again('demo.nothing', 'demo.nothing');
        it = page.locator('.maker', { hasText: 'nothing' });
        await it.getByText('does not list it').waitFor();
        await run(it);
        await ended(it, 'error');
        await again('nowhere', 'nowhere');
        it = maker('nowhere');
        assert.match(await page.getByLabel('Server').inputValue(), /none/);
        await run(it);
        await ended(it, 'error');
    });
    await page.context().close();
}
