// Shows the state of the run. What is shown depends only on the events so far and on the reader's
// choices: the percentile, the trial, the pause.
import { rates, times } from './pictures.js';
import {
  COURSES_MAX, JOURNAL_EVENTS, PERCENTILES, SCHEMA, add, course, empty, lastInterval, names, second, timeOf,
} from './state.js';

const { figure, threeDigits, count, bytes, share } = WeighCharts;
const ROWS_MAX = 100;
// GENERATOR_FULL_PERCENT of crates/model/src/binding.rs.
const FULL_PERCENT = 95;
const ERASE = /[?&]token=[0-9a-f]+/;

const byId = (id) => document.getElementById(id);
const state = empty();
const view = { percentile: 'p99', place: null, isPaused: false, isConnected: false };
const dark = matchMedia('(prefers-color-scheme: dark)');
const charts = new Map();
let isAsked = false;

// The cookie has the token from now on: it need not be in the history of the browser.
if (ERASE.test(location.search)) history.replaceState(null, '', location.pathname);

const element = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
/** Sets a text only if it changes: a screen reader reads what is set. */
const say = (id, text) => {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
};
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? '' : 's'}`;
const per = (value) => (value === null || value === undefined ? '–' : `${threeDigits(value)}/s`);
const time = (ns) => figure(ns ?? null, 'ns');
const percent = (value) => (value === null || value === undefined ? '–' : `${threeDigits(value)} %`);

/** Time left in words: 45 s, 3 min, 2 h 5 min. */
function span(seconds) {
  if (seconds < 100) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
const range = (low, high, words) => (words(low) === words(high) ? words(high) : `${words(low)} to ${words(high)}`);

/** The trial whose course is shown: the chosen one, else the current one, else the last. */
const shownPlace = () => view.place ?? state.current ?? (state.trials.length > 0 ? state.trials.length - 1 : null);

function kind() {
  if (state.lost) return ['bad', 'lost'];
  if (!state.run) return state.isOver ? ['bad', 'no run'] : ['', view.isConnected ? 'waiting' : 'connecting'];
  if (state.outcome) return [state.outcome === 'done' ? '' : 'bad', state.outcome];
  if (state.isOver) return ['bad', 'ended early'];
  if (!view.isConnected) return ['bad', 'not connected'];
  return ['running', view.isPaused ? 'running, display paused' : 'running'];
}

function showHead() {
  const { run } = state;
  if (run) {
    say('title', run.name || run.id);
    const id = state.study ? `${state.study.id}, run ${state.study.run}` : run.id;
    say('facts', `${id} · started ${run.started} · weigh ${run.version} · ${plural(run.cores, 'core')}`);
    document.title = `${run.name || run.id} – weigh watch`;
  }
  const [sort, word] = kind();
  say('state', word);
  byId('state').dataset.kind = sort;
  say('standing', standing());
}

function standing() {
  if (state.lost) return state.lost;
  if (state.run && state.run.schema !== SCHEMA) {
    return `The journal has the format ${state.run.schema}, which this version cannot read whole.`;
  }
  const done = state.trials.filter(({ outcome }) => outcome === 'done').length;
  const now = second(state);
  const ends = state.outcome ?? (state.isOver && 'ended');
  if (ends === 'ended' && state.run) {
    return `The process that recorded it ended without a result. ${plural(done, 'trial')} done. Resume with: weigh run --resume ${state.run.id}`;
  }
  if (ends || !now) return state.trials.length === 0 ? '' : `${plural(done, 'trial')} done`;
  const { number, of, left_ns: left, passed_ns: passed, name } = now.standing;
  const all = of[1] > 0 ? ` of ${range(of[0], of[1], count)}` : '';
  const rest = left.map((ns) => Math.max(0, ns - passed) / 1e9);
  const words = left[1] > 0 ? `, ${range(rest[0], rest[1], span)} left` : '';
  const opening = now.opening ? `, opening connections: ${count(now.opening[0])} of ${count(now.opening[1])}` : '';
  return `Trial ${count(number)}${all}: ${name}${opening}${words}`;
}

/** Whether the results may be used: what makes them invalid first. */
function showVerdict() {
  const lines = [];
  const invalid = state.warnings.filter(({ severity }) => severity === 'invalid');
  for (const { code, text, trials } of invalid) lines.push(['bad', `${code}, in ${plural(trials, 'trial')}: ${text}`]);
  const place = shownPlace();
  const point = place === null ? null : pointNow(course(state, place));
  const busy = point?.generatorCpu ?? null;
  if (busy !== null) {
    lines.push(busy >= FULL_PERCENT
      ? ['bad', `The generator is the limit: its busiest thread uses ${percent(busy)} of a core, so these figures are its own.`]
      : ['good', `The generator is not the limit: its busiest thread uses ${percent(busy)} of a core.`]);
  }
  if (point && point.lagP99 !== null) {
    const p99 = point.times[4];
    lines.push(p99 !== null && point.lagP99 > p99 / 2
      ? ['bad', `Send lag p99 is ${time(point.lagP99)}, more than half of the response time p99 of ${time(p99)}.`]
      : ['good', `Send lag p99 is ${time(point.lagP99)}.`]);
  }
  if (state.unreadable > 0) lines.push(['bad', `${plural(state.unreadable, 'line')} of the journal cannot be read.`]);
  if (invalid.length === 0) {
    const others = state.warnings.length;
    lines.unshift(['good', others === 0 ? 'No warnings so far.' : `No warning makes a result invalid; ${plural(others, 'other warning')} below.`]);
  }
  byId('verdict').replaceChildren(...lines.map(([sort, text]) =>
    element('li', { 'data-kind': sort, 'data-sign': sort === 'good' ? '✓' : '✗' }, text)));
}

/** The last point of the load: after it only answers are awaited. */
const pointNow = (points) => points.findLast(({ isDraining }) => !isDraining) ?? points.at(-1) ?? null;

/** What the tiles are of. */
function showWhen(place, points) {
  if (place === null) return say('when', '');
  const point = pointNow(points);
  const isNow = place === state.current && second(state)?.counts;
  const words = point === null ? 'nothing is known yet' : isNow ? 'the last second'
    : `the last interval of the load, ${threeDigits(point.length)} s long`;
  return say('when', `Trial ${count(place + 1)}: ${words}.`);
}

function showTiles() {
  const place = shownPlace();
  const points = place === null ? [] : course(state, place);
  const point = pointNow(points) ?? {};
  const interval = place === null ? {} : lastInterval(state, place) ?? {};
  const { resources } = state;
  showWhen(place, points);
  const index = PERCENTILES.indexOf(view.percentile);
  const lag = point.lag ? point.lag[index] : view.percentile === 'p99' ? point.lagP99 : null;
  const of = (used, most) => (most ? `of ${count(most)}, ${share(used, most)}` : '');
  const tiles = [
    ['offered', per(point.offered)],
    ['sent', per(point.sent)],
    ['delivered', per(points.some(({ delivered }) => delivered) ? point.delivered : null), point.acknowledged ? `confirmed ${per(point.acknowledged)}` : ''],
    ['response time p50', time(point.times?.[0])],
    [`response time ${view.percentile}`, time(point.times?.[index]), `send lag ${time(lag)}`],
    ['target CPU', percent(point.targetCpu ?? interval.targetCpu), 'of its cores'],
    ['target memory', figure(point.targetMemory ?? interval.targetMemory ?? null, 'B')],
    ['generator CPU', percent(point.generatorCpu), 'busiest thread, of a core'],
    ['generator memory', resources?.memory_bytes ? bytes(resources.memory_bytes) : '–',
      resources?.cpu_percent == null ? '' : `process: ${percent(resources.cpu_percent)} of a core`],
    ['open files', resources?.open_files ? count(resources.open_files) : '–',
      resources?.open_files ? of(resources.open_files, resources.open_files_max) : ''],
    ['connections', point.connections === undefined ? '–' : count(point.connections),
      resources?.ports_max && point.connections ? `of ${count(resources.ports_max)} ports, ${share(point.connections, resources.ports_max)}` : ''],
  ];
  byId('tiles').replaceChildren(...tiles.map(([name, value, more]) => element('div', {},
    element('dt', {}, name), element('dd', {}, value, ...(more ? [element('small', {}, more)] : [])))));
}

function draw(id, picture, isEmpty) {
  const place = byId(id);
  charts.get(id)?.dispose();
  charts.delete(id);
  if (isEmpty) {
    place.style.height = '';
    place.textContent = 'No intervals are known of this trial.';
    place.setAttribute('aria-label', `${picture.title}: no intervals`);
    return;
  }
  place.textContent = '';
  charts.set(id, WeighCharts.draw(place, picture, { cells: [], metrics: {}, names: [] }, dark.matches ? 'dark' : 'light'));
  const last = picture.option.series.map(({ name, data }) => {
    const value = data.findLast(([, each]) => each !== null)?.[1] ?? null;
    return `${name} ${figure(value, id === 'rate' ? '1/s' : 'ns')}`;
  });
  place.setAttribute('aria-label', `${picture.title}, ${plural(picture.option.series[0]?.data.length ?? 0, 'point')}. Last: ${last.join(', ')}`);
}

function showCourse(labels) {
  const place = shownPlace();
  const trial = state.trials[place];
  byId('previous').disabled = place === null || place === 0;
  byId('next').disabled = place === null || place + 1 >= state.trials.length;
  byId('follow').setAttribute('aria-pressed', String(view.place === null));
  // The change of the trial in progress is announced already.
  byId('chosen').setAttribute('aria-live', view.place === null ? 'off' : 'polite');
  say('chosen', trial ? `Trial ${count(place + 1)}: ${labels[place]}, repetition ${trial.repetition + 1}` : 'No trial has begun.');
  const points = place === null ? [] : course(state, place);
  const limits = (state.run?.limits ?? []).filter(({ limit }) => limit !== null);
  draw('rate', rates(points, limits), points.length === 0);
  const picture = times(points, view.percentile, limits);
  draw('time', picture, points.length === 0);
  const notes = [];
  if (points.length > 0 && !picture.option.series.some(({ name }) => name === `response time ${view.percentile}`)) {
    notes.push(`No ${view.percentile} is known of these intervals: the journal has p50 and p99, where there were enough messages. The report has all percentiles.`);
  }
  if (points.some(({ isWarmup }) => isWarmup)) notes.push('Shaded at the left: warm-up, excluded from the results.');
  if (picture.isDrained) notes.push('Shaded at the right: only answers and deliveries were awaited.');
  if (place !== null && points.length === 0 && state.trials.length > COURSES_MAX) {
    notes.push(`Courses of the last ${COURSES_MAX} trials are kept here; the report has all.`);
  }
  say('course-note', notes.join(' '));
}

function showThresholds() {
  const { limits = [], counts = [] } = state.run ?? {};
  byId('thresholds').hidden = limits.length === 0;
  const rows = limits.map(({ text }, index) => {
    const [holds, fails, unknown] = counts[index];
    const [sort, word] = fails > 0 ? ['bad', '✗ fails'] : holds > 0 ? ['good', '✓ holds'] : ['', 'no figure yet'];
    return element('tr', {}, element('th', { scope: 'row' }, text), element('td', { class: `text ${sort}` }, word),
      ...[holds, fails, unknown].map((number) => element('td', {}, count(number))));
  });
  byId('thresholds').querySelector('tbody').replaceChildren(...rows);
}

function outcomeOf(trial) {
  if (trial.outcome === 'failed') return ['bad', `failed: ${trial.error}`];
  if (trial.outcome === 'begun') return ['', trial === state.trials[state.current] && !state.isOver ? 'running' : 'ended early'];
  if (trial.isInvalid) return ['bad', `invalid: ${trial.codes.join(', ')}`];
  return ['', trial.codes.length > 0 ? `done, ${[...new Set(trial.codes)].join(', ')}` : 'done'];
}

function showTrials(labels) {
  const first = Math.max(0, state.trials.length - ROWS_MAX);
  const hidden = first > 0 ? ` The ${count(first)} before these are in the report.` : '';
  say('trials-caption', `Results of finished trials, the newest first.${hidden}`);
  say('chosen-time', `response\ntime ${view.percentile}`);
  say('chosen-lag', `send lag\n${view.percentile}`);
  const word = view.percentile === 'p99.9' ? 'p999' : view.percentile;
  const rows = state.trials.slice(first).map((trial, index) => {
    const place = first + index;
    const { metrics = {}, ledger } = trial;
    const [sort, text] = outcomeOf(trial);
    const per = metrics['target_cpu_us_per_message'];
    const cells = [
      figure(metrics.throughput_out_per_s ?? null, '1/s'), cell(timeOf(metrics, view.percentile), ledger),
      figure(metrics[`send_lag_ns.${word}`] ?? null, 'ns'), ledger?.lost == null ? '–' : count(ledger.lost),
      figure(per ?? null, 'us/message'),
    ];
    const row = element('tr', place === shownPlace() ? { 'aria-current': 'true' } : {},
      element('th', { scope: 'row' }, `${count(place + 1)}. ${labels[place]}`), element('td', { class: `text ${sort}` }, text),
      ...cells.map((own) => element('td', {}, own)));
    return row;
  });
  byId('trials').querySelector('tbody').replaceChildren(...rows.reverse());
}

/** A quantile in the lost share is infinite, and null in the journal. */
const cell = (value, ledger) => (value === null && ledger ? '∞ (lost)' : figure(value ?? null, 'ns'));

const TERMS = [
  ['scheduled', 'scheduled'], ['not_sent', 'not sent'], ['sent', 'sent'], ['acknowledged', 'confirmed'],
  ['delivered', 'delivered in time'], ['late', 'delivered late'], ['lost', 'lost'], ['duplicates', 'duplicates'],
  ['reordered', 'out of order'], ['corrupt', 'corrupt'], ['foreign', 'foreign'],
];
const ALWAYS = ['scheduled', 'sent', 'delivered', 'lost'];

function showLedger() {
  const { ledger } = state;
  const row = (name, value, isCause) => element('tr', isCause ? { class: 'phase' } : {},
    element('th', { scope: 'row' }, isCause ? `cause: ${name}` : name),
    element('td', {}, value === null || value === undefined ? 'not observed' : count(value)),
    element('td', {}, value > 0 ? share(value, ledger.scheduled) : value === 0 ? '0 %' : '–'));
  const rows = [];
  for (const [term, name] of ledger ? TERMS : []) {
    if (!ALWAYS.includes(term) && !ledger[term]) continue;
    rows.push(row(name, ledger[term]));
    const causes = { not_sent: ledger.not_sent_causes, lost: ledger.causes }[term] ?? {};
    for (const [cause, value] of Object.entries(causes)) rows.push(row(cause.replaceAll('_', ' '), value, true));
  }
  if (rows.length === 0) {
    rows.push(element('tr', {}, element('td', { colspan: '3', class: 'text' }, 'No trial has a result yet.')));
  }
  byId('ledger').querySelector('tbody').replaceChildren(...rows);
}

function showWarnings(labels) {
  const list = state.warnings.flatMap(({ code, severity, text, advice, place, trials }) => [
    element('dt', severity === 'invalid' ? { class: 'bad' } : {}, `${severity === 'invalid' ? 'INVALID ' : ''}${code}, in ${plural(trials, 'trial')}`),
    element('dd', {}, element('p', {}, `${text} (trial ${count(place + 1)}: ${labels[place]})`), element('p', { class: 'note' }, `help: ${advice}`)),
  ]);
  byId('warning-list').replaceChildren(...list);
  const notes = [...state.notes].reverse().map((text) => element('li', {}, text));
  if (list.length + notes.length === 0) notes.push(element('li', {}, 'None so far.'));
  byId('note-list').replaceChildren(...notes);
}

function show() {
  isAsked = false;
  const labels = names(state);
  showHead();
  if (view.isPaused) return;
  showVerdict();
  showTiles();
  showCourse(labels);
  showThresholds();
  showTrials(labels);
  showLedger();
  showWarnings(labels);
  document.documentElement.dataset.shown = String(state.trials.length);
}

/** Shows once what many events changed. A page that is not seen is drawn when it is. */
function ask() {
  if (isAsked) return;
  isAsked = true;
  setTimeout(() => (document.hidden ? (isAsked = false) : show()), 200);
}

let spoken = { trials: 0, warnings: 0, word: '' };
/** Speaks what is new: another trial, another warning, the end. At most every few seconds. */
function speak() {
  const [, word] = kind();
  const words = [];
  if (state.warnings.length > spoken.warnings) {
    const { code, severity, text } = state.warnings.at(-1);
    words.push(`New warning ${severity === 'invalid' ? 'INVALID ' : ''}${code}: ${text}.`);
  }
  if (state.trials.length !== spoken.trials || word !== spoken.word) words.push(`${word}. ${standing()}`);
  spoken = { trials: state.trials.length, warnings: state.warnings.length, word };
  if (words.length > 0 && !view.isPaused) say('said', words.join(' '));
}
setInterval(speak, 3000);

function choose(place) {
  view.place = place;
  show();
}
byId('previous').addEventListener('click', () => choose(shownPlace() - 1));
byId('next').addEventListener('click', () => choose(shownPlace() + 1));
byId('follow').addEventListener('click', () => choose(view.place === null ? shownPlace() : null));
byId('pause').addEventListener('click', ({ target }) => {
  view.isPaused = !view.isPaused;
  target.setAttribute('aria-pressed', String(view.isPaused));
  show();
});
for (const name of PERCENTILES) byId('percentile').append(element('option', { value: name }, name));
byId('percentile').value = view.percentile;
byId('percentile').addEventListener('change', ({ target }) => {
  view.percentile = target.value;
  show();
});
dark.addEventListener('change', show);
addEventListener('resize', ask);
document.addEventListener('visibilitychange', ask);

const events = new EventSource('events');
for (const name of [...JOURNAL_EVENTS, 'shown', 'second', 'resources', 'ended', 'lost']) {
  events.addEventListener(name, ({ data }) => {
    add(state, name, JSON.parse(data));
    if (name === 'shown') view.place = null;
    if (name === 'lost') events.close();
    ask();
  });
}
events.onopen = () => {
  view.isConnected = true;
  ask();
};
// The browser connects again by itself, unless the server refused it.
events.onerror = () => {
  view.isConnected = false;
  if (events.readyState === EventSource.CLOSED && !state.lost) {
    state.lost = 'The server refused the connection. Load this page again, with the URL that weigh watch printed.';
  }
  ask();
};
show();
