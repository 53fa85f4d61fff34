// Options of the two charts, for the report's chart library: the same panels, names and colours as
// its pictures over time (crates/report/src/pictures/over_time.rs).
import { PERCENTILES, POINTS_MAX } from './state.js';

const PANEL = 150;

/** Messages per second. */
export function rates(points, limits) {
  return picture('rate', 'Messages per second', points, '1/s', '@plain', [
    ['offered', '$c7', ({ offered }) => offered],
    ['sent', '$c0', ({ sent, isDraining }) => (isDraining && sent === 0 ? null : sent)],
    ['confirmed', '$c3', ({ acknowledged }) => acknowledged],
    ['delivered', '$c2', ({ delivered }) => delivered],
  ], limits.filter(({ metric }) => metric === 'throughput_out_per_s'));
}

/** The response time at a percentile, and the send lag. */
export function times(points, percentile, limits) {
  const place = PERCENTILES.indexOf(percentile);
  const word = percentile === 'p99.9' ? 'p999' : percentile;
  const own = limits.filter(({ metric }) => TIMES.some((time) => metric === `${time}.${word}`));
  const median = percentile === 'p50' ? [] : [['response time p50', '$c5', (each) => each.times[0]]];
  return picture('time', 'Response time from the intended time, and send lag', points, 'ns', '@nanoseconds', [
    ...median,
    [`response time ${percentile}`, '$c0', (each) => each.times[place]],
    hasLag(points, place) ? [`send lag ${percentile}`, '$c4', ({ lag }) => lag?.[place] ?? null]
      : ['send lag p99', '$c4', ({ lagP99 }) => lagP99],
  ], own);
}

/** True if the course has the send lag at this percentile: intervals have only p99. */
const hasLag = (points, place) => points.some(({ lag }) => (lag?.[place] ?? null) !== null);

/** The headline latency of a condition without a time's name, and the times that it may be of. */
const TIMES = ['response_time_ns', 'delivery_time_ns', 'latency_time_ns'];

function picture(name, title, all, unit, marks, lines, limits) {
  const points = withoutShortEnd(all);
  const end = points.at(-1)?.at ?? 1;
  // Of a longer trial only the last points are known.
  const begin = all.length < POINTS_MAX ? 0 : Math.floor(points[0].at - points[0].length);
  const series = [];
  for (const [line, colour, value] of lines) {
    const data = points.map((each) => [each.at, value(each)]);
    // What a load never has is left out; a time in which nothing arrived is drawn as 0.
    if (data.every(([, each]) => !each)) continue;
    series.push({
      type: 'line', id: `${unit}|${line}`, name: line, color: colour, look: series.length, data,
      // One point makes no line.
      showSymbol: data.length < 3, lineStyle: { width: 2 },
    });
  }
  for (const { text, limit } of limits) {
    series.push({
      type: 'line', id: `${unit}|${text}`, name: `threshold ${text}`, color: '$bad', look: 1,
      data: [[begin, limit], [end, limit]], showSymbol: false, lineStyle: { width: 1.5 },
    });
  }
  const shades = shaded(points, begin);
  if (series.length > 0 && shades.length > 0) {
    series[0].markArea = { silent: true, itemStyle: { color: '$shade' }, data: shades };
  }
  return {
    name, title, isDrained: points.some(({ isDraining }) => isDraining), note: '', height: PANEL + 52, about: {},
    option: {
      grid: [{ top: 24, left: 70, right: 18, height: PANEL }],
      legend: { data: series.map((each) => each.name) },
      tooltip: { trigger: 'axis', formatter: '@moment' },
      xAxis: [{
        type: 'value', min: begin, max: end, splitLine: { show: false }, axisLine: { show: true },
        axisLabel: { formatter: '@seconds' },
      }],
      yAxis: [{ ...scale(series, unit), axisLabel: { formatter: marks } }],
      series,
    },
  };
}

/** A logarithmic scale if times differ much: the response time and a threshold are both seen then. */
function scale(series, unit) {
  const values = series.flatMap(({ data }) => data.map(([, value]) => value)).filter((value) => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return unit === 'ns' && low > 0 && high / low > LOGARITHMIC_FROM
    ? { type: 'log', logBase: 10 } : { type: 'value', min: 0, splitNumber: 3 };
}

const LOGARITHMIC_FROM = 30;

/** Without a moment of waiting for the last answers, which would look as if the rate had fallen. */
function withoutShortEnd(points) {
  const last = points.at(-1);
  const longest = Math.max(0, ...points.map(({ length }) => length));
  return points.length > 1 && last.isDraining && 10 * last.length < 9 * longest ? points.slice(0, -1) : points;
}

/** The warm-up, and the time after the load in which only answers are awaited. */
function shaded(points, begin) {
  const warm = points.filter(({ isWarmup }) => isWarmup).at(-1)?.at;
  const load = points.filter(({ isDraining }) => !isDraining).at(-1)?.at ?? begin;
  const drained = points.filter(({ isDraining }) => isDraining).at(-1)?.at;
  const areas = [];
  if (warm !== undefined) areas.push([{ xAxis: begin }, { xAxis: warm }]);
  if (drained !== undefined) areas.push([{ xAxis: load }, { xAxis: drained }]);
  return areas;
}
