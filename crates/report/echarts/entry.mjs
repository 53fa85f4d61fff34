// What the page and the command line share of drawing: the parts of ECharts in use, the functions
// that options name (`"@time"`), the data that options refer to (`{"$rows": ...}`), two themes.
//
// Options are made in Rust (crates/report/src/pictures). They hold no functions and no colours:
// `"@name"` becomes a function of FUNCTIONS, `"$name"` a colour of the theme, `{"$name": ...}` data
// taken from what all pictures of a run share.
import * as echarts from 'echarts/core';
import { BarChart, CustomChart, LineChart, SankeyChart } from 'echarts/charts';
import {
  GridComponent, LegendPlainComponent, MarkAreaComponent, TitleComponent, TooltipComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';
import { platformApi } from 'zrender/lib/core/platform.js';
import { figure, mark, threeDigits, count, time, bytes, octets, share } from './formats.mjs';
import { drawPacket, packetWords } from './sequence.mjs';

echarts.use([
  BarChart, CustomChart, LineChart, SankeyChart, GridComponent, LegendPlainComponent,
  MarkAreaComponent, TitleComponent, TooltipComponent, SVGRenderer,
]);

// M. Okabe and K. Ito, "Color Universal Design" (2008), told apart with every common kind of colour
// blindness; darkened or lightened for the ground, yellow replaced.
const LIGHT = {
  ink: '#1b1f24', muted: '#5d6670', line: '#c9ced4', grid: '#e8eaed', ground: '#ffffff',
  shade: 'rgba(93,102,112,0.12)', bad: '#b3261e', quiet: '#aab1b9',
  c0: '#0072b2', c1: '#d55e00', c2: '#009e73', c3: '#b3558c', c4: '#b98200', c5: '#3a9bd9',
  c6: '#6b5b95', c7: '#7a7a7a',
};
const DARK = {
  ink: '#e6e8eb', muted: '#a0a8b1', line: '#4a525b', grid: '#2b3138', ground: '#15181c',
  shade: 'rgba(160,168,177,0.14)', bad: '#ff8a80', quiet: '#5d6670',
  c0: '#56b4e9', c1: '#f0843c', c2: '#2fc59a', c3: '#dd91bd', c4: '#e6b43c', c5: '#8ccbf2',
  c6: '#a796d1', c7: '#b0b0b0',
};
const FONT = 'Inter, system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, sans-serif';
// Lines differ without colour too: in print, and in the legend.
const DASHES = ['solid', [9, 4], [2, 3], [12, 4, 2, 4], [5, 2], [14, 3, 2, 3, 2, 3], [1, 5], [18, 5]];
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'emptyCircle', 'emptyRect', 'emptyTriangle', 'pin'];

// Parts of stacked bars differ without colour too: strokes in the colour of the ground, in squares
// of 6 pixels.
const [UP, DOWN] = ['M0 6L6 0M-1 1L1-1M5 7L7 5', 'M0 0L6 6M-1 5L1 7M5-1L7 1'];
const STROKES = ['', UP, 'M1 2h2M4 5h2', DOWN, 'M0 3H6', 'M3 0V6', UP + DOWN];
const pattern = (d, colour) => ({
  svgElement: { tag: 'path', key: 'p', attrs: { d, stroke: colour, 'stroke-width': 1.3, fill: 'none' } },
  svgWidth: 6, svgHeight: 6,
});

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const colours = (theme) => (theme === 'dark' ? DARK : LIGHT);

