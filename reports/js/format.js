// ---- Numbers and names as people read them -----------------------------------------------------
// The same texts as the program writes (core/units.cpp, report/pivot.cpp).

// toFixed(), but halves go to the even neighbour, as the program's library has it. A double lies
// exactly between two decimals only if twice that is a whole number of tenths that 5 ** decimals
// divides.
function fixed(value, decimals) {
  const scaled = Math.abs(value) * 10 ** decimals, below = Math.floor(scaled);
  const half = scaled - below === 0.5 && (2 * below + 1) % 5 ** decimals === 0;
  if (!half || below % 2) return value.toFixed(decimals);
  return (Math.sign(value) * below / 10 ** decimals).toFixed(decimals);
}

// `value` with `digits` significant digits, never with an exponent.
function significant(value, digits = 3) {
  if (!Number.isFinite(value)) return "n/a";
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  return fixed(value, Math.max(0, Math.min(12, digits - 1 - exponent)));
}

function threeDigits(value) {
  const size = Math.abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function formatTime(us) {
  if (us < 999.5) return `${threeDigits(us)} us`;
  if (us < 999.5e3) return `${threeDigits(us / 1e3)} ms`;
  return `${threeDigits(us / 1e6)} s`;
}

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB"];
  let unit = 0;
  while (unit < units.length && bytes >= 1023.95) {
    bytes /= 1024;
    unit++;
  }
  if (unit === units.length) return `${fixed(bytes, 1)} GiB`;
  const decimals = unit === 0 || bytes >= 9.95 || bytes === Math.floor(bytes) ? 0 : 1;
  return `${fixed(bytes, decimals)} ${units[unit]}`;
}

function formatCount(value) {
  const mega = 1024 * 1024;
  if (value !== 0 && value % mega === 0) return `${value / mega}m`;
  if (value !== 0 && value % 1024 === 0) return `${value / 1024}k`;
  return `${value}`;
}

// 1.062 as "+6.2 %".
const changeText = (ratio) =>
    `${ratio >= 1 ? "+" : ""}${fixed(100 * (ratio - 1), 1)} %`.replace("-0.0 %", "+0.0 %");

const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// For labels: at most `length` characters.
const cut = (text, length) =>
    text.length > length ? `${text.slice(0, length - 1)}\u2026` : text;

// As shortened() of the program: at most 300 bytes of UTF-8, and how many there were.
function shortened(text, most = 300) {
  if (text.length <= most / 4) return text;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= most) return text;
  let end = most;
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;
  return `${new TextDecoder().decode(bytes.subarray(0, end))}... (${bytes.length} bytes)`;
}

// Numbers on axes: plain digits, no exponent.
const plainNumber = (value) => value >= 1e6 ? `${(value / 1e6).toLocaleString("en-US")}M`
    : value >= 1 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)));

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (groups.has(key)) groups.get(key).push(item); else groups.set(key, [item]);
  }
  return groups;
}

const byText = (a, b) => a.localeCompare(b, "en", {numeric: true});
