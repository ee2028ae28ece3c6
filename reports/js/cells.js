// ---- Cells of the data tables -----------------------------------------------------------------------------------
// Cells as the program writes them (src/report/row_tables.cpp): a text, or [text, value to sort by].

const missingCell = (row, path) => `n/a: ${missingReason(row, path)}`;
const numberCell = (row, path, value, unit = "") =>
    value === null || value === undefined ? missingCell(row, path) : [significant(value, 4) + unit, value];
const bytesCell = (row, path, value) => value === null ? missingCell(row, path) : [formatBytes(value), value];
const timeCell = (row, path, value) => value === null ? missingCell(row, path) : [formatTime(value), value];
const quotient = (a, b) => a === null || b === null || !(b > 0) ? null : a / b;

function flagsText(row) {
  const flags = row.flags.concat(row.throttle.map((reason) => `throttle: ${reason}`));
  return flags.length ? flags.join(", ") : "none";
}

function verifyText({verify}) {
  let text = verify.status;
  if (verify.shape) text += ` at ${verify.shape}`;
  if (verify.max_abs_err !== null && verify.tolerance_max !== null) {
    text += `, max error ${significant(verify.max_abs_err, 2)} of ${significant(verify.tolerance_max, 2)}`;
  }
  if (verify.unquantized_rms_err != null) {
    text += `, RMSE ${significant(verify.unquantized_rms_err, 2)} against unquantised inputs`;
  }
  return verify.rows_checked ? `${text}, rows ${verify.rows_checked}` : text;
}

function resourcesText(row) {
  const r = row.resources;
  if (r.registers === null && r.smem_bytes === null) return missingCell(row, "resources");
  const show = (value) => value ?? "n/a";
  return `${show(r.registers)} registers, ${show(r.spill_bytes)} spilled bytes, ` +
      `${show(r.smem_bytes)} bytes smem, ${show(r.threads)} threads, grid ${show(r.grid)}` +
      (r.waves === null ? "" : `, ${significant(r.waves)} waves`);
}

// FLOPs as the papers count them, where that differs by over a thousandth.
function flopsText({problem: p, model}) {
  let text = `${significant(model.flops / 1e9, 4)} GFLOP`;
  if (p.mask === "window") return text;
  const pairs = p.seqlen_q * p.seqlen_kv / (p.mask === "causal" ? 2 : 1);
  const forward = 2 * (p.batch * p.heads_q) * pairs * (p.headdim + p.headdim_v);
  const paper = p.pass === "fwd" ? forward : 2.5 * forward;
  if (Math.abs(paper - model.flops) > 1e-3 * model.flops) {
    text += ` (the papers count ${significant(paper / 1e9, 4)})`;
  }
  return text;
}

function reasonText(row) {
  const {needed_bytes: needed, free_bytes: free} = row.memory;
  return (row.reason || "no reason given") + (needed !== null && free !== null
      ? ` (needs ${formatBytes(needed)}, free ${formatBytes(free)})` : "");
}

function deviceText({row, run}) {
  return row.device + (row.simulated ? " (simulated)" : "") + (row.round ? ` round ${row.round}` : "") +
      (records.length > 1 ? ` ${names[run]}` : "");
}

// The least change that a comparison of the row's case would find, or why that is unknown.
function detectableCell({run, index}) {
  const found = detectable[run][index];
  return typeof found === "number" ? [`${significant(found * 100, 3)} %`, found] : `n/a: ${found}`;
}