/** Functions that options name. `about` is what the picture says of itself: its unit and the like. */
function functions(about, shared, palette) {
  const unit = about.unit;
  const name = (cell) => shared.cells[cell].label;
  const between = (low, high, of) => (low === null || low === undefined
    ? 'no interval: fewer than 3 repetitions' : `${figure(low, of)} to ${figure(high, of)}`);
  const head = (text) => `<strong>${escape(text)}</strong>`;
  const pair = (key, text) => `<br>${escape(key)}: <b>${escape(text)}</b>`;
  return {
    mark: (value) => mark(value, unit),
    xmark: (value) => (about.x_unit ? mark(value, about.x_unit) : count(value)),
    count: (value) => count(value),
    plain: (value) => (value >= 1000 ? count(Math.round(value)) : String(Number(value.toPrecision(6)))),
    nanoseconds: (value) => mark(value, 'ns'),
    decade: (value) => mark(10 ** value, 'ns'),
    seconds: (value) => `${threeDigits(value)} s`.replace(/\.?0+ s/, ' s').replace(/^ s/, '0 s'),
    percentile: (x) => `${Number((100 * (1 - 10 ** -x)).toPrecision(6))} %`,
    rows: ({ data }) => {
      const [, value, low, high, cell, ...values] = data;
      return head(name(cell)) + pair('mean', value === null ? '∞ (lost share)' : figure(value, unit))
        + pair('interval at 95 %', between(low, high, unit)) + pair('repetitions', values.length)
        + pair('values', values.map((each) => (each === null ? '∞' : figure(each, unit))).join(', '));
    },
    axis: (points) => {
      const lines = points.filter((point) => point.seriesType === 'line');
      if (lines.length === 0) return '';
      return head(`${about.x}: ${about.x_unit ? figure(lines[0].data[0], about.x_unit) : count(lines[0].data[0])}`)
        + lines.map(({ marker, seriesName, data }) => `<br>${marker}${escape(seriesName)}: `
          + `<b>${figure(data[1], unit)}</b> (${between(data[2], data[3], unit)})`).join('');
    },
    curve: (points) => head(`p${Number((100 * (1 - 10 ** -points[0].data[0])).toPrecision(6))}`)
      + points.map(({ marker, seriesName, data }) => `<br>${marker}${escape(seriesName)}: `
        + `<b>${time(data[1])}</b>`).join(''),
    bins: ({ data }) => head(`${time(10 ** data[0])} to ${time(10 ** data[1])}`)
      + pair('messages', count(data[2])) + pair('share', share(data[2], about.total)),
    moment: (points) => head(`${threeDigits(points[0].data[0])} s`)
      + points.filter((point) => point.data[1] !== null).map(({ marker, seriesName, seriesId, data }) =>
        `<br>${marker}${escape(seriesName)}: <b>${figure(data[1], seriesId.split('|')[0])}</b>`).join(''),
    flow: ({ dataType, data, value, name: node }) => (dataType === 'edge'
      ? head(`${data.source} → ${data.target}`) : head(node))
      + pair('messages', count(value)) + pair('of all scheduled', share(value, about.total)),
    node: ({ name: node, value }) => `{n|${node}}\n${count(value)}`
      + (value === about.total ? '' : ` · ${share(value, about.total)}`),
    stack: (points) => head(points[0].name) + points.map(({ marker, seriesName, value }) =>
      `<br>${marker}${escape(seriesName)}: <b>${figure(value, unit)}</b>`).join(''),
    octets: (value) => (value >= 1e6 ? `${count(value / 1e6)} MB` : value >= 1e4 ? `${count(value / 1e3)} kB` : `${count(value)} B`),
    layers: (points) => {
      const whole = points.find(({ seriesName }) => seriesName === '')?.data.total;
      return head(points[0].name) + points.filter(({ seriesName, value }) => seriesName !== '' && value > 0)
        .map(({ marker, seriesName, value }) => `<br>${marker}${escape(seriesName)}: <b>${octets(value)}</b> `
          + `(${threeDigits((100 * value) / whole)} %)`).join('') + pair('all', octets(whole));
    },
    total: ({ data }) => (data.total >= 100 ? `${count(Math.round(data.total))} B` : `${threeDigits(data.total)} B`),
    packet: ({ dataIndex }) => packetWords(about, dataIndex, head, pair),
    drawPacket: (params, api) => drawPacket(params, api, about, palette, FONT),
    drawRow: (params, api) => drawRow(params, api, shared, palette),
    drawBin: (params, api) => drawBin(params, api),
  };
}

const stroke = (x1, y1, x2, y2, style) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style });

