// ---- Roofline ---------------------------------------------------------------------------------------

const niceBelow = (value) => {
  const decade = 10 ** Math.floor(Math.log10(value));
  return decade * (value >= 5 * decade ? 5 : value >= 2 * decade ? 2 : 1);
};
const niceAbove = (value) => {
  const below = niceBelow(value);
  return below >= value * 0.999999 ? below : niceBelow(below * 2.6);
};

// Axis ranges from the ceilings alone, so that the reports of one GPU can be laid side by side; the
// datasheet's where known, as these do not move from run to run. Points beyond widen them by decades.
function roofFrame(roofs, dtype, list) {
  const known = roofs.filter((roof) => roof.hbm && roof.tensor[dtype]);
  if (!known.length) return null;
  const {hbm, tensor} = known.find((roof) => !roof.solid) || known[0];
  const peak = tensor[dtype], ridge = peak * 1e3 / hbm;
  const x = [niceBelow(ridge / 250), niceAbove(ridge * 100)];
  const y = [niceBelow(hbm * x[0] / 1e3 / 4), niceAbove(peak * 3.2)];
  let widened = false;
  const widen = (range, value) => {
    if (!(value > 0) || !Number.isFinite(value)) return;
    while (value < range[0]) { range[0] /= 10; widened = true; }
    while (value > range[1]) { range[1] *= 10; widened = true; }
  };
  for (const item of list) {
    widen(x, item.x);
    widen(y, item.tflops);
  }
  return {x, y, ridge, widened};
}

function drawRoofs(figure, layer, roofs, dtype, x, y, box) {
  const known = roofs.filter((roof) => roof.hbm && roof.tensor[dtype]);
  const [x0, x1] = x.domain(), labels = [];
  let stack = 0;
  // Equal shares of the first roof, the one that rows are held against.
  const [{hbm, tensor: rates}] = known;
  for (const share of [0.5, 0.25, 0.1]) {
    const peak = rates[dtype] * share, ridge = rates[dtype] * 1e3 / hbm;
    layer.append("path").attr("class", "iso").attr("d", d3.line()(
        [[x0, hbm * share * x0 / 1e3], [ridge, peak], [Math.max(x1, ridge), peak]].map(([a, b]) => [x(a), y(b)])));
    labels.push({text: `${100 * share} %`, anchor: "end", x: box.right - 8, y: y(peak) - 4, angle: 0, minor: true});
  }
  const top = d3.max(known, (roof) => roof.tensor[dtype]);
  const angle = Math.atan2(y(10) - y(1), x(10) - x(1)) * 180 / Math.PI;
  for (const roof of known) {
    const tensor = roof.tensor[dtype], ridge = tensor * 1e3 / roof.hbm;
    const path = [[x0, roof.hbm * x0 / 1e3], [ridge, tensor], [Math.max(x1, ridge), tensor]];
    layer.append("path").attr("class", roof.solid ? "roof" : "datasheet")
        .attr("d", d3.line()(path.map(([a, b]) => [x(a), y(b)])));
    // All names of flat roofs above the highest one, where no point is.
    const above = known.length === 1 || tensor === top;
    labels.push({text: `${roof.solid ? "\u2014" : "- -"} ${significant(tensor)} TFLOPS ${dtype} (${roof.name})`,
                 anchor: "end", x: box.right - 8, y: y(top) - 8 - 16 * stack++, angle: 0});
    // Along the slope, near its lower end in view.
    const low = Math.max(x0, y.domain()[0] * 1e3 / roof.hbm), start = low * (ridge / low) ** 0.05;
    labels.push({text: `${roof.what} ${roof.hbm.toFixed(0)} GB/s${roof.solid ? "" : ` (${roof.name})`}`, anchor: "start",
                 x: x(start), y: y(roof.hbm * start / 1e3), angle, shift: above ? -7 : 16,
                 hidden: ridge < low * 4});
    const sustained = roof.sustained[dtype];
    if (sustained) {
      layer.append("path").attr("class", "roof sustained").attr("d",
          `M${x(Math.max(x0, sustained * 1e3 / roof.hbm))},${y(sustained)}H${x(x1)}`);
      labels.push({text: `\u00b7 \u00b7 ${significant(sustained)} TFLOPS ${dtype} (${roof.name}, sustained)`,
                   anchor: "end", x: box.right - 8, y: y(top) - 8 - 16 * stack++, angle: 0});
    }
    if (roof.l2) {
      layer.append("path").attr("class", "roof l2").attr("d", d3.line()(
          [[x0, roof.l2 * x0 / 1e3], [tensor * 1e3 / roof.l2, tensor]].map(([a, b]) => [x(a), y(b)])));
      const from = low * (tensor * 1e3 / roof.l2 / low) ** 0.12;
      labels.push({text: `L2 ${roof.l2.toFixed(0)} GB/s (${roof.name})`, anchor: "start", x: x(from),
                   y: y(roof.l2 * from / 1e3), angle, shift: -7, hidden: false});
    }
    if (roof === known[0] && ridge > x0 && ridge < x1) {
      layer.append("line").attr("class", "ridge").attr("x1", x(ridge)).attr("x2", x(ridge))
          .attr("y1", y(tensor)).attr("y2", box.bottom);
      labels.push({text: `ridge ${significant(ridge)} FLOP/byte`, anchor: "end",
                   x: x(ridge) - 6, y: box.bottom - 9, angle: 0, hidden: x(ridge) - box.left < 130});
    }
  }
  for (const label of labels) {
    if (label.hidden || (!label.angle && !inside(box, label.x, label.y))) continue;
    layer.append("text").attr("class", label.minor ? "halo minor small" : "halo").attr("text-anchor", label.anchor)
        .attr("transform", `translate(${label.x},${label.y}) rotate(${label.angle})`)
        .attr("y", label.shift || 0).text(cut(label.text, figure.width > 460 ? 60 : 34));
  }
}

