// The report as a reader uses it: in Chromium, from the disk, without a network.
//
// `REPORT` names the report.html of the synthetic run (crates/report/examples/synthetic.rs), whose
// figures are known; `EIGHT` that of one with eight cases; `CHROMIUM` the browser. Without a browser the tests say SKIPPED, except with
// CI=true, where that is a failure.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const report = process.env.REPORT;
const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env.CHROMIUM ?? known.find(existsSync);
assert.ok(report && existsSync(report), 'REPORT must name a report.html');
const eight = process.env.EIGHT;
assert.ok(eight && existsSync(eight), 'EIGHT must name a report.html of eight cases');
if (!executablePath) {
  assert.notEqual(process.env.CI, 'true', 'chromium is not installed: apt-get install chromium');
  console.log('SKIPPED: chromium is not installed');
}
const options = { skip: !executablePath };

const METRICS = ['response_time_ns.p50', 'response_time_ns.p99', 'target_cpu_us_per_message'];
const SECTIONS = [
  'All cases', 'One metric in detail', 'Times by percentile', 'What a message costs',
  'One case in detail', 'Verdicts', 'How every figure was computed', 'Warnings, and what to do',
  'Machine, versions, plan',
];

let browser;
let folder;
before(async () => {
  if (!executablePath) return;
  folder = mkdtempSync(join(tmpdir(), 'weigh-page-'));
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true });
});

/**
 * The page at a width with its sections open, and everything that it should never do noted in `faults`.
 * Without scripts the browser's own click opens a section.
 */
async function open(width, colorScheme = 'light', javaScriptEnabled = true) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled });
  const faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) faults.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(report).href);
  if (javaScriptEnabled) await page.waitForSelector('html[data-ready]');
  for (const fold of await page.locator('details.fold').all()) {
    if (!(await fold.evaluate((each) => each.open))) await fold.locator('> summary').click();
  }
  return { page, faults };
}

/** Opens a table that is filled when it is opened: the page hears of that a moment later. */
async function unfold(details) {
  // Pictures that are drawn meanwhile move the page under the pointer.
  const isOpen = () => details.evaluate((each) => each.open);
  for (let tries = 0; tries < 5 && !(await isOpen()); tries += 1) {
    await details.locator('summary').click();
  }
  await details.locator('tbody tr').first().waitFor();
}

/** Scrolls through everything, so that every picture is drawn. */
async function read(page) {
  const pictures = page.locator('[data-picture]');
  for (let index = 0; index < (await pictures.count()); index += 1) {
    const drawn = pictures.nth(index).locator('xpath=self::*[@data-drawn]//*[local-name()="svg"]').first();
    // A picture above that grows while it is drawn may move this one out of view again, and the
    // first start of a browser on a machine takes half a minute.
    for (let left = 29; ; left -= 1) {
      await pictures.nth(index).scrollIntoViewIfNeeded();
      try {
        await drawn.waitFor({ timeout: 3000 });
        break;
      } catch (error) {
        if (left === 0) throw error;
        await page.evaluate(() => scrollTo(0, 0));
      }
    }
  }
  return pictures.count();
}