/** A row of a dot picture: every repetition, the mean, the interval. */
function drawRow(params, api, shared, palette) {
  const cell = shared.cells[api.value(4)];
  const colour = palette[`c${cell.colour}`];
  const area = params.coordSys;
  const inside = (x) => Math.min(Math.max(x, area.x), area.x + area.width);
  // On a logarithmic scale nothing stands at zero or below: it is left of everything.
  const at = (value) => {
    const x = api.coord([value, api.value(0)])[0];
    return Number.isFinite(x) ? inside(x) : area.x;
  };
  const y = api.coord([1, api.value(0)])[1];
  const children = [];
  const band = Math.min(api.size([0, 1])[1], 26);
  children.push({
    type: 'rect', shape: { x: area.x, y: y - band / 2, width: area.width, height: band },
    style: { fill: 'rgba(0,0,0,0)' },
  });
  const values = shared.metrics[shared.names[api.value(5)]].rows[api.value(6)][4];
  for (const value of values) {
    if (value === null) continue;
    children.push({ type: 'circle', shape: { cx: at(value), cy: y, r: 3.5 }, style: { fill: colour, opacity: 0.4 } });
  }
  const [mean, low, high] = [api.value(1), api.value(2), api.value(3)];
  if (Number.isFinite(low) && Number.isFinite(high)) {
    children.push(stroke(at(low), y, at(high), y, { stroke: colour, lineWidth: 2 }));
    for (const end of [low, high]) children.push(stroke(at(end), y - 4, at(end), y + 4, { stroke: colour, lineWidth: 2 }));
  }
  if (Number.isFinite(mean)) {
    children.push(stroke(at(mean), y - 8, at(mean), y + 8, { stroke: colour, lineWidth: 3.5 }));
  } else {
    children.push({ type: 'text', style: { x: area.x + area.width, y, text: '∞ lost share', textAlign: 'right', textVerticalAlign: 'middle', fill: palette.bad, fontSize: 11, fontFamily: FONT } });
  }
  return { type: 'group', children };
}

/** The interval at a point of an axis picture. */
function drawBar(params, api) {
  const [low, high] = [api.value(2), api.value(3)];
  if (!Number.isFinite(low) || !Number.isFinite(high)) return null;
  const area = params.coordSys;
  const inside = (y) => Math.min(Math.max(y, area.y), area.y + area.height);
  const [x, top] = api.coord([api.value(0), high]);
  const bottom = api.coord([api.value(0), low])[1];
  const style = { stroke: api.visual('color'), lineWidth: 1.5 };
  const [y1, y2] = [inside(top), inside(Number.isFinite(bottom) ? bottom : area.y + area.height)];
  return {
    type: 'group',
    children: [stroke(x, y1, x, y2, style), stroke(x - 4, y1, x + 4, y1, style), stroke(x - 4, y2, x + 4, y2, style)],
  };
}

/** A bin of a histogram: from, to, count. */
function drawBin(params, api) {
  const [left, top] = api.coord([api.value(0), api.value(2)]);
  const [right, bottom] = api.coord([api.value(1), 0]);
  const width = Math.max(right - left - 1, 1);
  return { type: 'rect', shape: { x: left, y: top, width, height: Math.max(bottom - top, 0) }, style: { fill: api.visual('color') } };
}

/** Data that options refer to. */
const DATA = {
  /** Rows of a dot picture, [metric, first, end]: place, mean, low, high, cell, and where the values are. */
  rows: ([metric, first, end], shared) => shared.metrics[metric].rows.slice(first, end)
    .map(([cell, value, low, high, values], index) => (
      [index, value, low, high, cell, shared.names.indexOf(metric), first + index, ...values])),
  /** A line of an axis picture, [metric, axis, line]: points of x, mean, low, high. */
  line: ([metric, axis, line], shared, palette) => {
    const rows = new Map(shared.metrics[metric].rows.map((row) => [row[0], row]));
    const [name, places] = shared.axes[axis][line];
    const data = places.filter(([, cell]) => rows.has(cell))
      .map(([x, cell]) => [x, ...rows.get(cell).slice(1, 4)]);
    return {
      type: 'line', name, data, color: palette[`c${line % 8}`], look: line, symbolSize: 8,
      hasIntervals: true, encode: { x: 0, y: 1 },
    };
  },
  /** Values at even steps of time, [seconds, [value, ...]]. */
  steps: ([step, values]) => values.map((value, index) => [Number((step * (index + 1)).toPrecision(9)), value]),
  /** A stacked metric, [metric, [cell, ...]]: means. */
  means: ([metric, cells], shared) => {
    const rows = new Map((shared.metrics[metric]?.rows ?? []).map((row) => [row[0], row[1]]));
    return cells.map((cell) => rows.get(cell) ?? null);
  },
  labels: (cells, shared) => cells.map((cell) => (shared.cells[cell].valid ? '' : '! ') + shared.cells[cell].label),
};

