// The page of a run that is watched, as a reader uses it: in Chromium, from a server of the run.
//
// `SERVER` is the example serve_stored of weigh-watch, `RUN` the folder of the stored run, whose
// figures are known: 12 trials of 60 messages. Without a browser the tests say SKIPPED, except with
// CI=true, where that is a failure.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const { SERVER, RUN } = process.env;
const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env.CHROMIUM ?? known.find(existsSync);
assert.ok(SERVER && existsSync(SERVER), 'SERVER must name the example serve_stored');
assert.ok(RUN && existsSync(join(RUN, 'journal.jsonl')), 'RUN must name the folder of the stored run');
if (!executablePath) {
  assert.notEqual(process.env.CI, 'true', 'chromium is not installed: apt-get install chromium');
  console.log('SKIPPED: chromium is not installed');
}
const options = { skip: !executablePath };
const lines = readFileSync(join(RUN, 'journal.jsonl'), 'utf8').trimEnd().split('\n');
/** The journal with thresholds, of which the first fails in some trials and the last always holds. */
const journal = () => {
  const first = JSON.parse(lines[0]);
  first.plan.thresholds = ['p50 < 1ms', 'p99 < 50ms', 'loss == 0'];
  return [JSON.stringify(first), ...lines.slice(1)];
};