// Which mark is which kernel, bottom right, far below the roofs: for the saved and printed chart.
function addKey(figure, box, list) {
  const present = new Set(list.map((item) => item.kernel));
  const shown = kernels.filter((kernel) => present.has(kernel)).slice(0, 8);
  shown.forEach((kernel, i) => {
    const row = figure.svg.append("g")
        .attr("class", `key ${kernelClass(kernel)}${list.every((p) => p.kernel !== kernel || p.sim) ? " sim" : ""}`)
        .attr("transform", `translate(${box.right - 14},${box.bottom - 14 - 17 * (shown.length - 1 - i)})`);
    row.append("path").attr("class", "mark").attr("d", `M0,0${shapeOf(kernel)}`);
    row.append("text").attr("class", "halo").attr("text-anchor", "end").attr("x", -10).attr("y", 4)
        .text(cut(kernel, 28));
  });
}

function drawRoofline(figure) {
  const {list} = figure, [first] = list, {dtype} = first.row.problem;
  const roofs = roofsOf(first.run, first.row.device, first.row.gpu);
  const frame = roofFrame(roofs, dtype, list);
  if (!frame) {
    figure.height = 40;
    figure.svg.attr("viewBox", `0 0 ${figure.width} 40`).append("text").attr("x", 8).attr("y", 24)
        .text("No roofs in this record: see the data table.");
    return;
  }
  const box = plotBox(figure, {left: 66, right: 26, top: 14, bottom: 48});
  const x = zoomedX(figure, d3.scaleLog().domain(frame.x).range([box.left, box.right]));
  const y = zoomedY(figure, d3.scaleLog().domain(frame.y).range([box.bottom, box.top]));
  const layer = addAxes(figure, box, x, y,
      {values: logTicks(x, 58), format: plainNumber, grid: true},
      {values: logTicks(y, 34), format: plainNumber},
      "Arithmetic intensity, FLOP per HBM byte", "Throughput, TFLOPS");
  drawRoofs(figure, layer, roofs, dtype, x, y, box);
  const drawn = list.filter((item) => item.x > 0 && item.tflops > 0);
  const traffic = layer.append("g");
  for (const [kernel, group] of groupBy(drawn.filter((item) => item.xc), (item) => item.kernel)) {
    let lines = "", circles = "";
    for (const item of group) {
      const py = y(item.tflops).toFixed(1), from = x(item.xc).toFixed(1);
      lines += `M${from},${py}H${x(item.x).toFixed(1)}`;
      circles += `M${from},${py}m-2.8,0a2.8,2.8 0 1,0 5.6,0a2.8,2.8 0 1,0 -5.6,0z`;
    }
    const part = traffic.append("g").attr("class", kernelClass(kernel));
    part.append("path").attr("class", "gap").attr("d", lines);
    part.append("path").attr("class", "compulsory").attr("data-n", group.length).attr("d", circles);
  }
  addMarks(figure, layer, drawn, (item) => x(item.x), (item) => y(item.tflops), box);
  addKey(figure, box, drawn);
  const notes = [];
  if (drawn.length < list.length) {
    notes.push(`${counted(list.length - drawn.length, "row")} without measured HBM bytes not drawn`);
  }
  if (frame.widened) notes.push("frame widened beyond the ceilings' own by points far out");
  const above = drawn.filter((item) => item.row.derived.roof_pct > 102);
  if (above.length) notes.push(`${counted(above.length, "row")} above a roof by over 2 %: a count or a unit may be wrong`);
  figure.note.text(notes.join("; "));
}

function addRooflines() {
  const groups = groupBy(points, (item) => JSON.stringify(
      [item.run, item.row.device, item.row.gpu, item.row.problem.dtype]));
  const sorted = new Map([...groups].sort(([a], [b]) => byText(a, b)));
  addChart("roofline", sorted, ([first]) => ({
    title: `${first.row.problem.dtype} on ${cut(first.row.gpu || first.row.device, 60)} (${cut(first.where, 40)}${first.sim ? ", simulated" : ""})`,
    description: "Log-log roofline: throughput in TFLOPS against model FLOPs per HBM byte, with the " +
        "roofs of the device. The data table below holds the same rows.",
    zoom: true, draw: drawRoofline,
    tall: (width) => width > 900 ? 540 : width > 460 ? width * 0.66 : width * 0.9,
  }), "No timed rows.");
}
