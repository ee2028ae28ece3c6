// ---- One case in detail ------------------------------------------------------------------------------------

function factList(parent, title, facts) {
  const group = parent.appendChild(document.createElement("div"));
  group.appendChild(document.createElement("h4")).textContent = title;
  const list = group.appendChild(document.createElement("dl"));
  for (const [name, value] of facts) {
    list.appendChild(document.createElement("dt")).textContent = name;
    list.appendChild(document.createElement("dd")).textContent = shortened(String(value), 1000);
  }
}

function commandLine(parent, title, command) {
  const box = parent.appendChild(document.createElement("p"));
  box.className = "command";
  box.append(`${title} `);
  box.appendChild(document.createElement("code")).textContent = shortened(command, 2000);
  const button = box.appendChild(document.createElement("button"));
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(box.querySelector("code"));
      button.textContent = "Selected";
    }
  });
}

const show = (row, path, value, format) => value === null || value === undefined ? missingCell(row, path) : format(value);
const withUnit = (unit) => (value) => significant(value, 4) + unit;

// Not in pages without the section of the cases.
const casePanel = document.getElementById("case");

function openCase(item) {
  if (!casePanel) return;
  state.item = item;
  fillCase();
  writeHash();
  casePanel.scrollIntoView({block: "start", behavior: "auto"});
  casePanel.focus({preventScroll: true});
}

function fillCase() {
  const panel = casePanel, {item} = state;
  if (!panel) return;
  panel.hidden = !item;
  panel.textContent = "";
  if (!item) return;
  const {row} = item, time = row.time_us, c = row.counters, m = row.model;
  const head = panel.appendChild(document.createElement("h3"));
  head.textContent = cut(row.case, 200);
  const close = panel.appendChild(document.createElement("button"));
  close.type = "button";
  close.className = "close";
  close.textContent = "Close";
  close.addEventListener("click", () => {
    state.item = null;
    fillCase();
    writeHash();
  });
  panel.appendChild(document.createElement("p")).textContent =
      `${deviceText(item)} \u00b7 ${cut(row.gpu, 80)} \u00b7 ${row.status}${row.status === "ok" ? "" : `: ${shortened(reasonText(row))}`}`;
  if (time) samplesChart(panel, item);
  const columns = panel.appendChild(document.createElement("div"));
  columns.className = "facts";
  factList(columns, "Time", [
    ["median", show(row, "time_us", time && time.median, formatTime)],
    ["95 % interval", time ? `${formatTime(time.ci95[0])} to ${formatTime(time.ci95[1])}` : missingCell(row, "time_us")],
    ["fastest", show(row, "time_us", time && time.min, formatTime)],
    ["samples", time ? `${time.n}, ended by ${time.stopped_by}` : missingCell(row, "time_us")],
    ["how", time ? `${time.timer} timer, ${time.l2} L2, ${time.power}` : missingCell(row, "time_us")],
    ["least change found", [detectableCell(item)].flat()[0]],
    ["cycles", show(row, "cycles", row.cycles.median, (v) => Math.round(v).toLocaleString("en-US"))],
    ["predicted", show(row, "model.predicted_time_us", m.predicted_time_us, formatTime)],
    ...(row.problem.dtype === "e4m3" ? [
      ["quantising", show(row, "quantize_us", row.quantize_us?.median, formatTime)],
      ["with quantising", show(row, "time_with_quantize_us", row.time_with_quantize_us, formatTime)],
      ["saturated elements", show(row, "saturated_elements", row.saturated_elements, String)],
    ] : []),
  ]);
  factList(columns, "Throughput", [
    ["model", show(row, "derived.tflops", row.derived.tflops, withUnit(" TFLOPS"))],
    ["hardware", show(row, "derived.hardware_tflops", row.derived.hardware_tflops, withUnit(" TFLOPS"))],
    ["of the roof", show(row, "derived.roof_pct", row.derived.roof_pct, withUnit(" %"))],
    ["tensor pipe", show(row, "counters.tensor_pipe_pct", c.tensor_pipe_pct, withUnit(" % busy"))],
    ["exponential unit", show(row, "counters.xu_pipe_pct", c.xu_pipe_pct, withUnit(" % busy"))],
    ["model FLOPs", flopsText(row)],
    ["tensor operations", show(row, "counters.tensor_ops", c.tensor_ops, (v) => `${significant(v / 1e9, 4)} GFLOP`)],
  ]);
  factList(columns, "Bytes", [
    ["compulsory", formatBytes(m.compulsory_bytes)],
    ["HBM read", show(row, "counters.hbm_read_bytes", c.hbm_read_bytes, formatBytes)],
    ["HBM written", show(row, "counters.hbm_write_bytes", c.hbm_write_bytes, formatBytes)],
    ["HBM rate", show(row, "derived.hbm_gbps", row.derived.hbm_gbps, withUnit(" GB/s"))],
    ["SM to L2 read", show(row, "counters.sm_l2_read_bytes", c.sm_l2_read_bytes, formatBytes)],
    ["SM to L2 written", show(row, "counters.sm_l2_write_bytes", c.sm_l2_write_bytes, formatBytes)],
    ["L2 read, merged", show(row, "counters.l2_read_bytes", c.l2_read_bytes, formatBytes)],
    ["predicted HBM", show(row, "model.predicted_hbm_bytes", m.predicted_hbm_bytes, formatBytes)],
    ["workspace", show(row, "memory.workspace_bytes", row.memory.workspace_bytes, formatBytes)],
    ["peak", show(row, "memory.peak_bytes", row.memory.peak_bytes, formatBytes)],
  ]);
  factList(columns, "State and result", [
    ["SM clock", show(row, "clock_mhz", row.clock_mhz && row.clock_mhz.median, withUnit(" MHz"))],
    ["power", show(row, "power_w", row.power_w, withUnit(" W"))],
    ["energy", show(row, "energy", row.energy?.joules_per_launch, withUnit(" J a launch"))],
    ["energy a FLOP", show(row, "energy", row.energy?.pj_per_flop, withUnit(" pJ"))],
    ["temperature", show(row, "temperature_c", row.temperature_c, withUnit(" C"))],
    ["flags", flagsText(row)],
    ["verified", verifyText(row)],
    ["largest error", row.verify.worst || "n/a"],
    ["resources", resourcesText(row)],
    ["kernels run", row.kernels_run.length ? row.kernels_run.join(", ") : missingCell(row, "kernels_run")],
    ["definition", row.definition_hash],
  ]);
  commandLine(panel, "Reproduce", row.repro);
  // Nothing that a shell would take for more than a word.
  if (item.sim || !/^[\w./=:,@+-]+$/.test(row.case + row.device)) return;
  const profile = `rooflash profile ${row.case} --device ${row.device}${time && time.l2 === "warm" ? " --l2 warm" : ""}`;
  commandLine(panel, "What it waits for", profile);
  commandLine(panel, "Nsight Compute", `${profile} --tool ncu`);
  commandLine(panel, "Nsight Systems", `${profile} --tool nsys`);
}