let browser;
let folder;
const servers = [];
before(async () => {
  if (!executablePath) return;
  folder = mkdtempSync(join(tmpdir(), 'weigh-watch-'));
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
after(async () => {
  await browser?.close();
  for (const server of servers) server.kill();
  if (folder) rmSync(folder, { recursive: true });
});

/** Serves a journal of these lines and returns the URL and the journal's path. */
async function serve(content) {
  const run = mkdtempSync(join(folder, 'run-'));
  const path = join(run, 'journal.jsonl');
  writeFileSync(path, `${content.join('\n')}\n`);
  return { ...await serveFolder(run), path };
}

/** Serves the run or the study in a folder and returns the URL. */
async function serveFolder(run) {
  const server = spawn(SERVER, [run], { stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(server);
  const said = await new Promise((resolve) => { server.stdout.once('data', (data) => resolve(String(data))); });
  return { url: /http:\S+/.exec(said)[0] };
}

/** The page at a width, with everything that it should never do noted in `faults`. */
async function open(url, width = 1280, colorScheme = 'light') {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) faults.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, faults };
}

const shows = (page, trials) => page.waitForSelector(`html[data-shown="${trials}"]`);

for (const [width, scheme] of [[390, 'light'], [390, 'dark'], [1280, 'light'], [1280, 'dark']]) {
  test(`a finished run is shown whole at ${width} pixels, ${scheme}, and nothing overflows`, options, async () => {
    const { url } = await serve(journal());
    const { page, faults } = await open(url, width, scheme);
    await shows(page, 12);
    await page.waitForFunction(() => document.getElementById('state').textContent === 'done');
    const trials = await page.locator('#trials tbody tr').allInnerTexts();
    assert.equal(trials.length, 12);
    assert.match(trials.at(-1), /^1\. mqtt deliver qos=2 on reference\s+done, L17\s+400\/s/);
    const ledger = await page.locator('#ledger tbody tr').allInnerTexts();
    assert.ok(ledger.some((row) => /^sent\s+720\s+100 %/.test(row)), ledger.join('; '));
    assert.ok(ledger.some((row) => /^lost\s+0\s+0 %/.test(row)), ledger.join('; '));
    const thresholds = await page.locator('#thresholds tbody tr').allInnerTexts();
    assert.match(thresholds[0], /^p50 < 1ms\s+✗ fails\s+10\s+2\s+0/);
    assert.match(thresholds[1], /no figure yet\s+0\s+0\s+12/);
    assert.match(thresholds[2], /✓ holds\s+12\s+0\s+0/);
    assert.equal(await page.locator('.picture svg').count(), 2);
    const [inner, scrolled] = await page.evaluate(() =>
      [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
    assert.equal(scrolled, inner, 'the page is no wider than the screen');
    const paint = await page.$eval('body', (body) => getComputedStyle(body).backgroundColor);
    assert.equal(paint === 'rgb(255, 255, 255)', scheme === 'light', paint);
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test('the percentile changes tiles, table and chart', options, async () => {
  const { url } = await serve(journal());
  const { page, faults } = await open(url);
  await shows(page, 12);
  await page.selectOption('#percentile', 'p95');
  assert.match(await page.locator('#tiles').innerText(), /response time p95/);
  assert.match(await page.locator('#trials thead').innerText(), /time p95/);
  // p95 of the first trial, from its result: 6.96 ms; its intervals have p50 and p99 only.
  assert.match(await page.locator('#trials tbody tr').last().innerText(), /6\.96 ms/);
  assert.match(await page.locator('#course-note').innerText(), /No p95 is known of these intervals/);
  await page.selectOption('#percentile', 'p50');
  assert.match(await page.getAttribute('#time', 'aria-label'), /Last: response time p50 [\d.]+ (µs|ms)/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('everything works with the keyboard alone, and has a name', options, async () => {
  const { url } = await serve(journal());
  const { page, faults } = await open(url);
  await shows(page, 12);
  const reach = async (id) => {
    for (let steps = 0; steps < 30; steps += 1) {
      await page.keyboard.press('Tab');
      if ((await page.evaluate(() => document.activeElement.id)) === id) return;
    }
    assert.fail(`${id} is not reached`);
  };
  await reach('pause');
  const outline = await page.$eval('#pause', (button) => getComputedStyle(button).outlineStyle);
  assert.notEqual(outline, 'none', 'the focus is visible');
  await page.keyboard.press('Space');
  assert.equal(await page.getAttribute('#pause', 'aria-pressed'), 'true');
  await page.keyboard.press('Enter');
  assert.equal(await page.getAttribute('#pause', 'aria-pressed'), 'false');
  await reach('previous');
  for (let back = 0; back < 3; back += 1) await page.keyboard.press('Enter');
  assert.match(await page.locator('#chosen').innerText(), /^Trial 9: /);
  assert.equal(await page.getAttribute('#follow', 'aria-pressed'), 'false');
  await reach('follow');
  await page.keyboard.press('Enter');
  assert.match(await page.locator('#chosen').innerText(), /^Trial 12: /);
  const unnamed = await page.$$eval('button, a, select, table, [role]', (all) => all.filter((each) =>
    !(each.getAttribute('aria-label') || each.innerText?.trim() || each.labels?.length || each.caption)).map((each) => each.outerHTML));
  assert.deepEqual(unnamed, []);
  const scopes = await page.$$eval('th:not([scope])', (all) => all.length);
  assert.equal(scopes, 0);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a run is followed, its changes are announced, and a pause misses nothing', options, async () => {
  const content = journal();
  const ends = content.flatMap((line, index) => (line.includes('"event":"trial_finished"') ? [index + 1] : []));
  const { url, path } = await serve(content.slice(0, ends[0]));
  const { page, faults } = await open(url);
  await shows(page, 1);
  appendFileSync(path, `${content.slice(ends[0], ends[1]).join('\n')}\n`);
  await shows(page, 2);
  await page.waitForFunction(() => document.getElementById('said').textContent.includes('2 trials done'));
  await page.click('#pause');
  appendFileSync(path, `${content.slice(ends[1]).join('\n')}\n`);
  await page.waitForFunction(() => document.getElementById('standing').textContent.includes('12 trials'));
  assert.equal(await page.locator('#trials tbody tr').count(), 2, 'the display stands still');
  await page.click('#pause');
  await shows(page, 12);
  rmSync(path);
  await page.waitForFunction(() => document.getElementById('state').textContent === 'lost');
  assert.match(await page.locator('#standing').innerText(), /removed while it was watched/);
  assert.equal(await page.locator('#trials tbody tr').count(), 12, 'what was read stays');
  assert.deepEqual(faults, []);
  await page.close();
});

test('a time in which nothing arrives is shown as 0, not as a gap', options, async () => {
  const content = journal();
  const at = content.findIndex((line) => line.includes('"event":"interval"'));
  const interval = JSON.parse(content[at]);
  const stall = { ...interval, at_ns: 2 * interval.at_ns, acknowledged: 0, delivered: 0, response_time_ns_p50: undefined };
  const { url } = await serve([...content.slice(0, at + 1), JSON.stringify(stall)]);
  const { page, faults } = await open(url);
  await shows(page, 1);
  assert.match(await page.getAttribute('#rate', 'aria-label'), /confirmed 0\/s, delivered 0\/s/);
  assert.match(await page.locator('#tiles').innerText(), /delivered\s+0\/s/);
  assert.equal(await page.locator('#state').innerText(), 'ended early');
  assert.deepEqual(faults, []);
  await page.close();
});

test('trials of a search have their loads in their names', options, async () => {
  const search = join(RUN, '../../limit/2026-11-23T03-55-44-limit/journal.jsonl');
  const { url } = await serve(readFileSync(search, 'utf8').trimEnd().split('\n'));
  const { page, faults } = await open(url);
  await page.waitForFunction(() => document.getElementById('state').textContent === 'done');
  const names = await page.locator('#trials tbody tr').allInnerTexts();
  assert.ok(names.some((name) => name.includes('tcp rate=1000/s on reference')), names.join());
  assert.ok(!names.some((name) => name.includes('duration=')), names.join());
  assert.deepEqual(faults, []);
  await page.close();
});

test('the page of a study goes on to its next run', options, async () => {
  const study = mkdtempSync(join(folder, 'study-'));
  writeFileSync(join(study, 'study.json'), '{}');
  const add = (name, content) => {
    mkdirSync(join(study, name));
    writeFileSync(join(study, name, 'journal.jsonl'), `${content.join('\n')}\n`);
  };
  add('published', lines);
  const { url } = await serveFolder(study);
  const { page, faults } = await open(url);
  await shows(page, 12);
  assert.match(await page.innerText('#facts'), /study-\w+, run published ·/);
  await page.click('#previous');
  add('right', lines.slice(0, lines.findIndex((line) => line.includes('trial_finished')) + 1));
  await shows(page, 1);
  assert.match(await page.innerText('#facts'), /, run right ·/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('one click saves the report', options, async () => {
  const { url } = await serve(journal());
  const { page, faults } = await open(url);
  await shows(page, 12);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
  assert.equal(download.suggestedFilename(), 'report-2026-11-23T03-55-39-compare.html');
  assert.match(readFileSync(await download.path(), 'utf8'), /^<!doctype html>/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a text of the journal is never read as HTML', options, async () => {
  const hostile = '<img src=x onerror="document.title=1">';
  const content = journal().map((line) => line.replaceAll('p95 needs 72 samples', JSON.stringify(hostile).slice(1, -1)));
  const { url } = await serve(content);
  const { page, faults } = await open(url);
  await shows(page, 12);
  assert.ok((await page.locator('#warning-list').innerText()).includes(hostile));
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(faults, []);
  await page.close();
});
