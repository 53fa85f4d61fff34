// Numbers as the table of `weigh` shows them: the same rules as `figures.rs` of weigh-report, held
// together by a test that runs both over the same values.

/** Three significant digits: 0.0123, 1.23, 12.3, 123, 12,300. */
export function threeDigits(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞';
  if (value === 0) return '0';
  const exponent = (number) => Math.floor(Math.log10(Math.abs(number)));
  const scale = 10 ** (2 - exponent(value));
  const rounded = Math.round(value * scale) / scale;
  if (Math.abs(rounded) >= 1000) return count(Math.round(rounded));
  const decimals = Math.min(Math.max(2 - exponent(rounded), 0), 12);
  return rounded.toFixed(decimals);
}

/** A whole number in full: 1,000,000. */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** A time given in nanoseconds: 873 ns, 1.23 µs, 45.6 ms, 2.50 s. */
export function time(nanoseconds) {
  if (!Number.isFinite(nanoseconds)) return threeDigits(nanoseconds);
  const size = Math.abs(nanoseconds);
  if (size < 999.5) return threeDigits(nanoseconds) + ' ns';
  if (size < 999.5e3) return threeDigits(nanoseconds / 1e3) + ' µs';
  if (size < 999.5e6) return threeDigits(nanoseconds / 1e6) + ' ms';
  return threeDigits(nanoseconds / 1e9) + ' s';
}

/** A size given in bytes: 512 B, 1.50 KiB. */
export function bytes(size) {
  if (!Number.isFinite(size)) return threeDigits(size);
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let index = 0;
  while (Math.abs(size) >= 1023.5 && index + 1 < units.length) {
    size /= 1024;
    index += 1;
  }
  return index === 0 ? `${size.toFixed(0)} B` : `${threeDigits(size)} ${units[index]}`;
}

/**
 * The share of `part` in `whole` in percent. A large one is rounded down, with as many decimals as it
 * takes to tell it from everything; a small one has three digits: loss is never rounded away.
 */
export function share(part, whole) {
  if (!(whole > 0)) return '–';
  if (part >= whole) return '100 %';
  if (part < whole / 2) return `${threeDigits((100 * part) / whole)} %`;
  const missing = (100 * (whole - part)) / whole;
  const decimals = Math.min(Math.max(Math.ceil(-Math.log10(missing)) + 1, 1), 12);
  const scaled = (BigInt(part) * 100n * 10n ** BigInt(decimals)) / BigInt(whole);
  const digits = String(scaled).padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)} %`;
}

/** A mean number of bytes in full: 214 B, 1,234.50 B. */
export function octets(value) {
  if (!Number.isFinite(value)) return threeDigits(value);
  const hundredths = Math.round(value * 100);
  const rest = hundredths % 100;
  return `${count(Math.floor(hundredths / 100))}${rest === 0 ? '' : `.${String(rest).padStart(2, '0')}`} B`;
}

/** A figure in the unit of the summary, with that unit. */
export function figure(value, unit) {
  if (value === null || value === undefined) return '–';
  switch (unit) {
    case 'ns': return time(value);
    case 'us': return time(value * 1e3);
    case 'ms': return time(value * 1e6);
    case 'B': return bytes(value);
    case 's': return time(value * 1e9);
    case '1': return threeDigits(value);
    case '1/s': return threeDigits(value) + '/s';
    case 'us/message': return threeDigits(value) + ' µs';
    case 'B/message': return threeDigits(value) + ' B';
    default: return `${threeDigits(value)} ${unit}`;
  }
}

/** The same for the marks of an axis: no digits that say nothing. */
export function mark(value, unit) {
  const text = figure(value, unit);
  return text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');
}
