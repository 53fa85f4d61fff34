'use strict';
(async () => {
  // Five characters are four bytes: packed.rs.
  function bytes(text) {
    const digit = (place) => {
      const code = place < text.length ? text.charCodeAt(place) : 122;
      return code - 35 - (code > 38) - (code > 60) - (code > 92);
    };
    const made = new Uint8Array(Math.ceil(text.length / 5) * 4);
    const view = new DataView(made.buffer);
    for (let place = 0; place < text.length; place += 5) {
      let number = 0;
      for (let at = place; at < place + 5; at += 1) number = number * 85 + digit(at);
      view.setUint32((place / 5) * 4, number);
    }
    return made.subarray(0, Math.floor((text.length * 4) / 5));
  }
  const unpacked = (id) => new Response(new Blob([bytes(document.getElementById(id).textContent)])
    .stream().pipeThrough(new DecompressionStream('gzip'))).text();
  const { nonce } = document.currentScript;
  const [library, data] = await Promise.all([unpacked('library'), unpacked('run')]);
  const code = document.createElement('script');
  code.nonce = nonce;
  code.textContent = library;
  document.body.append(code);
  const run = JSON.parse(data);
  const { shared, pictures } = run;
  const what = new Map(run.what);
  const byName = new Map(pictures.map((picture) => [picture.name, picture]));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const charts = new Map();
  let isPrinting = false;

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const theme = () => (dark.matches && !isPrinting ? 'dark' : 'light');

  // Pictures are drawn when they come near the screen: two hundred cases have a thousand of them.
  function draw(place) {
    charts.get(place)?.dispose();
    const picture = byName.get(place.dataset.picture);
    place.replaceChildren();
    charts.set(place, WeighCharts.draw(place, picture, shared, theme()));
    place.dataset.drawn = 'yes';
  }
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting && !charts.has(target)) draw(target);
    }
  }, { rootMargin: '400px' });
  const places = () => document.querySelectorAll('[data-picture]');
  function watch(root) {
    for (const place of root.querySelectorAll('[data-picture]')) {
      // What is not drawn yet takes its room, so that nothing jumps when it is.
      if (!place.querySelector('svg')) place.style.height = `${byName.get(place.dataset.picture).height}px`;
      near.observe(place);
    }
  }
  function redraw() {
    for (const place of [...charts.keys()]) {
      if (place.isConnected) draw(place);
      else {
        charts.get(place).dispose();
        charts.delete(place);
      }
    }
  }
  function figures(list) {
    return list.map((picture) => element('figure', {},
      element('h3', {}, picture.title + (picture.part ? ` (${picture.part})` : '')),
      element('div', { class: 'picture', role: 'img', 'aria-label': `${picture.title}. ${picture.note}`, 'data-picture': picture.name }),
      element('figcaption', {}, picture.note)));
  }
  function show(root, list) {
    for (const place of root.querySelectorAll('[data-picture]')) {
      near.unobserve(place);
      charts.get(place)?.dispose();
      charts.delete(place);
    }
    root.replaceChildren(...figures(list));
    watch(root);
  }

  // Tables: a click on a heading sorts within each group of rows.
  const magnitude = (cell) => {
    if (cell.dataset.value !== undefined) return cell.dataset.value === '' ? NaN : Number(cell.dataset.value);
    const text = cell.textContent.trim();
    const found = /^[≤<= ]*(-?[\d,]+(?:\.\d+)?|∞)(?: ± [\d.,]+| \+-?[\d.,]+\/-[\d.,]+)?\s*(ns|µs|us|ms|s|B|KiB|MiB|GiB|TiB)?/.exec(text);
    if (!found) return NaN;
    if (found[1] === '∞') return Infinity;
    const units = { ns: 1, 'µs': 1e3, us: 1e3, ms: 1e6, s: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };
    return Number(found[1].replaceAll(',', '')) * (units[found[2]] ?? 1);
  };
  function sort(table, column, heading) {
    const direction = heading.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains('group'));
      const keys = new Map(rows.map((row) => [row, magnitude(row.cells[column])]));
      const isText = column === 0 || rows.every((row) => Number.isNaN(keys.get(row)));
      rows.sort((left, right) => {
        if (isText) {
          const [a, b] = [left, right].map((row) => row.cells[column].textContent);
          return direction * a.localeCompare(b, 'en', { numeric: true });
        }
        const [a, b] = [keys.get(left), keys.get(right)];
        // What was not measured stays at the end either way.
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return a === b ? 0 : direction * (a < b ? -1 : 1);
      });
      body.append(...rows);
    }
  }
  function makeSortable(table) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = element('button', { type: 'button' }, ...heading.childNodes);
      heading.replaceChildren(button);
      button.addEventListener('click', () => sort(table, column, heading));
    });
  }

  // One metric.
  const column = (text, kind) => element('th', { scope: 'col', ...(kind ? { class: kind } : {}) }, text);
  function metricTable(name, hasValues) {
    const { unit, rows, how } = shared.metrics[name];
    const figure = (value) => WeighCharts.figure(value, unit);
    const head = [column('case'), column('guarantee', 'text'), column('mean'), column('interval at 95 %'), column('±'), column('n')];
    if (hasValues) head.push(column('how', 'text'), column('beside it'), column('median'), column('values', 'text'));
    const body = rows.map(([cell, value, low, high, values], index) => {
      const [words, apart, beside, median] = how[index];
      const { label, guarantee, valid } = shared.cells[cell];
      const side = low === null || value === null || value === 0 ? null : (100 * Math.max(high - value, value - low)) / Math.abs(value);
      const number = (text, key) => element('td', { 'data-value': key ?? '' }, text);
      const row = element('tr', valid ? {} : { class: 'invalid' },
        element('th', { scope: 'row' }, (valid ? '' : '! ') + label),
        element('td', { class: 'text' }, guarantee),
        number(value === null ? '∞' : figure(value), value === null ? 'Infinity' : value),
        number(low === null ? '–' : `${figure(low)} to ${figure(high)}`, low),
        number(side === null ? '–' : `${WeighCharts.threeDigits(side)} %`, side),
        number(String(values.length), values.length));
      if (hasValues) {
        // A star marks a repetition that stands apart; it is part of every figure.
        const shown = values.map((each, place) => (each === null ? '∞' : figure(each)) + (apart?.includes(place) ? '*' : ''));
        row.append(element('td', { class: 'text' }, shared.hows[words] || '–'),
          number(beside ? `${figure(beside[0])} to ${figure(beside[1])}` : '–', beside?.[0]),
          number(median ? figure(median[0]) + (median[1] === null ? '' : ` (${figure(median[1])} to ${figure(median[2])})`) : '–', median?.[0]),
          element('td', { class: 'text' }, shown.join(' · ')));
      }
      return row;
    });
    const table = element('table', { class: 'sortable' }, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...body));
    makeSortable(table);
    return table;
  }
  const metricChoice = document.getElementById('metric-choice');
  function showMetric() {
    const name = metricChoice.value;
    document.getElementById('metric-what').textContent = what.get(name) ?? '';
    show(document.getElementById('metric-pictures'),
      pictures.filter(({ kind, subject }) => subject === name && (kind === 'axis' || kind === 'dots')));
    document.getElementById('metric-table').replaceChildren(metricTable(name, false));
  }

  // Groups of cases, and single ones.
  function choose(id, options, list) {
    const choice = document.getElementById(`${id}-choice`);
    if (!choice) return;
    choice.replaceChildren(...options.map(([value, text]) => element('option', { value }, text)));
    const root = document.getElementById(`${id}-choice`).closest('p').nextElementSibling;
    const update = () => show(root, list(choice.value));
    choice.addEventListener('change', update);
    if (id === 'cell') choice.value = String(run.lossy);
    choice.closest('p').hidden = options.length < 2;
    if (!root.hasChildNodes()) update();
  }
  const curves = pictures.filter(({ kind }) => kind === 'curve');
  const groupOf = ({ about, part }) => [about.group, part].filter(Boolean).join(', cases ') || 'all';
  const single = ['flow', 'over_time', 'histogram'];
  const cells = [...new Set(pictures.filter(({ kind }) => single.includes(kind)).map(({ subject }) => subject))];
  cells.sort((left, right) => left - right);

  for (const table of document.querySelectorAll('table.sortable')) makeSortable(table);
  watch(document);
  if (metricChoice) {
    // A browser may remember what was chosen before.
    metricChoice.value = metricChoice.querySelector('[selected]')?.value ?? metricChoice.value;
    metricChoice.addEventListener('change', showMetric);
    metricChoice.closest('p').hidden = false;
    // The same table, with values to sort by that are not rounded.
    document.getElementById('metric-table').replaceChildren(metricTable(metricChoice.value, false));
  }
  choose('group', [...new Set(curves.map(groupOf))].map((group) => [group, group]),
    (group) => curves.filter((picture) => groupOf(picture) === group));
  choose('cell', cells.map((cell) => [cell, (shared.cells[cell].valid ? '' : '! ') + shared.cells[cell].label]),
    (cell) => pictures.filter(({ kind, subject }) => single.includes(kind) && subject === cell));
  const sessions = pictures.filter(({ kind }) => kind === 'session');
  choose('session', sessions.map(({ subject }) => [subject, shared.cells[subject].label]),
    (cell) => sessions.filter(({ subject }) => subject === cell));
  function fill(details) {
    const name = details.dataset.metric;
    if (!details.open || details.querySelector('.wide')) return;
    details.append(element('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': `Values of ${name}` }, metricTable(name, true)));
  }
  const computed = [...document.querySelectorAll('details[data-metric]')];
  for (const details of computed) details.addEventListener('toggle', () => fill(details));

  // Paper: light, everything drawn at the width of the sheet; the plan opened, and the values of the
  // headline metrics, unless they would fill a book.
  const SHEET_PIXELS = 680;
  const HEADLINES = 7;
  const CELLS_ON_PAPER = 30;
  addEventListener('beforeprint', () => {
    isPrinting = true;
    for (const details of document.querySelectorAll('details.plan, details.fold')) details.open = true;
    if (shared.cells.length <= CELLS_ON_PAPER) {
      for (const details of computed.slice(0, HEADLINES)) {
        details.open = true;
        fill(details);
      }
    }
    for (const place of places()) {
      place.style.width = `${Math.min(place.clientWidth, SHEET_PIXELS)}px`;
      draw(place);
    }
  });
  addEventListener('afterprint', () => {
    isPrinting = false;
    for (const place of places()) place.style.width = '';
    redraw();
  });
  dark.addEventListener('change', redraw);
  let width = innerWidth;
  let waiting;
  addEventListener('resize', () => {
    if (innerWidth === width || isPrinting) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  });
  document.documentElement.dataset.ready = 'yes';
})().catch((error) => {
  const note = document.createElement('p');
  note.className = 'warning';
  note.textContent = `The pictures cannot be shown (${error}): use a browser of 2023 or later, or read summary.json.`;
  document.querySelector('header').append(note);
  throw error;
});
