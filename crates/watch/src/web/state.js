// What is known of a run, computed from its events alone: a late browser, a reconnected one and a
// replay of a finished run come to the same state. Its size is bounded.

/** Points of a course that are kept. */
export const POINTS_MAX = 600;
/** Trials whose courses are kept; the report has all. */
export const COURSES_MAX = 64;
/** Notes and warnings that are kept. */
export const NOTES_MAX = 50;

/** Percentiles that can be chosen, and their places in a live second. */
export const PERCENTILES = ['p50', 'p75', 'p90', 'p95', 'p99', 'p99.9'];

/** Events of the journal that change what is shown. */
export const JOURNAL_EVENTS = [
  'run_started', 'trial_started', 'interval', 'trial_finished', 'trial_failed', 'axis_ended',
  'case_settled', 'budget_spent', 'run_resumed', 'run_finished', 'unreadable',
];

export const SCHEMA = 'weigh/journal/1';

export const empty = () => ({
  run: null, trials: [], places: new Map(), courses: new Map(), current: null, seconds: [],
  resources: null, ledger: null, notes: [], warnings: [], outcome: null, unreadable: 0,
  isOver: false, lost: null, study: null,
});

/** Adds an event to a state. */
export function add(state, name, data) {
  const handler = HANDLERS[name];
  if (!handler) return;
  if (JOURNAL_EVENTS.includes(name)) state.isOver = false;
  handler(state, data);
}

const HANDLERS = {
  shown(state, { study, run }) {
    if (state.study?.run === run) return;
    Object.assign(state, empty(), { study: { id: study, run } });
  },
  run_started(state, { id, started, version, schema, plan, host, limits }) {
    if (state.run) return;
    state.run = {
      id, started, version, schema, name: plan.name, cores: host.cores, cases: plan.case ?? [],
      limits: limits ?? [], counts: (limits ?? []).map(() => [0, 0, 0]),
    };
  },
  trial_started(state, { trial, point, repetition, offered_per_s: offered }) {
    const again = state.places.get(trial);
    const place = again ?? state.trials.length;
    state.trials[place] = { id: trial, point, repetition, offered: offered ?? null, outcome: 'begun' };
    state.places.set(trial, place);
    if (again !== undefined) recount(state);
    state.outcome = null;
    state.current = place;
    state.courses.delete(place);
    state.courses.set(place, []);
    if (state.courses.size > COURSES_MAX) state.courses.delete(state.courses.keys().next().value);
  },
  interval(state, interval) {
    const place = state.places.get(interval.trial);
    const course = state.courses.get(place);
    if (course) {
      course.push(pointOf(interval, state.trials[place].offered));
      if (course.length > POINTS_MAX) course.shift();
    }
  },
  trial_finished(state, { trial, metrics, ledger, doubts, held, target }) {
    const place = state.places.get(trial);
    if (place === undefined) return;
    Object.assign(state.trials[place], {
      outcome: 'done', ledger, target, held: held ?? [], metrics: headline(metrics),
      isInvalid: doubts.some(({ severity }) => severity === 'invalid'), codes: doubts.map(({ code }) => code),
    });
    leave(state, place);
    count(state, state.trials[place]);
    for (const warning of doubts) warn(state, place, warning);
  },
  trial_failed(state, { trial, error }) {
    const place = state.places.get(trial);
    if (place !== undefined) {
      Object.assign(state.trials[place], { outcome: 'failed', error });
      leave(state, place);
    }
    note(state, `A trial failed: ${error}`);
  },
  axis_ended: (state, { axis, at, condition, figure }) => note(state, `${axis} ends at ${at}: ${condition} (${figure})`),
  case_settled: (state, { repetitions, is_precise: precise }) => note(state, precise
    ? `A case is precise enough after ${repetitions} repetitions.`
    : `A case has its most repetitions: ${repetitions}.`),
  budget_spent: (state, { left }) => note(state, `The time budget is used: ${left} trials are not run.`),
  run_resumed(state, { at }) {
    state.outcome = null;
    note(state, `Resumed at ${at}.`);
  },
  run_finished(state, { outcome }) {
    state.outcome = outcome;
    state.current = null;
  },
  unreadable(state) { state.unreadable += 1; },
  second(state, second) {
    const last = state.seconds.at(-1);
    // A new file begins again at 1; a reconnected browser gets the seconds that it has once more.
    if (last && second.number <= last.number) {
      if (second.unix_ms <= last.unix_ms) return;
      state.seconds = [];
    }
    state.seconds.push(second);
    if (state.seconds.length > POINTS_MAX) state.seconds.shift();
  },
  resources(state, own) {
    const before = state.resources;
    const passed = before && before.cpu_s !== null ? (own.unix_ms - before.unix_ms) / 1e3 : 0;
    const percent = passed > 0 && own.cpu_s !== null ? (100 * (own.cpu_s - before.cpu_s)) / passed : null;
    state.resources = { ...own, cpu_percent: percent };
  },
  ended(state) {
    state.isOver = true;
    state.resources = null;
  },
  lost(state, text) { state.lost = text; },
};

