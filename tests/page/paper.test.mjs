// The page of a study's run and that of an audit: as a reader uses them, in Chromium, from the disk,
// without a network and without scripts.
//
// `PAPER` names the page of the study that never was (crates/study/examples/paper.rs), whose
// figures are known; `AUDIT` that of `weigh audit --study all --page`; `CHROMIUM` the browser.
// Without a browser the tests say SKIPPED, except with CI=true, where that is a failure.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const pages = { paper: process.env.PAPER, audit: process.env.AUDIT };
const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env.CHROMIUM ?? known.find(existsSync);
for (const [name, path] of Object.entries(pages)) {
  assert.ok(path && existsSync(path), `${name.toUpperCase()} must name a page`);
}
if (!executablePath) {
  assert.notEqual(process.env.CI, 'true', 'chromium is not installed: apt-get install chromium');
  console.log('SKIPPED: chromium is not installed');
}
const options = { skip: !executablePath };

let browser;
before(async () => {
  if (executablePath) browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
after(async () => browser?.close());

/** A page at a width, with everything that it should never do noted in `faults`. */
async function open(name, width, colorScheme = 'light') {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled: false });
  const page = await context.newPage();
  const faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) faults.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(pages[name]).href);
  await page.waitForSelector('main');
  return { page, faults };
}

/** Opens every fold, as a reader would: no script of the page does. */
async function unfold(page) {
  await page.evaluate(() => document.querySelectorAll('details').forEach((each) => { each.open = true; }));
}

for (const name of Object.keys(pages)) {
  for (const [width, scheme] of [[390, 'light'], [390, 'dark'], [1280, 'light'], [1280, 'dark']]) {
    test(`${name} at ${width} pixels, ${scheme}: all is drawn and nothing overflows`, options, async () => {
      const { page, faults } = await open(name, width, scheme);
      await unfold(page);
      assert.equal(await page.locator('figure svg').count(), name === 'paper' ? 1 : 0);
      const [inner, scrolled] = await page.evaluate(() =>
        [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
      assert.equal(scrolled, inner, 'the page is no wider than the screen');
      assert.deepEqual(faults, []);
      await page.close();
    });
  }

  test(`${name}: links within it lead somewhere, and a screen reader finds its way`, options, async () => {
    const { page } = await open(name, 1280);
    const lost = await page.$$eval('a[href^="#"]', (all) =>
      all.map((link) => link.getAttribute('href')).filter((href) => !document.getElementById(href.slice(1))));
    assert.deepEqual(lost, []);
    const twice = await page.$$eval('[id]', (all) =>
      all.map((each) => each.id).filter((id, index, ids) => ids.indexOf(id) !== index));
    assert.deepEqual(twice, []);
    assert.equal(await page.locator('h1').count(), 1);
    const levels = await page.$$eval('h1, h2, h3, h4', (all) => all.map((each) => Number(each.tagName[1])));
    assert.deepEqual(levels.filter((level, index) => index > 0 && level > levels[index - 1] + 1), []);
    const unnamed = await page.$$eval('[role="img"], [role="region"], section, article', (all) =>
      all.filter((each) => !each.getAttribute('aria-label') && !each.getAttribute('aria-labelledby')).length);
    assert.equal(unnamed, 0);
    await page.close();
  });
}

test('a figure is drawn without a script, in the colours of the page', options, async () => {
  const colours = new Set();
  for (const scheme of ['light', 'dark']) {
    const { page } = await open('paper', 1280, scheme);
    const svg = page.locator('figure svg');
    const words = await svg.textContent();
    for (const name of ['HTTP (paper)', 'HTTP, as published', 'MQTT (paper)', 'clients', 'CPU (%)']) {
      assert.ok(words.includes(name), name);
    }
    colours.add(await svg.locator('.c0').first().evaluate((each) => getComputedStyle(each).color));
    const box = await svg.boundingBox();
    assert.ok(box.width > 300 && box.height > 150, JSON.stringify(box));
    await page.close();
  }
  assert.equal(colours.size, 2, 'another colour in the dark');
});

test('the first screen has citation, abstract and the beginning of the table', options, async () => {
  const { page } = await open('paper', 1280);
  for (const part of ['.byline', '.abstract', 'table.compared thead', 'table.compared tbody tr']) {
    const box = await page.locator(part).first().boundingBox();
    assert.ok(box && box.y + box.height <= 900, `${part} ${JSON.stringify(box)}`);
  }
  await page.close();
});

test('a claim is two lines, and its evidence is there when it is asked for', options, async () => {
  const { page } = await open('paper', 1280);
  const claim = page.locator('article.claim').first();
  const shut = await claim.boundingBox();
  assert.ok(shut.height < 260, `${shut.height} pixels`);
  assert.ok(!(await claim.locator('table').isVisible()));
  await claim.locator('summary').click();
  assert.ok(await claim.locator('table').isVisible());
  await page.close();
});

test('on paper it has no folds, and the figures are there', options, async () => {
  const { page, faults } = await open('paper', 1280, 'dark');
  await page.emulateMedia({ media: 'print', colorScheme: 'light' });
  assert.ok(!(await page.locator('summary').first().isVisible()));
  assert.ok(await page.locator('figure svg').isVisible());
  const pdf = await page.pdf({ format: 'A4' });
  assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
  assert.deepEqual(faults, []);
  await page.close();
});

test('a number in the table of rules leads to its findings', options, async () => {
  const { page } = await open('audit', 1280);
  const row = page.locator('#summary tbody tr', { hasText: 'L05' });
  await row.locator('td a').first().click();
  const heading = page.locator(new URL(page.url()).hash);
  assert.match(await heading.textContent(), /^L05/);
  const list = heading.locator('xpath=following-sibling::ul[1]');
  assert.match(await list.textContent(), /Rayleigh p = 1\.1e-7/);
  await page.close();
});
