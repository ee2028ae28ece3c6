// ---- Data tables: sorted, filtered, and grown beyond the rows that are in the page --------------------------

const isOk = (item) => item.row.status === "ok";
const tableOf = {
  "table-roofline": {wanted: isOk, cells(item) {
    const {row, x} = item, roofs = rowRoofs(item);
    const ridge = roofs.hbm > 0 && roofs.tensor !== null ? roofs.tensor * 1e3 / roofs.hbm : null;
    const measured = numberCell(row, "derived.intensity_flop_per_byte", x);
    if (x !== null && item.predicted) measured[0] += " (predicted)";
    return [
      measured, numberCell(row, "model.compulsory_bytes", item.xc),
      numberCell(row, "derived.tflops", row.derived.tflops),
      numberCell(row, "derived.roof_pct", row.derived.roof_pct, " %"),
      ridge === null || x === null ? "n/a" : x < ridge ? "memory" : "compute",
      ridge === null ? "n/a: no ceilings of this device"
                     : `${fixed(roofs.hbm, 0)} GB/s, ${fixed(roofs.tensor, 0)} TFLOPS (${roofs.name})`,
    ];
  }},
  "table-throughput": {wanted: isOk, cells({row}) {
    const time = row.time_us;
    return [
      [`${row.problem.seqlen_kv}`, row.problem.seqlen_kv], timeCell(row, "time_us", time && time.median),
      time ? `${formatTime(time.ci95[0])} to ${formatTime(time.ci95[1])}` : missingCell(row, "time_us"),
      time ? [`${time.n}`, time.n] : missingCell(row, "time_us"),
      numberCell(row, "derived.tflops", row.derived.tflops),
      numberCell(row, "derived.hardware_tflops", row.derived.hardware_tflops),
    ];
  }},
  "table-speedup": {wanted: ({row}) => isRanked(row), cells(item) {
    const {row} = item, name = baselineOf(item.run) ?? "";
    const base = rivalsOf.get(item.rival).find((other) => other.kernel === name);
    const time = timeCell(row, "time_us", row.time_us.median);
    if (!base) return [time, name, "n/a: no time of the baseline", "n/a: no time of the baseline"];
    const us = base.row.time_us.median, speedup = us / row.time_us.median;
    return [time, name, [formatTime(us), us], [`${significant(speedup, 4)}x`, speedup]];
  }},
  "table-bytes": {wanted: isOk, cells(item) {
    const {row} = item, c = row.counters;
    const ratio = numberCell(row, "counters.hbm_read_bytes", item.ratio, "x");
    if (item.ratio !== null && item.predicted) ratio[0] += " (predicted)";
    return [
      bytesCell(row, "model.compulsory_bytes", row.model.compulsory_bytes),
      bytesCell(row, "counters.hbm_read_bytes", c.hbm_read_bytes),
      bytesCell(row, "counters.hbm_write_bytes", c.hbm_write_bytes), ratio,
      numberCell(row, "derived.hbm_gbps", row.derived.hbm_gbps, " GB/s"),
      bytesCell(row, "counters.sm_l2_read_bytes", c.sm_l2_read_bytes),
      bytesCell(row, "model.predicted_hbm_bytes", row.model.predicted_hbm_bytes),
    ];
  }},
  "table-memory": {wanted: (item) => isOk(item) || item.row.status === "oom", cells(item) {
    const {row} = item, m = row.memory;
    return [
      [`${row.problem.seqlen_kv}`, row.problem.seqlen_kv], row.status,
      bytesCell(row, "memory.workspace_bytes", m.workspace_bytes),
      bytesCell(row, "memory.peak_bytes", m.peak_bytes),
      isOk(item) ? "fits" : bytesCell(row, "memory.needed_bytes", m.needed_bytes),
      isOk(item) ? "fits" : bytesCell(row, "memory.free_bytes", m.free_bytes),
    ];
  }},
  "table-accuracy": {wanted: isOk, cells({row}) {
    const v = row.verify;
    return [
      v.shape ? `${v.status} at ${v.shape}` : v.status, numberCell(row, "verify.rel_err", v.rel_err),
      numberCell(row, "verify.rms_err", v.rms_err), numberCell(row, "verify.max_abs_err", v.max_abs_err),
      numberCell(row, "verify.tolerance_max", v.tolerance_max),
      numberCell(row, "verify.tolerance_max", quotient(v.max_abs_err, v.tolerance_max)),
      numberCell(row, "derived.tflops", row.derived.tflops),
    ];
  }},
  "table-noise": {wanted: isOk, cells(item) {
    const {row} = item, time = row.time_us, clock = row.clock_mhz || {median: null, min: null, max: null};
    const timing = time
        ? [[`${time.n}`, time.n], timeCell(row, "time_us", time.median),
           numberCell(row, "time_us", quotient(50 * (time.ci95[1] - time.ci95[0]), time.median), " %"),
           detectableCell(item), timeCell(row, "time_us", time.min)]
        : Array(5).fill(missingCell(row, "time_us"));
    return [
      ...timing, numberCell(row, "clock_mhz", clock.median, " MHz"),
      clock.min === null || clock.max === null ? missingCell(row, "clock_mhz")
          : `${significant(clock.min, 4)} to ${significant(clock.max, 4)} MHz`,
      numberCell(row, "power_w", row.power_w, " W"),
      numberCell(row, "temperature_c", row.temperature_c, " C"),
      time ? time.l2 : missingCell(row, "time_us"), flagsText(row),
    ];
  }},
  "table-model": {wanted: (item) => isOk(item) && !item.sim, cells({row, moved}) {
    const time = row.time_us ? row.time_us.median : null, {model} = row;
    return [
      timeCell(row, "time_us", time), timeCell(row, "model.predicted_time_us", model.predicted_time_us),
      numberCell(row, "model.predicted_time_us", quotient(model.predicted_time_us, time)),
      bytesCell(row, "counters.hbm_read_bytes", moved),
      bytesCell(row, "model.predicted_hbm_bytes", model.predicted_hbm_bytes),
      numberCell(row, "counters.hbm_read_bytes", quotient(model.predicted_hbm_bytes, moved)),
    ];
  }},
  "table-not-ok": {wanted: (item) => !isOk(item), cells: ({row}) => [row.status, reasonText(row)]},
  "table-detail": {wanted: () => true, cells({row}) {
    return [
      row.status, verifyText(row), timeCell(row, "time_us", row.time_us && row.time_us.median),
      [flopsText(row), row.model.flops], resourcesText(row), flagsText(row), row.repro,
    ];
  }},
};