/** A point of a course: rates per second, times in nanoseconds, NaN-free. */
function pointOf(interval, offered, quantiles) {
  const length = (interval.length_ns ?? 0) / 1e9;
  const rate = (number) => (length > 0 ? number / length : null);
  const times = quantiles?.response_ns
    ?? [interval.response_time_ns_p50, null, null, null, interval.response_time_ns_p99, null];
  return {
    at: interval.at_ns / 1e9, length, isWarmup: interval.warmup, isDraining: interval.draining ?? false,
    offered: interval.draining ? null : offered, sent: rate(interval.sent), acknowledged: rate(interval.acknowledged),
    delivered: rate(interval.delivered), errors: interval.errors, connections: interval.connections,
    times: times.map((value) => value ?? null), lag: quantiles?.send_lag_ns ?? null,
    lagP99: quantiles?.send_lag_ns[4] ?? interval.send_lag_ns_p99 ?? null,
    targetCpu: interval.target_cpu_percent ?? null, targetMemory: interval.target_memory_bytes ?? null,
    generatorCpu: interval.generator_cpu_percent ?? null,
  };
}

/** The metrics that the page shows of a trial: it may have hundreds. */
function headline(metrics) {
  const kept = (name) => /^(response_time_ns|delivery_time_ns|send_lag_ns)\.p/.test(name)
    || ['throughput_out_per_s', 'target_cpu_us_per_message', 'target_memory_bytes.max', 'generator_cpu_percent.max'].includes(name);
  return Object.fromEntries(Object.entries(metrics).filter(([name]) => kept(name)));
}

function leave(state, place) {
  if (state.current === place) state.current = null;
}

/** Adds a result to the ledger of the run and to the counts of its thresholds. */
function count(state, trial) {
  state.ledger = state.ledger ? sum(state.ledger, trial.ledger) : trial.ledger;
  state.run?.counts.forEach((counts, index) => {
    const held = trial.held[index] ?? null;
    counts[held === null ? 2 : held ? 0 : 1] += 1;
  });
}

/** After a trial that had a result was done again. */
function recount(state) {
  state.ledger = null;
  state.run?.counts.forEach((counts) => counts.fill(0));
  for (const trial of state.trials) if (trial.outcome === 'done') count(state, trial);
}

/** The sum of two ledgers; what is unknown in one is unknown in the sum. */
function sum(one, other) {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  if (one === null || other === null || typeof one !== typeof other) return null;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...keys].map((key) => [key,
    key in one && key in other ? sum(one[key], other[key]) : one[key] ?? other[key]]));
}

function note(state, text) {
  state.notes.push(text);
  if (state.notes.length > NOTES_MAX) state.notes.shift();
}

/** Equal warnings are one, with the number of trials that have it. */
function warn(state, place, { code, severity, text, advice }) {
  const same = state.warnings.find((own) => own.code === code && own.severity === severity);
  if (same) {
    same.trials += 1;
    Object.assign(same, { text, advice, place });
    return;
  }
  state.warnings.push({ code, severity, text, advice, place, trials: 1 });
  if (state.warnings.length > NOTES_MAX) state.warnings.shift();
}

/** The course of a trial: its seconds while it runs and has some, else its intervals. */
export function course(state, place) {
  const last = state.seconds.at(-1);
  if (place === state.current && last?.counts) {
    return state.seconds.filter((second) => second.counts && second.standing.number === last.standing.number)
      .map(({ counts, quantiles, standing }) => pointOf(counts, standing.offered_per_s ?? null, quantiles));
  }
  return state.courses.get(place) ?? [];
}

/** The last live second, unless the run is over. */
export const second = (state) => (state.isOver || state.lost ? null : state.seconds.at(-1) ?? null);

/** The last interval that the journal has of a trial: it has the target's processor and memory. */
export const lastInterval = (state, place) => state.courses.get(place)?.at(-1) ?? null;

/** The time of a trial's result: of the response, or of the delivery if nothing is confirmed. */
export function timeOf(metrics, percentile) {
  const word = percentile === 'p99.9' ? 'p999' : percentile;
  return metrics[`response_time_ns.${word}`] ?? metrics[`delivery_time_ns.${word}`];
}

/**
 * Names of all trials, as the tables of `weigh` have them: protocol, pattern if it varies, the
 * protocol's own keys, others that vary within the protocol, and the target. In a search no trial
 * is at a point of the plan, so only trials are compared (crates/watch/src/state/names.rs).
 */
export function names(state) {
  const cases = state.run?.cases ?? [];
  const begun = state.trials.map(({ point }) => point);
  const known = new Set(cases.map(sorted));
  const points = begun.every((point) => known.has(sorted(point))) ? cases : begun;
  const plain = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
  const varied = new Set();
  for (const key of new Set(points.flatMap(Object.keys))) {
    const first = new Map();
    for (const point of points) {
      const among = key === PATTERN ? '' : plain(point.protocol ?? '');
      const value = JSON.stringify(point[key]);
      if (!first.has(among)) first.set(among, value);
      else if (first.get(among) !== value) varied.add(key);
    }
  }
  const name = (point) => {
    const protocol = plain(point.protocol ?? '?');
    const own = `${protocol}.`;
    const parts = [protocol];
    if (varied.has(PATTERN) && point[PATTERN] !== undefined) parts.push(plain(point[PATTERN]));
    for (const key of Object.keys(point).sort()) {
      if (['protocol', 'target', PATTERN].includes(key)) continue;
      if (!key.startsWith(own) && !varied.has(key)) continue;
      const short = key.startsWith(own) ? key.slice(own.length) : key.replace(/^load\./, '');
      parts.push(`${short}=${plain(point[key])}`);
    }
    return `${parts.join(' ')} on ${plain(point.target ?? 'reference')}`;
  };
  return state.trials.map(({ point }) => name(point));
}

const sorted = (point) => JSON.stringify(Object.entries(point).sort(([one], [other]) => (one < other ? -1 : 1)));

const PATTERN = 'load.pattern';