// Each sample in the order taken, against the median and its interval.
function samplesChart(panel, item) {
  const {samples, median, ci95, n} = item.row.time_us;
  if (samples.length < 2) return;
  const holder = panel.appendChild(document.createElement("div"));
  holder.className = "samples";
  const clocks = item.row.clock_mhz && item.row.clock_mhz.samples.length === samples.length ? item.row.clock_mhz.samples : null;
  const unit = median < 999.5 ? ["us", 1] : median < 999.5e3 ? ["ms", 1e3] : ["s", 1e6];
  const spots = samples.map((us, i) => ({row: item.row, us, i, kernel: item.kernel, sim: item.sim}));
  const figure = addFigure(holder, {
    title: samples.length < n ? `Samples (${samples.length} of ${n})` : `Samples (${n})`,
    description: "Time of each sample in the order taken; the band is the 95 % interval of the median.",
    tall: () => 210,
    draw(self) {
      const box = plotBox(self, {left: 74, right: 16});
      const [low, high] = d3.extent(samples.concat(ci95)), pad = (high - low || high * 0.01) * 0.12;
      const x = d3.scaleLinear().domain([-0.5, samples.length - 0.5]).range([box.left, box.right]);
      const y = d3.scaleLinear().domain([(low - pad) / unit[1], (high + pad) / unit[1]]).range([box.bottom, box.top]);
      const layer = addAxes(self, box, x, y, {values: x.ticks(10).filter(Number.isInteger), format: (v) => `${v + 1}`},
          linearTicks(y, 5, (v) => `${Number(v.toPrecision(6))}`), "Sample", `Time, ${unit[0]}`);
      layer.append("rect").attr("class", "threshold").attr("x", box.left).attr("width", box.right - box.left)
          .attr("y", y(ci95[1] / unit[1])).attr("height", Math.max(1, y(ci95[0] / unit[1]) - y(ci95[1] / unit[1])));
      layer.append("line").attr("class", "base").attr("x1", box.left).attr("x2", box.right)
          .attr("y1", y(median / unit[1])).attr("y2", y(median / unit[1]));
      addMarks(self, layer, spots, (s) => x(s.i), (s) => y(s.us / unit[1]), box, (s) =>
          `sample ${s.i + 1}: ${formatTime(s.us)}${clocks ? `\nSM clock ${clocks[s.i].toFixed(0)} MHz` : ""}`);
    },
  });
  // Not one of the page's charts: it is drawn now, and goes with the panel.
  figures.splice(figures.indexOf(figure), 1);
  drawFigure(figure);
}