/** An option with functions, colours and data in the places of their names. */
function revive(value, named, palette, shared) {
  if (typeof value === 'string') {
    if (value.startsWith('@')) return named[value.slice(1)];
    return value.startsWith('$') ? palette[value.slice(1)] : value;
  }
  if (Array.isArray(value)) return value.map((each) => revive(each, named, palette, shared));
  if (value === null || typeof value !== 'object') return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0].startsWith('$')) return DATA[keys[0].slice(1)](value[keys[0]], shared, palette);
  return Object.fromEntries(keys.map((key) => [key, revive(value[key], named, palette, shared)]));
}

const list = (value) => (value === undefined ? [] : Array.isArray(value) ? value : [value]);

/** What every picture has: type, rules, tooltip. Options only say what is special about them. */
function dress(option, palette, width, picture) {
  const label = { color: palette.muted, fontFamily: FONT, fontSize: 12, hideOverlap: true, margin: 9 };
  option.animation = false;
  option.backgroundColor = 'transparent';
  option.textStyle = { fontFamily: FONT, color: palette.ink };
  for (const axis of [...list(option.xAxis), ...list(option.yAxis)]) {
    axis.axisLabel = { ...label, ...axis.axisLabel };
    axis.nameTextStyle = { color: palette.muted, fontFamily: FONT, fontSize: 12, ...axis.nameTextStyle };
    axis.axisLine = { show: axis.type === 'category', lineStyle: { color: palette.line }, ...axis.axisLine };
    axis.axisTick = { show: false, ...axis.axisTick };
    axis.splitLine = { show: axis.type !== 'category', lineStyle: { color: palette.grid }, ...axis.splitLine };
  }
  option.series = list(option.series);
  const bars = option.series.filter((series) => series.hasIntervals)
    .map(({ name, color, data }) => ({
      type: 'custom', name, color, data, renderItem: drawBar, silent: true, encode: { x: 0, y: 1 },
    }));
  const parts = [...new Set(option.series.filter(isPart).map(({ name }) => name))];
  option.series.forEach((series, index) => {
    const strokes = isPart(series) && STROKES[parts.indexOf(series.name) % STROKES.length];
    if (strokes) series.itemStyle = { ...series.itemStyle, decal: pattern(strokes, palette.ground) };
    if (series.type === 'line') {
      const look = series.look ?? index;
      // The legend shows what the line has.
      series.symbol ??= series.showSymbol === false ? 'none' : SYMBOLS[look % SYMBOLS.length];
      series.symbolSize ??= 6;
      series.lineStyle = { width: 2, type: DASHES[look % DASHES.length], ...series.lineStyle };
    }
    delete series.look;
    delete series.hasIntervals;
  });
  option.series.push(...bars);
  if (option.series.length < 2 && option.series[0]?.type === 'bar') delete option.legend;
  if (option.legend) {
    const names = option.legend.data ?? [...new Set(option.series.map(({ name }) => name))]
      .filter((name) => name !== undefined && name !== '');
    option.legend.data = names.map((name) => legendItem(name, option.series));
    option.legend = {
      type: 'plain', top: 0, left: 0, itemWidth: legendWidth(option), itemHeight: 9, itemGap: 14, icon: undefined,
      textStyle: { color: palette.ink, fontFamily: FONT, fontSize: 12 }, inactiveColor: palette.quiet, ...option.legend,
    };
  }
  if (option.tooltip) {
    option.tooltip = {
      confine: true, transitionDuration: 0, backgroundColor: palette.ground, borderColor: palette.line,
      textStyle: { color: palette.ink, fontFamily: FONT, fontSize: 13 },
      extraCssText: 'max-width:22rem;white-space:normal;box-shadow:0 2px 12px rgba(0,0,0,.18)',
      axisPointer: { lineStyle: { color: palette.muted }, shadowStyle: { color: palette.shade } }, ...option.tooltip,
    };
  }
  return option;
}