for (const [width, scheme] of [[390, 'light'], [390, 'dark'], [1280, 'light'], [1280, 'dark']]) {
  test(`every picture is drawn at ${width} pixels, ${scheme}, and nothing overflows`, options, async () => {
    const { page, faults } = await open(width, scheme);
    assert.ok((await read(page)) >= 8, 'there are pictures');
    const [inner, scrolled] = await page.evaluate(() =>
      [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
    assert.equal(scrolled, inner, 'the page is no wider than the screen');
    const wider = await page.$$eval('[data-picture] svg', (all) =>
      all.filter((svg) => svg.getBoundingClientRect().right > innerWidth + 1).length);
    assert.equal(wider, 0, 'no picture is wider than the screen');
    const paint = await page.$eval('body', (body) => getComputedStyle(body).backgroundColor);
    assert.equal(paint === 'rgb(255, 255, 255)', scheme === 'light', paint);
    const texts = await page.$eval('.first svg', (svg) => svg.textContent);
    assert.match(texts, /ms|µs/, 'the scale has units');
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test('the first screen has question, answer, picture and warnings', options, async () => {
  const { page } = await open(1280);
  assert.match(await page.textContent('h1'), /^MQTT, HTTP\/1.1 and TCP compared: /);
  const lines = await page.locator('.answer li').allTextContents();
  assert.equal(lines.length, 6);
  assert.match(lines[0], /^All 24 cases are valid/);
  assert.match(lines[1], /^3 of 24 cases lost messages, .* server dropped/);
  assert.match(lines[2], /server CPU per message: tcp at all 6 places \(\d+ to \d+ % less than mqtt qos=1\)/);
  assert.match(lines[4], /^Fastest at p99 \(response time\): tcp at all 6 places/);
  const answer = await page.locator('.answer').boundingBox();
  assert.ok(answer.y + answer.height < 500, JSON.stringify(answer));
  assert.match(await page.textContent('section.short'), /p90 and above are infinite/);
  await page.close();
});

test('a click on a heading sorts up, then down, and the keyboard does too', options, async () => {
  const { page } = await open(1280);
  const table = page.locator('#metric-table table');
  const heading = table.locator('th', { hasText: 'mean' });
  const means = () => table.locator('tbody tr').evaluateAll((rows) =>
    rows.map((row) => Number(row.cells[2].dataset.value)));
  const before = await means();
  const up = [...before].sort((a, b) => a - b);
  assert.notDeepEqual(before, up, 'the plan has an order of its own');
  await heading.locator('button').click();
  assert.equal(await heading.getAttribute('aria-sort'), 'ascending');
  assert.deepEqual(await means(), up);
  await heading.locator('button').focus();
  await page.keyboard.press('Enter');
  assert.equal(await heading.getAttribute('aria-sort'), 'descending');
  assert.deepEqual(await means(), up.reverse());
  await page.close();
});

test('the table of all cases sorts by what the figures mean, not by their letters', options, async () => {
  const { page } = await open(1280);
  const table = page.locator('#overview table').first();
  await table.locator('th', { hasText: 'p50' }).first().locator('button').click();
  const times = await table.locator('tbody tr:not(.group)').evaluateAll((rows) =>
    rows.map((row) => row.cells[1].textContent));
  const ns = times.map((text) => parseFloat(text) * (text.includes('ms') ? 1e6 : 1e3));
  assert.deepEqual(ns, [...ns].sort((a, b) => a - b), times.join(', '));
  await page.close();
});

test('another metric changes table, definition and pictures', options, async () => {
  const { page, faults } = await open(1280);
  for (const metric of METRICS) {
    await page.selectOption('#metric-choice', metric);
    const names = await page.locator('#metric-pictures [data-picture]').evaluateAll((all) =>
      all.map((place) => place.dataset.picture));
    assert.ok(names.length >= 2 && names.every((name) => name.includes(metric)), names.join());
    assert.ok((await page.textContent('#metric-what')).length > 20);
    await page.locator('#metric-pictures').scrollIntoViewIfNeeded();
    await page.locator('#metric-pictures [data-picture] svg').first().waitFor();
  }
  assert.match(await page.textContent('#metric-table tbody'), /µs/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('another case changes the flow, and the flow says what was lost', options, async () => {
  const { page } = await open(1280);
  const flow = page.locator('#case [data-picture^="flow-"]');
  await flow.scrollIntoViewIfNeeded();
  await flow.locator('svg').waitFor();
  assert.match(await flow.textContent(), /server dropped/, 'the case with losses comes first');
  await page.selectOption('#cell-choice', '0');
  await flow.locator('svg').waitFor();
  assert.doesNotMatch(await flow.textContent(), /server dropped/);
  await page.close();
});

test('hovering shows the value with its interval', options, async () => {
  const { page } = await open(1280);
  const place = page.locator('.first [data-picture][data-drawn]');
  await place.scrollIntoViewIfNeeded();
  await place.locator('svg').waitFor();
  const box = await place.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const tooltip = place.locator('div', { hasText: 'connections:' }).last();
  await tooltip.waitFor();
  assert.match(await tooltip.textContent(), /tcp: [\d.]+ [mµ]s \([\d.]+ [mµ]s to [\d.]+ [mµ]s\)/);
  await page.close();
});

test('how a figure was computed is one click away', options, async () => {
  const { page } = await open(1280);
  const details = page.locator('details[data-metric="response_time_ns.p99"]');
  await unfold(details);
  const text = await details.textContent();
  for (const wanted of ['due', 'Unit: ns', "Student's t over the repetitions", '95 %', 'tcp']) {
    assert.ok(text.includes(wanted), wanted);
  }
  assert.match(await page.textContent('#computed ul'), /Student's t over the repetitions.*: each repetition gives one value/);
  // The interval's own method in each row, or why there is none; the second interval; the median.
  const how = await details.locator('tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.cells].slice(6, 9).map((cell) => cell.textContent)));
  assert.ok(how.length === 24 && how.every(([words]) => /corrected for skewness|lost share/.test(words)));
  const [, beside, median] = how[0];
  assert.match(beside, /^[\d.]+ µs to [\d.]+ µs$/);
  assert.match(median, /^[\d.]+ µs$/);
  await page.close();
});

test('verdicts are for cases that differ in one thing, with their probabilities', options, async () => {
  const { page } = await open(1280);
  const verdicts = page.locator('#verdicts');
  assert.match(await verdicts.textContent(), /\d+ comparisons in all, \d+ significant; chance alone would make [\d.]+ significant\./);
  for (const title of ['Case against case', 'Along an axis']) {
    const details = verdicts.locator('details:not(.fold)', { hasText: title });
    await unfold(details);
    const rows = await details.locator('tbody tr').evaluateAll((all) =>
      all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.ok(rows.length > 20, title);
    for (const [, left, right, , verdict, p] of rows) {
      const places = [left, right].map((name) => /connections=\d+/.exec(name)[0]);
      assert.equal(places[0] === places[1], title.startsWith('Case'), `${left}, ${right}`);
      assert.match(verdict, /^(lower|higher|too close to call|practically equal)( \?)?$/);
      assert.match(p, /^(<0\.001|\d\.\d+)$/);
    }
  }
  await page.close();
});

test('on paper every section and picture is there', options, async () => {
  const { page, faults } = await open(1280, 'dark');
  const path = join(folder, 'report.pdf');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const [places, drawn] = await page.evaluate(() => [
    document.querySelectorAll('[data-picture]').length,
    document.querySelectorAll('[data-picture] svg').length,
  ]);
  assert.equal(drawn, places, 'every picture is drawn, seen before or not');
  await page.emulateMedia({ media: 'print', colorScheme: 'light' });
  const headings = await page.locator('h2:visible').allTextContents();
  for (const section of SECTIONS) {
    assert.ok(headings.some((heading) => heading.startsWith(section)), section);
  }
  assert.ok(await page.locator('details.plan pre').isVisible(), 'the plan is open');
  const values = page.locator('details[data-metric="response_time_ns.p99"] table');
  assert.ok(await values.isVisible(), 'the values of the headline metrics are open');
  await page.pdf({ path, format: 'A4' });
  const pdf = readFileSync(path);
  assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
  assert.ok(pdf.length > 50_000, `${pdf.length} bytes`);
  assert.deepEqual(faults, []);
  await page.close();
});

test('headings, names and tables are what a screen reader needs', options, async () => {
  const { page } = await open(1280);
  const unnamed = await page.$$eval('[role="img"], [role="region"], section', (all) =>
    all.filter((each) => !each.getAttribute('aria-label') && !each.getAttribute('aria-labelledby')).length);
  assert.equal(unnamed, 0);
  assert.equal(await page.locator('h1').count(), 1);
  const levels = await page.$$eval('h1, h2, h3', (all) => all.map((each) => Number(each.tagName[1])));
  const jumps = levels.filter((level, index) => index > 0 && level > levels[index - 1] + 1);
  assert.deepEqual(jumps, [], `levels ${levels}`);
  const selects = await page.$$eval('select', (all) => all.filter((each) => each.labels.length === 0).length);
  assert.equal(selects, 0);
  await page.close();
});

test('without scripts every picture and every section is there', options, async () => {
  const colours = new Set();
  for (const scheme of ['light', 'dark']) {
    const { page, faults } = await open(1280, scheme, false);
    const places = page.locator('[data-picture]');
    assert.ok((await places.count()) >= 8, `${await places.count()} pictures`);
    for (const place of await places.all()) {
      const box = await place.locator('svg').boundingBox();
      assert.ok(box.width > 1000 && box.height > 60, JSON.stringify(box));
    }
    const line = page.locator('.first svg [stroke="var(--c0)"]').first();
    colours.add(await line.evaluate((each) => getComputedStyle(each).stroke));
    assert.match(await page.textContent('#metric-table tbody'), /tcp.*µs/);
    assert.equal(await page.locator('select:visible').count(), 0, 'nothing to choose that would not work');
    assert.deepEqual(faults, []);
    await page.close();
  }
  assert.equal(colours.size, 2, `another colour in the dark: ${[...colours]}`);
});

test('no table is wider than a screen of 1280 pixels', options, async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { page } = await open(1280, 'light', javaScriptEnabled);
    if (javaScriptEnabled) {
      for (const details of await page.locator('details[data-metric]').all()) await details.evaluate((each) => { each.open = true; });
      await page.locator('details[data-metric] table').last().waitFor();
    }
    const wider = await page.$$eval('.wide', (all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1)
      .map((each) => `${each.getAttribute('aria-label')}: ${each.scrollWidth}`));
    assert.deepEqual(wider, []);
    await page.close();
  }
});

test('a page of eight cases has at most 400 KB', options, () => {
  const { size } = statSync(eight);
  assert.ok(size <= 400 * 1024, `${size} bytes`);
});
