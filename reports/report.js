// Draws the charts of the report from the records embedded in the page, and makes its tables
// sortable and filterable. Text from the records reaches the page through textContent alone.
(() => {
  "use strict";

  // Bidirectional and invisible marks would change how the text around them reads; the data that is
  // saved keeps them.
  const source = document.getElementById("records").textContent;
  const marks = /[\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]/g;
  const records = JSON.parse(source.replace(marks, "\ufffd"));
  const shapes = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond,
                  d3.symbolCross, d3.symbolStar, d3.symbolWye];
  const dashes = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2 1 2", "1 4"];
  const state = {terms: [], hidden: new Set()};

  // ---- Data ----------------------------------------------------------------------------------

  const number = (value, digits = 3) => {
    if (value === null || value === undefined) return "n/a";
    if (value === 0) return "0";
    const exponent = Math.floor(Math.log10(Math.abs(value)));
    return value.toFixed(Math.max(0, Math.min(12, digits - 1 - exponent)));
  };
  const count = (value) => value >= 1024 && value % 1024 === 0 ? `${value / 1024}k` : `${value}`;
  const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (value >= 1024 && i < units.length - 1) { value /= 1024; i++; }
    return `${number(value)} ${units[i]}`;
  };
  const time = (us) => us < 1000 ? `${number(us)} us` : us < 1e6 ? `${number(us / 1e3)} ms`
                                                                : `${number(us / 1e6)} s`;

  const cut = (text, length) =>
      text.length > length ? `${text.slice(0, length - 1)}\u2026` : text;

  const kernelLabel = (row) => row.provider === "builtin" || row.kernel.includes(row.provider)
      ? row.kernel : `${row.provider}:${row.kernel}`;

  const maskLabel = (p) => {
    let text = p.mask === "none" ? "full" : p.mask;
    if (p.window) text += ` ${p.window.map((v) => v < 0 ? "inf" : v).join(",")}`;
    return p.mask !== "none" && p.align === "top-left" ? `${text} top-left` : text;
  };

  // The id that the static table gives to the row's line; bytes outside the safe set become "_".
  function anchorOf(row, run) {
    let text = `case-${row.case}@${row.device}`;
    if (row.round) text += `.r${row.round}`;
    if (run) text += `.run${run + 1}`;
    return Array.from(new TextEncoder().encode(text), (byte) => {
      const c = String.fromCharCode(byte);
      return /[A-Za-z0-9/._@-]/.test(c) ? c : "_";
    }).join("");
  }

  function makePoint(row, run) {
    const read = row.counters.hbm_read_bytes, written = row.counters.hbm_write_bytes;
    const counted = read !== null && written !== null ? read + written : null;
    const moved = counted ?? (row.simulated ? row.model.predicted_hbm_bytes : null);
    const compulsory = row.model.compulsory_bytes;
    const p = row.problem;
    let facet = `${p.pass} ${p.dtype} d${p.headdim}`;
    if (p.headdim_v !== p.headdim) facet += `-${p.headdim_v}`;
    facet += `, ${plural(p.heads_q, "head")}`;
    if (p.heads_kv !== p.heads_q) facet += ` on ${p.heads_kv}`;
    if (p.distribution !== "normal") facet += `, ${p.distribution}`;
    for (const [name, value] of Object.entries(p.options)) facet += `, ${name}=${value}`;
    const where = records.length > 1 ? `${row.device}, run ${run + 1}` : row.device;
    return {
      row, run, where, facet, mask: maskLabel(p), kernel: kernelLabel(row), sim: row.simulated,
      id: row.case, moved, predicted: counted === null, tflops: row.derived.tflops,
      x: row.derived.intensity_flop_per_byte ?? (moved ? row.model.flops / moved : null),
      xc: compulsory ? row.model.flops / compulsory : null,
      ratio: moved && compulsory ? moved / compulsory : null,
      low: row.model.flops / row.time_us.ci95[1] / 1e6,
      high: row.model.flops / row.time_us.ci95[0] / 1e6,
    };
  }

  // One point a case and device: of several rounds the middle one by time.
  function makePoints() {
    const points = [];
    records.forEach((record, run) => {
      const cases = d3.nest().key((row) => JSON.stringify([row.device, row.case, row.provider]))
          .entries(record.rows.filter((row) => row.status === "ok" && row.time_us));
      for (const {values} of cases) {
        values.sort((a, b) => a.time_us.median - b.time_us.median);
        points.push(makePoint(values[Math.floor((values.length - 1) / 2)], run));
      }
    });
    return points;
  }

  const points = makePoints();
  const kernels = Array.from(new Set(points.map((p) => p.kernel))).sort();
  const slot = new Map(kernels.map((kernel, i) => [kernel, i]));
  const kernelClass = (kernel) => `k${slot.get(kernel) % 7}`;
  // After seven kernels colours repeat, with another shape.
  const shapeOf = (kernel) => shapes[(slot.get(kernel) + Math.floor(slot.get(kernel) / 7)) % 7];
  const dashOf = (kernel) => dashes[(slot.get(kernel) + Math.floor(slot.get(kernel) / 7)) % 7];
  const matches = (id) => state.terms.every((term) => id.toLowerCase().includes(term));
  const visible = (p) => !state.hidden.has(p.kernel) && matches(p.id);

  function describePoint(p) {
    const row = p.row, lines = [p.id, `${p.where}${p.sim ? ", simulated" : ""}`];
    lines.push(`${time(row.time_us.median)} (95 %: ${time(row.time_us.ci95[0])} to ` +
               `${time(row.time_us.ci95[1])}, n = ${row.time_us.n})`);
    lines.push(`${number(p.tflops)} TFLOPS, ${number(row.derived.roof_pct)} % of the roof`);
    lines.push(p.moved ? `HBM ${bytes(p.moved)}${p.predicted ? " (predicted)" : ""}, ` +
                         `${number(p.ratio)}x compulsory, ${number(p.x)} FLOP/byte`
                       : `HBM bytes n/a: ${row.missing["counters.hbm_read_bytes"] ||
                                           row.counters.reason || row.counters.status}`);
    if (row.flags.length) lines.push(`flags: ${row.flags.join(", ")}`);
    return lines.join("\n");
  }

  // ---- Charts: shared parts --------------------------------------------------------------------

  const tooltip = document.getElementById("tooltip");
  function showTooltip(node, text) {
    tooltip.textContent = text;
    tooltip.hidden = false;
    const box = node.getBoundingClientRect(), tip = tooltip.getBoundingClientRect();
    const left = Math.max(4, Math.min(box.right + 10, window.innerWidth - tip.width - 24));
    const above = box.top - tip.height - 8;
    tooltip.style.left = `${left + window.scrollX}px`;
    tooltip.style.top = `${(above > 0 ? above : box.bottom + 8) + window.scrollY}px`;
  }
  const hideTooltip = () => { tooltip.hidden = true; };

  // Hover, focus and click of the marks of one chart. One tab stop a chart; arrows go on from there.
  function interact(selection) {
    const nodes = selection.nodes();
    selection.attr("tabindex", (d, i) => i ? -1 : 0).attr("role", "img")
        .attr("aria-label", describePoint)
        .on("mouseenter focus", function(p) { showTooltip(this, describePoint(p)); })
        .on("mouseleave blur", hideTooltip)
        .on("click", (p) => { location.hash = anchorOf(p.row, p.run); })
        .on("keydown", function(p) {
          const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[d3.event.key];
          if (step) nodes[(nodes.indexOf(this) + step + nodes.length) % nodes.length].focus();
          if (d3.event.key === "Enter") location.hash = anchorOf(p.row, p.run);
          if (d3.event.key === "Escape") hideTooltip();
          if (step) d3.event.preventDefault();
        });
  }

  let nextId = 0;
  function addFigure(container, title, description, width, height) {
    const figure = d3.select(container).append("figure");
    const caption = figure.append("figcaption");
    caption.append("span").text(title);
    const id = `chart-${nextId++}`;
    const svg = figure.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img")
        .attr("xmlns", "http://www.w3.org/2000/svg").attr("id", id)
        .attr("aria-labelledby", `${id}-title ${id}-desc`);
    svg.append("title").attr("id", `${id}-title`).text(title);
    svg.append("desc").attr("id", `${id}-desc`).text(description);
    caption.append("button").attr("type", "button").text("Save SVG")
        .on("click", () => saveSvg(svg.node(), title));
    return {figure, svg, id};
  }

  function addAxes(svg, box, x, y, xAxis, yAxis, xTitle, yTitle) {
    const grid = svg.append("g");
    grid.selectAll("line.y").data(yAxis.tickValues() || y.ticks()).enter().append("line")
        .attr("class", "grid").attr("x1", box.left).attr("x2", box.right).attr("y1", y)
        .attr("y2", y);
    svg.append("g").attr("transform", `translate(0,${box.bottom})`).call(xAxis);
    svg.append("g").attr("transform", `translate(${box.left},0)`).call(yAxis);
    svg.append("text").attr("class", "axis-title").attr("text-anchor", "middle")
        .attr("x", (box.left + box.right) / 2).attr("y", box.bottom + 36).text(xTitle);
    svg.append("text").attr("class", "axis-title").attr("text-anchor", "middle")
        .attr("transform", `translate(11,${(box.top + box.bottom) / 2}) rotate(-90)`).text(yTitle);
    return grid;
  }

  // The kernel's mark in `group`: filled where measured, outlined with a dot where simulated.
  function addMark(group, kernel, sim, size = 56) {
    group.append("path").attr("class", "mark").attr("d", d3.symbol().type(shapeOf(kernel)).size(size)());
    if (sim) group.append("circle").attr("class", "core").attr("r", 1.6);
  }

  function addPoints(svg, data, x, y) {
    const marks = svg.append("g").selectAll("g").data(data).enter().append("g")
        .attr("class", (p) => `point ${kernelClass(p.kernel)}${p.sim ? " sim" : ""}`)
        .attr("transform", (p) => `translate(${x(p)},${y(p)})`);
    marks.each(function(p) { addMark(d3.select(this), p.kernel, p.sim); });
    interact(marks);
  }

  function note(figure, text) { figure.append("p").attr("class", "offframe").text(text); }

  // ---- Roofline --------------------------------------------------------------------------------

  function roofsOf(run, device, gpu) {
    const own = records[run].ceilings.find((c) => c.device === device);
    const sheet = records[run].datasheet.find((d) => d.gpu === gpu);
    const roofs = [];
    if (own) {
      roofs.push({solid: true, name: own.source, what: own.hbm_copy_gbps ? "HBM copy" : "HBM read",
                  hbm: own.hbm_copy_gbps ?? own.hbm_read_gbps, tensor: own.gemm_tflops});
    }
    if (sheet) {
      roofs.push({solid: false, name: "datasheet, dense", what: "HBM", hbm: sheet.hbm_gbps,
                  tensor: sheet.tensor_tflops});
    }
    return roofs.filter((roof) => roof.hbm);
  }

  // Axis ranges from the ceilings alone, so that the reports of one GPU can be laid side by side.
  function roofFrame(roofs) {
    const peaks = roofs.flatMap((roof) => Object.values(roof.tensor));
    const ridges = roofs.flatMap((r) => Object.values(r.tensor).map((t) => t * 1e3 / r.hbm));
    if (!peaks.length) return null;
    const x0 = 10 ** Math.floor(Math.log10(d3.min(ridges) / 100));
    const x1 = 10 ** Math.ceil(Math.log10(d3.max(ridges) * 60));
    const y0 = 10 ** Math.floor(Math.log10(d3.min(roofs, (r) => r.hbm) * x0 / 1e3));
    return {x: [x0, x1], y: [y0, d3.max(peaks) * 2.5]};
  }

  function drawRoof(svg, roof, dtype, x, y, clip) {
    const tensor = roof.tensor[dtype];
    if (!tensor) return;
    const [x0, x1] = x.domain(), ridge = tensor * 1e3 / roof.hbm;
    const path = [[x0, roof.hbm * x0 / 1e3], [ridge, tensor], [x1, tensor]];
    svg.append("path").attr("class", roof.solid ? "roof" : "datasheet").attr("clip-path", clip)
        .attr("d", d3.line()(path.map(([a, b]) => [x(a), y(b)])));
  }

  function labelRoofs(svg, roofs, dtype, x, y) {
    const known = roofs.filter((roof) => roof.tensor[dtype]);
    if (!known.length) return;
    const [x0, x1] = x.domain();
    const top = d3.max(known, (roof) => roof.tensor[dtype]);
    const hbm = d3.max(known, (roof) => roof.hbm);
    const slope = Math.atan2(y(hbm * x0 * 10) - y(hbm * x0), x(x0 * 10) - x(x0)) * 180 / Math.PI;
    const start = x0 * 2;
    known.forEach((roof, i) => {
      const key = roof.solid ? "\u2014" : "- -";
      svg.append("text").attr("class", "halo").attr("text-anchor", "end").attr("x", x(x1) - 6)
          .attr("y", y(top) - 7 - 15 * i)
          .text(`${key} ${number(roof.tensor[dtype])} TFLOPS (${roof.name})`);
      svg.append("text").attr("class", "halo")
          .attr("transform", `translate(${x(start)},${y(hbm * start / 1e3)}) rotate(${slope})`)
          .attr("y", -7 - 15 * i)
          .text(`${key} ${roof.what} ${roof.hbm.toFixed(0)} GB/s (${roof.name})`);
    });
  }

  // Which mark is which kernel, bottom right, far below the roofs.
  function addKey(svg, data, box) {
    const shown = kernels.filter((kernel) => data.some((p) => p.kernel === kernel)).slice(0, 10);
    const rows = svg.append("g").selectAll("g").data(shown).enter().append("g")
        .attr("class", (kernel) => `key ${kernelClass(kernel)}`)
        .attr("transform", (_, i) =>
            `translate(${box.right - 12},${box.bottom - 12 - 16 * (shown.length - 1 - i)})`);
    rows.each(function(kernel) {
      const simulated = data.filter((p) => p.kernel === kernel).every((p) => p.sim);
      addMark(d3.select(this).append("g").attr("class", simulated ? "sim" : ""), kernel, simulated);
    });
    rows.append("text").attr("class", "halo").attr("text-anchor", "end").attr("x", -9)
        .attr("y", 4).text((kernel) => cut(kernel, 30));
  }

  function drawRoofline(container, data, run, device, gpu, dtype) {
    const roofs = roofsOf(run, device, gpu), frame = roofFrame(roofs);
    const where = data[0].where, title = `${dtype} on ${gpu || device} (${where})`;
    if (!frame) {
      d3.select(container).append("p").attr("class", "note")
          .text(`${title}: no roofs in this record, so nothing is drawn; see the data table.`);
      return;
    }
    const box = {left: 62, right: 570, top: 10, bottom: 372};
    const {figure, svg, id} = addFigure(container, title,
        `Log-log roofline: TFLOPS against FLOP per HBM byte for ${plural(data.length, "row")}.`, 600, 420);
    const x = d3.scaleLog().domain(frame.x).range([box.left, box.right]);
    const y = d3.scaleLog().domain(frame.y).range([box.bottom, box.top]);
    const decades = (scale) => scale.ticks().filter((v) => Number.isInteger(Math.log10(v)) ||
        Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9);
    const plain = (v) => v >= 1 ? v.toLocaleString("en-US", {useGrouping: true}) : `${v}`;
    const grid = addAxes(svg, box, x, y, d3.axisBottom(x).tickValues(decades(x)).tickFormat(plain),
        d3.axisLeft(y).tickValues(decades(y)).tickFormat(plain),
        "Intensity, FLOP per HBM byte", "TFLOPS (model FLOPs / median time)");
    grid.selectAll("line.x").data(decades(x)).enter().append("line").attr("class", "grid")
        .attr("x1", x).attr("x2", x).attr("y1", box.top).attr("y2", box.bottom);
    svg.append("clipPath").attr("id", `${id}-clip`).append("rect").attr("x", box.left)
        .attr("y", box.top).attr("width", box.right - box.left)
        .attr("height", box.bottom - box.top);
    const clip = `url(#${id}-clip)`;
    for (const roof of roofs) drawRoof(svg, roof, dtype, x, y, clip);
    labelRoofs(svg, roofs, dtype, x, y);
    const inside = (v, [low, high]) => v >= low && v <= high;
    const shown = data.filter((p) => p.x && p.tflops);
    const onFrame = shown.filter((p) => inside(p.x, frame.x) && inside(p.tflops, frame.y));
    const gaps = onFrame.filter((p) => p.xc);
    svg.append("g").attr("clip-path", clip).selectAll("line").data(gaps).enter().append("line")
        .attr("class", (p) => `gap ${kernelClass(p.kernel)}`).attr("x1", (p) => x(p.xc))
        .attr("x2", (p) => x(p.x)).attr("y1", (p) => y(p.tflops)).attr("y2", (p) => y(p.tflops));
    svg.append("g").attr("clip-path", clip).selectAll("circle").data(gaps).enter()
        .append("circle").attr("class", (p) => `compulsory ${kernelClass(p.kernel)}`)
        .attr("r", 3).attr("cx", (p) => x(p.xc)).attr("cy", (p) => y(p.tflops));
    addPoints(svg, onFrame, (p) => x(p.x), (p) => y(p.tflops));
    addKey(svg, onFrame, box);
    const off = shown.filter((p) => !onFrame.includes(p));
    if (off.length) {
      note(figure, `Outside the frame: ${off.slice(0, 20).map((p) =>
          `${p.id} (${number(p.x)} FLOP/byte, ${number(p.tflops)} TFLOPS)`).join("; ")}` +
          (off.length > 20 ? ` and ${off.length - 20} more` : ""));
    }
    const bare = data.length - shown.length;
    if (bare) {
      note(figure, `Without measured HBM bytes, and so not drawn: ${plural(bare, "row")}.`);
    }
  }

  // ---- Throughput and bytes ----------------------------------------------------------------------

  // Small multiples: one row of charts a dtype, head dim and device, one column a mask.
  function facets(data) {
    const keyed = d3.nest().key((p) => JSON.stringify([p.where, p.facet, p.mask])).entries(data);
    const rank = (mask) => mask === "full" ? 0 : mask === "causal" ? 1 : 2;
    return keyed.map(({values}) => values).sort((a, b) =>
        d3.ascending(a[0].where, b[0].where) ||
        a[0].facet.localeCompare(b[0].facet, "en", {numeric: true}) ||
        rank(a[0].mask) - rank(b[0].mask) || d3.ascending(a[0].mask, b[0].mask));
  }
  const facetTitle = (p) => `${p.facet}, ${p.mask} (${p.where}${p.sim ? ", simulated" : ""})`;
  const lengthOf = (p) => p.row.problem.seqlen_kv;

  // Lines of one chart: a kernel, split by batch or query length where a length has several.
  function linesOf(data) {
    const lines = [];
    for (const {key, values} of d3.nest().key((p) => p.kernel).entries(data)) {
      const unique = new Set(values.map(lengthOf)).size === values.length;
      const split = (p) => unique ? "" : `b${p.row.problem.batch} q${
          p.row.problem.seqlen_q === lengthOf(p) ? "=k" : p.row.problem.seqlen_q}`;
      for (const part of d3.nest().key(split).entries(values)) {
        part.values.sort((a, b) => lengthOf(a) - lengthOf(b));
        lines.push({kernel: key, name: `${key} ${part.key}`.trim(), points: part.values});
      }
    }
    return lines;
  }

  function addLineLabels(svg, lines, y, box) {
    const labels = lines.map((line) => ({line, at: y(line.points[line.points.length - 1].tflops)}))
        .sort((a, b) => a.at - b.at);
    labels.forEach((label, i) => {
      if (i) label.at = Math.max(label.at, labels[i - 1].at + 13);
    });
    const over = labels.length ? labels[labels.length - 1].at - box.bottom : 0;
    svg.append("g").selectAll("text").data(labels).enter().append("text").attr("class", "halo")
        .attr("x", box.right + 8).attr("y", (label) => label.at + 4 - Math.max(0, over))
        .text((label) => cut(label.line.name, 14));
  }

  function drawThroughput(container, data, top) {
    const drawn = data.filter((p) => p.tflops !== null);
    if (!drawn.length) return;
    const box = {left: 58, right: 500, top: 10, bottom: 252};
    const {svg} = addFigure(container, facetTitle(data[0]),
        "TFLOPS against sequence length, one line a kernel.", 600, 300);
    const lengths = Array.from(new Set(drawn.map(lengthOf))).sort((a, b) => a - b);
    const pad = lengths.length > 1 ? 1.12 : 2;
    const x = d3.scaleLog().base(2).domain([lengths[0] / pad, lengths[lengths.length - 1] * pad])
        .range([box.left, box.right]);
    const y = d3.scaleLinear().domain([0, top]).nice().range([box.bottom, box.top]);
    const every = Math.ceil(lengths.length / 9);
    addAxes(svg, box, x, y,
        d3.axisBottom(x).tickValues(lengths.filter((v, i) => i % every === 0)).tickFormat(count),
        d3.axisLeft(y).ticks(6), "Sequence length (keys)", "TFLOPS");
    const lines = linesOf(drawn), at = (p) => x(lengthOf(p));
    const parts = svg.selectAll("g.line").data(lines).enter().append("g")
        .attr("class", (line) => kernelClass(line.kernel));
    parts.append("path").attr("class", "band").attr("d", (line) => d3.area().x(at)
        .y0((p) => y(p.low)).y1((p) => y(p.high))(line.points));
    parts.append("path").attr("class", "series")
        .attr("stroke-dasharray", (line) => dashOf(line.kernel))
        .attr("d", (line) => d3.line().x(at).y((p) => y(p.tflops))(line.points));
    addLineLabels(svg, lines, y, box);
    addPoints(svg, lines.flatMap((line) => line.points), at, (p) => y(p.tflops));
  }

  function drawBytes(container, data, domain) {
    const drawn = data.filter((p) => p.ratio);
    if (!drawn.length) return;
    const box = {left: 66, right: 590, top: 20, bottom: 252};
    const {svg} = addFigure(container, facetTitle(data[0]),
        "HBM bytes over compulsory bytes, one bar a kernel and shape, logarithmic.", 600, 300);
    const shapeLabel = (p) => {
      const {seqlen_q: q, seqlen_kv: k, batch} = p.row.problem;
      return JSON.stringify([k, q, batch]);
    };
    const keys = Array.from(new Set(drawn.map(shapeLabel)))
        .sort((a, b) => d3.ascending(...[a, b].map((key) => JSON.parse(key)[0])) || (a < b ? -1 : 1));
    const names = kernels.filter((kernel) => drawn.some((p) => p.kernel === kernel));
    const x = d3.scaleBand().domain(keys).range([box.left, box.right]).paddingInner(.25)
        .paddingOuter(.15);
    const inner = d3.scaleBand().domain(names).range([0, x.bandwidth()]).padding(.08);
    const y = d3.scaleLog().domain(domain).range([box.bottom, box.top]);
    const every = Math.ceil(keys.length / 9);
    const label = (key) => {
      const [k, q] = JSON.parse(key);
      return q === k ? count(k) : `${count(q)}x${count(k)}`;
    };
    const ticks = [.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4]
        .filter((v) => v >= domain[0] && v <= domain[1]);
    addAxes(svg, box, x, y,
        d3.axisBottom(x).tickValues(keys.filter((v, i) => i % every === 0)).tickFormat(label),
        d3.axisLeft(y).tickValues(ticks).tickFormat((v) => `${v}x`),
        "Sequence length (keys)", "HBM bytes / compulsory bytes");
    const left = (p) => x(shapeLabel(p)) + inner(p.kernel);
    const bars = svg.append("g").selectAll("rect").data(drawn).enter().append("rect")
        .attr("class", (p) => `point bar ${kernelClass(p.kernel)}${p.sim ? " sim" : ""}`)
        .attr("x", left).attr("width", Math.max(1, inner.bandwidth()))
        .attr("y", (p) => Math.min(y(p.ratio), y(1)))
        .attr("height", (p) => Math.max(1, Math.abs(y(p.ratio) - y(1))));
    svg.append("line").attr("class", "base").attr("x1", box.left).attr("x2", box.right)
        .attr("y1", y(1)).attr("y2", y(1));
    if (inner.bandwidth() >= 22) {
      svg.append("g").selectAll("text").data(drawn).enter().append("text")
          .attr("class", "minor halo").attr("text-anchor", "middle").attr("font-size", 10)
          .attr("x", (p) => left(p) + inner.bandwidth() / 2)
          .attr("y", (p) => Math.min(y(p.ratio), y(1)) - 4).text((p) => number(p.ratio));
    }
    interact(bars);
  }

  // ---- Drawing all -------------------------------------------------------------------------------

  const chartOf = (name) => document.querySelector(`[data-chart="${name}"]`);
  // Scales come from all points, so that a filter does not move the axes.
  const topOf = new Map(d3.nest().key((p) => p.where).entries(points)
      .map(({key, values}) => [key, d3.max(values, (p) => Math.max(p.tflops, p.high)) * 1.05]));
  const ratios = points.map((p) => p.ratio).filter((ratio) => ratio);
  const ratioDomain = [Math.min(.8, (d3.min(ratios) || 1) / 1.1),
                       Math.max(2, (d3.max(ratios) || 1) * 1.4)];

  function draw() {
    hideTooltip();
    nextId = 0;
    const shown = points.filter(visible);
    for (const name of ["roofline", "throughput", "bytes"]) {
      const container = chartOf(name);
      container.textContent = "";
      if (!shown.length) d3.select(container).append("p").attr("class", "note").text("No rows.");
    }
    const roofs = d3.nest().key((p) => JSON.stringify(
        [p.run, p.row.device, p.row.gpu, p.row.problem.dtype])).sortKeys(d3.ascending)
        .entries(shown);
    for (const {key, values} of roofs) {
      drawRoofline(chartOf("roofline"), values, ...JSON.parse(key));
    }
    for (const data of facets(shown)) {
      drawThroughput(chartOf("throughput"), data, topOf.get(data[0].where));
      drawBytes(chartOf("bytes"), data, ratioDomain);
    }
  }

  // ---- Tables --------------------------------------------------------------------------------------

  // Rows beyond those in the page, from their data block; made when first needed.
  function buildRest(table) {
    const block = document.querySelector(`script[data-rest="${table.id}"]`);
    if (!block) return;
    const links = table.hasAttribute("data-links"), body = table.tBodies[0];
    for (const [id, kernel, anchor, cells] of JSON.parse(block.textContent)) {
      const line = body.insertRow();
      line.dataset.case = id;
      line.dataset.kernel = kernel;
      if (!links && anchor) line.id = anchor;
      cells.forEach((cell, i) => {
        const [text, sort] = Array.isArray(cell) ? cell : [cell, null];
        const box = line.insertCell();
        if (sort !== null) box.dataset.v = sort;
        if (i === 0 && links) {
          const link = box.appendChild(document.createElement("a"));
          link.href = `#${anchor}`;
          link.textContent = text;
        } else {
          box.textContent = text;
        }
      });
    }
    const hint = block.previousElementSibling;
    if (hint && hint.className === "more") hint.remove();
    block.remove();
    filterTable(table);
  }

  function filterTable(table) {
    for (const line of table.tBodies[0].rows) {
      line.hidden = state.hidden.has(line.dataset.kernel) || !matches(line.dataset.case);
    }
  }

  function makeSortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button).addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        buildRest(table);
        const key = (line) => {
          const cell = line.cells[column];
          return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
        };
        // Numbers before text ("n/a: reason" stays last in both directions).
        const compare = (a, b) => {
          const left = key(a), right = key(b);
          if (typeof left !== typeof right) return typeof left === "number" ? -1 : 1;
          const order = typeof left === "number" ? left - right
                                                 : left.localeCompare(right, "en", {numeric: true});
          return down ? -order : order;
        };
        table.tBodies[0].append(...Array.from(table.tBodies[0].rows).sort(compare));
      });
    });
  }

  const tables = Array.from(document.querySelectorAll("table"));
  for (const table of tables) {
    makeSortable(table);
    const details = table.closest("details");
    if (!details) {
      buildRest(table);
      continue;
    }
    details.open = false;
    details.addEventListener("toggle", () => { if (details.open) buildRest(table); });
  }

  // A link to a case opens the table that holds it.
  function showTarget() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id.startsWith("case-")) return;
    const table = document.getElementById("table-detail");
    table.closest("details").open = true;
    buildRest(table);
    const line = document.getElementById(id);
    if (line) line.scrollIntoView({block: "center"});
  }
  window.addEventListener("hashchange", showTarget);

  // ---- Controls --------------------------------------------------------------------------------------

  function apply() {
    draw();
    tables.forEach(filterTable);
    document.getElementById("filter-count").textContent =
        `${points.filter(visible).length} of ${points.length} timed cases`;
  }

  const legend = document.getElementById("legend");
  for (const kernel of kernels) {
    const label = legend.appendChild(document.createElement("label"));
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(kernel); else state.hidden.add(kernel);
      apply();
    });
    const svg = d3.select(label).append("svg").attr("viewBox", "0 0 34 16")
        .attr("aria-hidden", "true").append("g").attr("class", kernelClass(kernel))
        .attr("transform", "translate(17,8)");
    svg.append("path").attr("class", "series").attr("d", "M-17,0H17")
        .attr("stroke-dasharray", dashOf(kernel));
    const simulated = points.filter((p) => p.kernel === kernel).every((p) => p.sim);
    addMark(svg.append("g").attr("class", simulated ? "sim" : ""), kernel, simulated);
    label.append(cut(kernel, 60));
    label.title = kernel;
  }
  if (points.some((p) => p.sim)) {
    legend.append("outlined marks with a dot and outlined bars: simulated");
  }

  let pending = 0;
  document.getElementById("filter").addEventListener("input", (event) => {
    state.terms = event.target.value.toLowerCase().split(/\s+/).filter((term) => term);
    window.clearTimeout(pending);
    pending = window.setTimeout(apply, 120);
  });

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches
                                               : root.dataset.theme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
  });

  // ---- Downloads -------------------------------------------------------------------------------------

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type}));
    link.download = name;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // The chart with the page's style inside, so that it looks the same elsewhere.
  function saveSvg(svg, title) {
    const copy = svg.cloneNode(true), style = document.createElementNS(svg.namespaceURI, "style");
    const rules = Array.from(document.styleSheets[0].cssRules, (rule) => rule.cssText)
        .filter((text) => text.startsWith("svg"));
    const page = getComputedStyle(document.documentElement);
    const names = ["background", "text", "muted", "grid", "line",
                   ...d3.range(7).map((i) => `k${i}`)];
    const values = names.map((name) => `--${name}:${page.getPropertyValue(`--${name}`)}`);
    style.textContent = `svg{${values.join(";")};background:var(--background)}${rules.join("")}`;
    copy.insertBefore(style, copy.firstChild);
    save(`${title.replace(/[^A-Za-z0-9._-]+/g, "_")}.svg`, "image/svg+xml",
         new XMLSerializer().serializeToString(copy));
  }

  function csv() {
    const columns = {
      case: (r) => r.case, kernel: (r) => r.kernel, device: (r) => r.device,
      round: (r) => r.round, status: (r) => r.status, reason: (r) => r.reason,
      simulated: (r) => r.simulated, time_us_median: (r) => r.time_us && r.time_us.median,
      time_us_ci95_low: (r) => r.time_us && r.time_us.ci95[0],
      time_us_ci95_high: (r) => r.time_us && r.time_us.ci95[1], tflops: (r) => r.derived.tflops,
      roof_pct: (r) => r.derived.roof_pct, compulsory_bytes: (r) => r.model.compulsory_bytes,
      hbm_read_bytes: (r) => r.counters.hbm_read_bytes,
      hbm_write_bytes: (r) => r.counters.hbm_write_bytes,
      predicted_hbm_bytes: (r) => r.model.predicted_hbm_bytes, flags: (r) => r.flags.join(";"),
    };
    // A text that a spreadsheet would run as a formula begins with a quote.
    const quote = (value) => {
      const raw = value === null || value === undefined ? "" : `${value}`;
      const text = typeof value === "string" && /^[=+\-@\t\r]/.test(raw) ? `'${raw}` : raw;
      return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const lines = records.flatMap((record) => record.rows)
        .map((row) => Object.values(columns).map((get) => quote(get(row))).join(","));
    return [Object.keys(columns).join(","), ...lines].join("\r\n") + "\r\n";
  }

  document.getElementById("save-csv").addEventListener("click", () =>
      save("rooflash.csv", "text/csv", csv()));
  document.getElementById("save-json").addEventListener("click", () => {
    const originals = JSON.parse(source);
    save("rooflash.json", "application/json",
         JSON.stringify(originals.length === 1 ? originals[0] : originals, null, 1));
  });

  document.querySelector(".controls").hidden = false;
  apply();
  showTarget();
})();