/** True for a series of parts of stacked bars. */
const isPart = ({ type, stack, name, silent }) => type === 'bar' && stack !== undefined && name !== '' && !silent;

/** The sign of a series in the legend: of a line what its boldest line has, and no mark where it has none. */
function legendItem(name, series) {
  const lines = series.filter((each) => each.name === name && each.type === 'line');
  if (lines.length === 0) return { name };
  const line = lines.reduce((bold, each) => (each.lineStyle.width > bold.lineStyle.width ? each : bold));
  return {
    name, itemStyle: { opacity: line.symbol === 'none' ? 0 : 1 },
    lineStyle: { width: line.lineStyle.width, type: line.lineStyle.type, opacity: 1 },
  };
}

/** How wide the sign of a series is in the legend: a line needs room for its dashes. */
const legendWidth = (option) => (option.series.some(({ type }) => type === 'line') ? 40 : 18);

/** How many lines the legend takes at this width: ECharts lays it out, but reserves no room. */
function legendLines(option, width) {
  if (!option.legend) return 0;
  const names = option.legend.data;
  let [lines, used] = [1, 0];
  for (const { name } of names) {
    const wide = legendWidth(option) + 5 + String(name).length * 6.9 + 14;
    if (used > 0 && used + wide > width - 8) [lines, used] = [lines + 1, 0];
    used += wide;
  }
  return names.length === 0 ? 0 : lines;
}

/** How many lines a text takes when it is broken at blanks, and within words that are too long. */
function linesOf(text, perLine) {
  let [lines, used] = [1, 0];
  for (const word of text.split(' ')) {
    if (used > 0 && used + 1 + word.length > perLine) [lines, used] = [lines + 1, 0];
    used += word.length + (used > 0 ? 1 : 0);
    while (used > perLine) [lines, used] = [lines + 1, used - perLine];
  }
  return lines;
}

/** The lines of a text that is broken at blanks. */
function broken(text, perLine) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1];
    if (last !== '' && last.length + 1 + word.length > perLine) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

/** Room for names at the left, for the legend and the title above. Returns the height in pixels. */
function fit(option, picture, width, top) {
  const isNarrow = width < 560;
  for (const axis of list(option.yAxis).filter((each) => each.type === 'category' && each.axisLabel?.show !== false)) {
    const longest = Math.max(0, ...axis.data.map((text) => text.length)) * (isNarrow ? 6 : 7.1) + 16;
    const room = Math.round(Math.min(longest, width * (isNarrow ? 0.42 : 0.34)));
    list(option.grid).forEach((grid) => { grid.left = room; });
    Object.assign(axis.axisLabel, { width: room - 12, overflow: 'break', lineHeight: 13, interval: 0, hideOverlap: false });
    if (isNarrow) {
      Object.assign(axis.axisLabel, { fontSize: 10, lineHeight: 11 });
      for (const scale of list(option.xAxis)) scale.splitNumber = 2;
    }
  }
  // Panels below one that needs more room move down.
  let grown = 0;
  for (const axis of list(option.yAxis).filter((each) => each.type === 'category' && each.axisLabel?.show !== false)) {
    const { width: room, fontSize, lineHeight } = axis.axisLabel;
    const perLine = Math.max(room / (fontSize * 0.56), 4);
    const needed = Math.max(0, ...axis.data.map((text) => linesOf(text, perLine))) * lineHeight + 8;
    const grids = list(option.grid);
    const at = axis.gridIndex ?? 0;
    const more = needed * axis.data.length - grids[at].height;
    if (more > 0) {
      grids[at].height += more;
      for (const below of grids.slice(at + 1)) below.top += more;
      grown += more;
    }
  }
  const lines = legendLines(option, width);
  if (option.legend) option.legend.top = top;
  const shift = top + (lines > 0 ? lines * 22 + 8 : 0);
  for (const part of [...list(option.grid), ...list(option.series).filter((each) => each.type === 'sankey')]) {
    part.top = (part.top ?? 0) + shift;
  }
  for (const series of list(option.series)) {
    if (series.type === 'sankey' && isNarrow) {
      series.label.fontSize = 10;
      series.label.rich.n.fontSize = 11;
      series.nodeWidth = 8;
      series.right = 100;
      Object.assign(series.label, { width: 96, overflow: 'break' });
    }
  }
  return picture.height + shift + grown;
}