comparedItems.forEach((list, i) => {
  tableOf[`table-comparison-${i + 1}`] = {items: list, whole({row}) {
    const time = (us) => us === null ? "n/a" : [formatTime(us), us];
    return [
      row.case, row.device, row.verdict, time(row.base_us), time(row.new_us),
      row.ratio === null ? "n/a" : [changeText(row.ratio), row.ratio],
      row.ratio === null ? "n/a"
          : row.ci95_low === null || row.ci95_high === null ? "n/a: too few rounds"
          : `${changeText(row.ci95_low)} to ${changeText(row.ci95_high)}`,
      row.q === null ? "n/a" : [significant(row.q, 2), row.q], row.figures || "no change", row.reason,
    ];
  }};
});

tableOf["table-history"] = {items: historyItems, whole({row, time, point}) {
  return [
    row.case, row.device, point.date, point.commit, point.run, [formatTime(time), time],
    `${formatTime(point.ci95_us[0])} to ${formatTime(point.ci95_us[1])}`, [formatTime(point.level_us), point.level_us],
    point.change === null ? "none" : [changeText(point.change), point.change],
  ];
}};

// All cells of an item's line.
const cellsOf = ({spec}, item) =>
    spec.whole ? spec.whole(item) : [item.row.case, deviceText(item), ...spec.cells(item)];

function makeLine(table, item) {
  const line = document.createElement("tr");
  if (item.ref) line.dataset.row = item.ref;
  cellsOf(table, item).forEach((cell, i) => {
    const [text, sort] = Array.isArray(cell) ? cell : [cell, null];
    const box = line.insertCell();
    if (sort !== null && Number.isFinite(sort)) box.dataset.v = sort;
    if (i === 0 && item.ref && casePanel) {
      const link = box.appendChild(document.createElement("a"));
      link.href = "#case";
      link.textContent = shortened(text);
    } else {
      box.textContent = shortened(text);
    }
  });
  return line;
}

