// ---- Saving ---------------------------------------------------------------------------------------------------

function saveBlob(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const save = (name, type, text) => saveBlob(name, new Blob([text], {type}));
const fileName = (title) => cut(title.replace(/[^A-Za-z0-9._-]+/g, "_"), 80);

// The chart with the page's style inside, so that it looks the same elsewhere.
function standaloneSvg(figure) {
  const copy = figure.svg.node().cloneNode(true);
  copy.setAttribute("width", figure.width);
  copy.setAttribute("height", figure.height);
  copy.querySelectorAll(".ring").forEach((node) => node.remove());
  const style = document.createElementNS(copy.namespaceURI, "style");
  const rules = Array.from(document.styleSheets[0].cssRules, (rule) => rule.cssText)
      .filter((text) => text.startsWith("svg"));
  const page = getComputedStyle(document.documentElement);
  const names = ["background", "surface", "text", "muted", "grid", "line", ...d3.range(7).map((i) => `k${i}`)];
  const values = names.map((name) => `--${name}:${page.getPropertyValue(`--${name}`)}`);
  style.textContent = `svg{${values.join(";")};background:var(--background)}${rules.join("")}`;
  copy.insertBefore(style, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

function saveSvg(figure) {
  save(`${fileName(figure.title)}.svg`, "image/svg+xml", standaloneSvg(figure));
}

// At twice the size on the screen.
function savePng(figure) {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = figure.width * 2;
    canvas.height = figure.height * 2;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saveBlob(`${fileName(figure.title)}.png`, blob), "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standaloneSvg(figure))}`;
}

// The columns of `rooflash report -o FILE.csv` (src/report/csv.cpp); tests/browser compares them.
const csvColumns = [
  ["case"], ["definition_hash"], ["kernel"], ["provider"], ["device"], ["gpu"], ["round"], ["status"],
  ["reason"], ["simulated"],
  ...["pass", "dtype", "batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_kv", "headdim", "headdim_v",
      "mask", "align"].map((name) => [name, (r) => r.problem[name]]),
  ["window_left", (r) => r.problem.window ? r.problem.window[0] : -1],
  ["window_right", (r) => r.problem.window ? r.problem.window[1] : -1],
  ["distribution", (r) => r.problem.distribution],
  ["options", (r) => Object.keys(r.problem.options).sort().map((name) => `${name}=${r.problem.options[name]}`).join(";")],
  ["verify_status", (r) => r.verify.status],
  ...["max_abs_err", "tolerance_max", "rms_err", "rel_err", "unquantized_rms_err",
      "unquantized_rel_err"].map((name) => [name, (r) => r.verify[name]]),
  ...["flops", "compulsory_bytes", "predicted_hbm_bytes", "predicted_time_us"].map((name) => [name, (r) => r.model[name]]),
  ["time_us_median", (r) => r.time_us?.median], ["time_us_ci95_low", (r) => r.time_us?.ci95[0]],
  ["time_us_ci95_high", (r) => r.time_us?.ci95[1]], ["time_us_min", (r) => r.time_us?.min],
  ["quantize_us_median", (r) => r.quantize_us?.median], ["time_with_quantize_us"], ["saturated_elements"],
  ["n", (r) => r.time_us?.n], ["l2", (r) => r.time_us?.l2], ["timer", (r) => r.time_us?.timer],
  ["clock_mhz_median", (r) => r.clock_mhz?.median], ["power_w"], ["temperature_c"],
  ["counters_status", (r) => r.counters.status],
  ...["hbm_read_bytes", "hbm_write_bytes", "sm_l2_read_bytes", "sm_l2_write_bytes", "tensor_ops",
      "tensor_pipe_pct"].map((name) => [name, (r) => r.counters[name]]),
  ...["tflops", "hardware_tflops", "hbm_gbps", "intensity_flop_per_byte", "roof_pct"].map((name) => [name, (r) => r.derived[name]]),
  ...["workspace_bytes", "peak_bytes", "needed_bytes", "free_bytes"].map((name) => [name, (r) => r.memory[name]]),
  ["throttle", (r) => r.throttle.join(";")], ["flags", (r) => r.flags.join(";")],
  ["missing", (r) => Object.keys(r.missing).sort().map((path) => `${path}: ${r.missing[path]}`).join("; ")],
  ["repro"],
];

// RFC 4180; a text that a spreadsheet would run as a formula begins with a quote.
function csv() {
  const quote = (value) => {
    const raw = value === null || value === undefined ? "" : String(value);
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(raw) ? `'${raw}` : raw;
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const shown = items.filter(isShown);
  const line = ({row}) => csvColumns.map(([name, get]) => quote(get ? get(row) : row[name])).join(",");
  return [csvColumns.map(([name]) => name).join(","), ...shown.map(line)].join("\r\n") + "\r\n";
}

// The record as it is in the page: nothing replaced, all rows, thinned samples.
function recordJson() {
  const originals = JSON.parse(source).records;
  return JSON.stringify(originals.length === 1 ? originals[0] : originals, null, 1);
}