function option(picture, shared, theme, width, hasTitle) {
  const palette = colours(theme);
  const named = functions(picture.about ?? {}, shared, palette);
  const made = dress(revive(picture.option, named, palette, shared), palette, width, picture);
  let top = 0;
  if (hasTitle) {
    made.backgroundColor = palette.ground;
    // Without a browser ECharts takes letters for narrower than they are, so lines are broken here.
    const title = broken(picture.title, Math.floor((width - 32) / 9.8));
    const note = broken(picture.note ?? '', Math.floor((width - 32) / 6.1));
    made.title = {
      text: title.join('\n'), subtext: note.join('\n'), left: 16, top: 12, itemGap: 6,
      textStyle: { color: palette.ink, fontFamily: FONT, fontSize: 17, fontWeight: 600, lineHeight: 22 },
      subtextStyle: { color: palette.muted, fontFamily: FONT, fontSize: 12, lineHeight: 16 },
    };
    top = 26 + title.length * 22 + note.length * 16 + 8;
    if (made.legend) made.legend.left = 16;
  }
  const height = fit(made, picture, width, top);
  if (hasTitle) {
    for (const grid of list(made.grid)) {
      grid.left = (grid.left ?? 0) + 16;
      grid.right = (grid.right ?? 0) + 12;
      grid.height ??= undefined;
    }
    for (const series of list(made.series).filter((each) => each.type === 'sankey')) {
      series.left = (series.left ?? 0) + 16;
    }
    return { option: made, height: height + 12, isExport: true };
  }
  return { option: made, height };
}

/** Draws `picture` into `element` and returns the chart, to be disposed of with `dispose()`. */
export function draw(element, picture, shared, theme) {
  const width = element.clientWidth;
  const made = option(picture, shared, theme, width, false);
  element.style.height = `${made.height}px`;
  const chart = echarts.init(element, null, { renderer: 'svg', width, height: made.height });
  chart.setOption(made.option);
  return chart;
}

/**
 * Widths of texts where no browser measures them: ECharts has those of Helvetica. The reader's font
 * may be wider, as DejaVu Sans is by an eighth; a legend without this room overlaps there.
 */
function widerTexts() {
  if (typeof document !== 'undefined' || isWider) return;
  isWider = true;
  const helvetica = platformApi.measureText;
  echarts.setPlatformAPI({
    measureText: (text, font) => ({ width: helvetica(text, font).width * WIDER }),
  });
}

const WIDER = 1.13;
let isWider = false;

/** The picture as an SVG document with its title. */
export function svg(picture, shared, theme, width) {
  widerTexts();
  const made = option(picture, shared, theme, width, true);
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height: made.height });
  chart.setOption(made.option);
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}

/** Colours as a page names them: it may be light, dark, or paper. */
const NAMES = new Map(Object.entries(LIGHT).filter(([, colour]) => colour.startsWith('#')).flatMap(([name, colour]) => {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return [[colour, `var(--${name})`], [`rgb(${parts.join(',')})`, `var(--${name})`]];
}));

/** The picture as a part of a page: without its title, in the colours and the font of the page. */
export function inline(picture, shared, width) {
  widerTexts();
  const made = option(picture, shared, 'light', width, false);
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height: made.height });
  chart.setOption(made.option);
  const text = chart.renderToSVGString({ useViewBox: true });
  chart.dispose();
  return slim(text, picture.name);
}