function lineOf(table, item) {
  if (!table.lines.has(item)) table.lines.set(item, makeLine(table, item));
  return table.lines.get(item);
}

const tables = [];

function addTable(node) {
  const spec = tableOf[node.id];
  const table = {
    node, spec, items: spec ? spec.items || items.filter(spec.wanted) : null, limit: 500, column: -1, down: false,
    lines: new Map(),  // made so far, by item
    details: node.closest("details"), dirty: true,
    more: d3.select(node.closest(".scroll").parentNode)
        .insert("p", () => node.closest(".scroll").nextSibling).attr("class", "more").node(),
  };
  const old = document.querySelector(`[data-more="${node.id}"]`);
  if (old) old.remove();
  Array.from(node.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button).addEventListener("click", () => sortTable(table, column));
  });
  node.addEventListener("click", (event) => {
    const link = event.target.closest("a"), line = event.target.closest("tr[data-row]");
    if (!link || !line) return;
    event.preventDefault();
    openCase(itemOf.get(line.dataset.row));
  });
  if (table.details) {
    table.details.open = false;
    table.details.addEventListener("toggle", () => { if (table.details.open && table.dirty) fillTable(table); });
  }
  tables.push(table);
}

function sortTable(table, column) {
  table.down = table.column === column && !table.down;
  table.column = column;
  Array.from(table.node.tHead.rows[0].cells).forEach((head, i) => {
    if (i === column) head.setAttribute("aria-sort", table.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  fillTable(table);
}

// Numbers before text ("n/a: reason" stays last in both directions).
function compareKeys(a, b, down) {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  const order = typeof a === "number" ? a - b : byText(a, b);
  return down ? -order : order;
}

// The ranking, whose lines are no rows of the record: hidden by the legend, sorted in place.
function fillPlainTable(table) {
  const lines = Array.from(table.node.tBodies[0].rows);
  for (const line of lines) line.hidden = isHiddenName(line.dataset.kernel);
  if (table.column < 0) return;
  const key = (line) => {
    const cell = line.cells[table.column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  table.node.tBodies[0].append(...lines.sort((a, b) => compareKeys(key(a), key(b), table.down)));
}

function fillTable(table) {
  table.dirty = false;
  if (!table.items) {
    fillPlainTable(table);
    return;
  }
  let shown = table.items.filter(isShown);
  if (table.column >= 0) {
    const keys = new Map(shown.map((item) => {
      const cell = cellsOf(table, item)[table.column];
      return [item, Array.isArray(cell) ? cell[1] : cell];
    }));
    shown.sort((a, b) => compareKeys(keys.get(a), keys.get(b), table.down));
  }
  const all = shown.length;
  shown = shown.slice(0, table.limit);
  table.node.tBodies[0].replaceChildren(...shown.map((item) => lineOf(table, item)));
  table.more.textContent = all > shown.length ? `${shown.length} of ${counted(all, "row")}. ` : "";
  if (all === shown.length) return;
  for (const [label, limit] of [["Show 500 more", table.limit + 500], ["Show all", Infinity]]) {
    const button = table.more.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => {
      table.limit = limit;
      fillTable(table);
    });
  }
}

// Paper keeps the figures too: the table of all rows is open while the page is printed.
function openForPrint(on) {
  const table = tables.find(({node}) => node.id === "table-detail");
  if (!table) return;
  if (on) {
    table.closed = !table.details.open;
    if (table.dirty) fillTable(table);
    table.details.open = true;
  } else if (table.closed) {
    table.details.open = false;
  }
}

// Fills the tables that are open, and marks the others for when they are. Those of `ids` have other
// texts than before.
function refreshTables(ids = null) {
  for (const table of tables) {
    if (ids && !ids.includes(table.node.id)) continue;
    if (ids) table.lines.clear();
    table.dirty = true;
    if (!table.details || table.details.open) fillTable(table);
  }
}
