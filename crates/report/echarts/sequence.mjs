// A sequence diagram: a lifeline for each party, a row for each packet, time downwards but not to scale.
import { count, time } from './formats.mjs';

const text = (x, y, words, style) => ({ type: 'text', style: { x, y, text: words, textVerticalAlign: 'middle', ...style } });
const line = (x1, y1, x2, y2, style) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style });

/** What stands at an arrow: what it carries, and its size. */
function label(packet) {
  const size = packet.stream > 0 ? `${count(packet.stream)} of ${count(packet.bytes)} B` : `${count(packet.bytes)} B`;
  return `${packet.name}, ${size}`;
}

/** Where the columns are in an area. */
function columns(area, parties) {
  const isNarrow = area.width < 560;
  const times = isNarrow ? 62 : 92;
  const margin = isNarrow ? 30 : 70;
  const left = area.x + times + margin;
  const hop = Math.min((area.width - times - 2 * margin) / (parties.length - 1), 520);
  return { isNarrow, times, hop, at: parties.map((_, place) => left + place * hop) };
}

/** The colour of an arrow: by phase, pale where it only acknowledges. */
function colour(packet, palette) {
  if (packet.again || packet.repeat) return palette.bad;
  if (packet.phase === 'set_up') return palette.c3;
  if (packet.phase === 'tear_down') return palette.c7;
  return packet.stream > 0 ? palette.c0 : palette.quiet;
}

function arrow(packet, from, to, y, palette) {
  const stroke = colour(packet, palette);
  const style = { stroke, lineWidth: packet.stream > 0 ? 2 : 1.25, lineDash: packet.repeat ? [5, 3] : null };
  const way = Math.sign(to - from);
  if (packet.again) {
    // It goes on as far as anybody knows: to its first half.
    const end = from + (to - from) * 0.5;
    const cross = { stroke, lineWidth: 2 };
    return [line(from, y, end, y, style), line(end - 5, y - 5, end + 5, y + 5, cross), line(end - 5, y + 5, end + 5, y - 5, cross)];
  }
  const tip = to - way;
  return [
    line(from, y, tip - way * 6, y, style),
    { type: 'polygon', shape: { points: [[tip, y], [tip - way * 9, y - 4], [tip - way * 9, y + 4]] }, style: { fill: stroke } },
  ];
}

/** The row of a packet; the first and the last bring the names of the parties along. */
export function drawPacket(params, api, about, palette, font) {
  const { parties, packets } = about;
  const index = params.dataIndex;
  const packet = packets[index];
  const area = params.coordSys;
  const { isNarrow, times, hop, at } = columns(area, parties);
  const [, y] = api.coord([0, index + 1.5]);
  const height = api.size([0, 1])[1];
  const fontSize = isNarrow ? 10.5 : 12;
  const children = [{
    type: 'rect', shape: { x: area.x, y: y - height / 2, width: area.width, height }, style: { fill: 'rgba(0,0,0,0)' },
  }];
  const isGap = packet.gap !== undefined;
  for (const x of at) {
    children.push(line(x, y - height / 2, x, y + height / 2, { stroke: palette.line, lineWidth: 1, lineDash: isGap ? [1, 4] : null }));
  }
  const heads = [...(index === 0 ? [y - height] : []), ...(index === packets.length - 1 ? [y + height] : [])];
  for (const top of heads) {
    children.push(text(area.x + times, top, 'ms', { fill: palette.muted, fontFamily: font, fontSize: isNarrow ? 10 : 11.5, textAlign: 'right' }));
    // At the edges of a narrow page names begin and end where the page does.
    const [first, last] = [area.x + times + 6, area.x + area.width - 2];
    parties.forEach((party, place) => {
      const align = !isNarrow ? 'center' : place === 0 ? 'left' : place === parties.length - 1 ? 'right' : 'center';
      const x = { left: first, right: last, center: at[place] }[align];
      children.push(text(x, top, party, {
        fill: palette.ink, fontFamily: font, fontSize, fontWeight: 600, textAlign: align, width: Math.min(hop - 8, 180), overflow: 'truncate',
      }));
    });
  }
  const middle = (at[0] + at[at.length - 1]) / 2;
  const ground = { backgroundColor: palette.ground, fontFamily: font, fontSize };
  if (isGap) {
    const words = `${count(packet.gap)} packets, ${count(packet.bytes)} B left out`;
    children.push(text(middle, y, words, { ...ground, fill: palette.muted, textAlign: 'center', padding: [2, 4] }));
    return { type: 'group', children };
  }
  children.push(text(area.x + times, y + 6, count((packet.at / 1e6).toFixed(2)), {
    fill: palette.muted, fontFamily: font, fontSize: isNarrow ? 10 : 11.5, textAlign: 'right',
  }));
  const [from, to] = [at[packet.from], at[packet.to]];
  // A label may reach over the next lifeline: nothing else stands in this row.
  const isLeft = Math.min(packet.from, packet.to) === 0;
  const isWide = parties.length === 2 || !isNarrow;
  const align = isWide ? 'center' : isLeft ? 'left' : 'right';
  const x = isWide ? (from + to) / 2 : isLeft ? at[0] + 4 : at[at.length - 1] - 4;
  const room = isWide && parties.length === 2 ? hop + (isNarrow ? 40 : 0) : isWide ? hop - 8 : at[at.length - 1] - at[0] - 8;
  const isQuiet = packet.stream === 0 && packet.phase === 'messages';
  children.push(...arrow(packet, from, to, y + 7, palette));
  children.push(text(x, y - 4, label(packet), {
    ...ground, fill: isQuiet ? palette.muted : palette.ink, textAlign: align, width: room, overflow: 'truncate', padding: [0, 3],
  }));
  return { type: 'group', children };
}

/** All that is known of a packet. */
export function packetWords(about, index, head, pair) {
  const { parties, packets } = about;
  const packet = packets[index];
  if (packet.gap !== undefined) return head('left out') + pair('packets', count(packet.gap)) + pair('bytes', count(packet.bytes));
  const phases = { set_up: 'set-up', messages: 'messages', tear_down: 'tear-down' };
  return head(packet.name) + pair('from', `${parties[packet.from]} to ${parties[packet.to]}`)
    + pair('after the first packet', time(packet.at)) + pair('on the wire', `${count(packet.bytes)} B`)
    + pair('of the stream', `${count(packet.stream)} B`) + pair('headers', `${count(packet.bytes - packet.stream)} B`)
    + (packet.flags ? pair('flags', packet.flags) : '') + pair('phase', phases[packet.phase] ?? packet.phase)
    + (packet.segments ? pair('segments on the wire', count(packet.segments)) : '')
    + (packet.marks ? pair('mark', packet.marks) : '');
}