/** An SVG document without what the page says once for all: half of its size. */
function slim(svg, name) {
  const clips = new Map();
  const same = new Map();
  return svg
    .replace(/<style[^>]*>[^]*?<\/style>/g, '')
    .replace(/<(path|rect)[^>]*fill-opacity="0"[^>]*><\/\1>\n?|<rect[^>]*fill="none"><\/rect>\n?|<path d="[^"]*"(?: transform="[^"]*")? fill="none"><\/path>\n?/g, '')
    .replace(/#[0-9a-f]{6}\b|rgb\(\d+,\d+,\d+\)/gi, (colour) => NAMES.get(colour.toLowerCase()) ?? colour)
    .replace(/font-family:[^;"]*;?/g, '')
    .replace(/ (?:class|ecmeta_\w+|xml:\w+|xmlns(?::\w+)?|version|baseProfile|pointer-events|stroke-linejoin)="[^"]*"/g, '')
    .replace(/ dominant-baseline="central"| style="font-size:12px;"/g, '')
    // Only numbers of tags: a label that is shortened is another figure.
    .replace(/(\d+\.\d)\d+(?=[^<>]*>)/g, '$1')
    .replace(/d="M([\d.]+) ([\d.]+)((?:L[\d.]+ [\d.]+){6,})"([^>]*)/g, steps)
    // Series of one panel are cut off at the same edge, which is written once.
    .replace(/<clipPath id="([^"]+)">\s*([^]*?)\s*<\/clipPath>\n?/g, (whole, id, shape) => {
      if (!clips.has(shape)) clips.set(shape, `${name}-${clips.size}`.replace(/[^a-z0-9-]+/gi, '-'));
      const isFirst = ![...same.values()].includes(clips.get(shape));
      same.set(id, clips.get(shape));
      return isFirst ? `<clipPath id="${clips.get(shape)}">${shape}</clipPath>` : '';
    })
    .replace(/url\(#([^)]+)\)/g, (whole, id) => `url(#${same.get(id) ?? id})`)
    .replace(/(?:<path d="M[^"]*" fill="none"([^>]*)><\/path>\n){2,}/g, together)
    .replace(/<text([^>]*?) transform="translate\(([-\d.]+) ([-\d.]+)\)"/g, placed)
    .replace(/(<text[^>]*) fill="var\(--muted\)"/g, '$1')
    .replace(/<\/(path|rect|circle|polygon|polyline|line|ellipse)>/g, '')
    .replace(/<(path|rect|circle|polygon|polyline|line|ellipse)([^>]*)>/g, '<$1$2/>')
    .replace(/>\n+/g, '>');
}

/** A line through many points as steps from one to the next, which are shorter; a thin one in whole pixels. */
function steps(whole, x, y, rest, look) {
  const parts = /stroke-width="0\.\d/.test(look) ? 1 : 10;
  const at = (text) => Math.round(text * parts);
  let [left, top] = [at(x), at(y)];
  const start = `${left / parts} ${top / parts}`;
  const ways = rest.slice(1).split('L').map((point) => {
    const [right, bottom] = point.split(' ').map(at);
    const way = `${(right - left) / parts}${bottom < top ? '' : ' '}${(bottom - top) / parts}`;
    [left, top] = [right, bottom];
    return way;
  });
  return `d="M${start}l${ways.join(' ')}"${look}`;
}

/** A text at the place to which it was moved. */
function placed(whole, look, left, top) {
  const own = (name) => Number(new RegExp(` ${name}="([-\\d.]+)"`).exec(look)?.[1] ?? 0);
  const [x, y] = [own('x') + Number(left), own('y') + Number(top)].map((each) => Math.round(each * 10) / 10);
  return `<text${look.replace(/ [xy]="[-\d.]+"/g, '')} x="${x}" y="${y}"`;
}

/** Lines one after another that look the same are one path. */
function together(lines) {
  const groups = [];
  for (const [, path, look] of lines.matchAll(/<path d="(M[^"]*)" fill="none"([^>]*)><\/path>\n/g)) {
    const last = groups[groups.length - 1];
    if (last?.look === look) last.paths.push(path);
    else groups.push({ look, paths: [path] });
  }
  return groups.map(({ look, paths }) => `<path d="${paths.join('')}" fill="none"${look}></path>\n`).join('');
}

export { figure, threeDigits, count, time, bytes, octets, share };
