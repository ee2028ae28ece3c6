// ---- Small multiples: one figure a device, dtype, head dim and mask -----------------------------------

function facetGroups(list) {
  const rank = (mask) => mask === "full" ? 0 : mask === "causal" ? 1 : 2;
  const groups = groupBy(list, (item) => JSON.stringify([item.where, item.facet, item.mask]));
  return new Map([...groups].sort(([, [a]], [, [b]]) =>
      byText(a.where, b.where) || byText(a.facet, b.facet) || rank(a.mask) - rank(b.mask) ||
      byText(a.mask, b.mask)));
}
const facetTitle = (item) =>
    `${item.facet}, ${item.mask} (${cut(item.where, 40)}${item.sim ? ", simulated" : ""})`;

// Lines of one chart: a kernel, split by batch or query length where a length has several.
function linesOf(list) {
  const lines = [];
  for (const [kernel, group] of groupBy(list, (item) => item.kernel)) {
    const unique = new Set(group.map((item) => item.length)).size === group.length;
    const part = ({row: {problem: p}}) => unique ? ""
        : ` b${p.batch} q${p.seqlen_q === p.seqlen_kv ? "=k" : p.seqlen_q}`;
    for (const [name, items] of groupBy(group, part)) {
      items.sort((a, b) => a.length - b.length);
      lines.push({kernel, name: cut(kernel, 24) + name, items});
    }
  }
  return lines;
}

// Lengths on a binary logarithmic axis, a tick at each that fits.
function lengthScale(list, box) {
  const lengths = Array.from(new Set(list.map((item) => item.length))).sort((a, b) => a - b);
  const pad = lengths.length > 1 ? 1.12 : 2;
  const x = d3.scaleLog().base(2).domain([lengths[0] / pad, lengths[lengths.length - 1] * pad])
      .range([box.left, box.right]);
  const every = Math.max(1, Math.ceil(lengths.length * 40 / (box.right - box.left)));
  return {x, ticks: {values: lengths.filter((v, i) => i % every === 0), format: formatCount}};
}

const linearTicks = (scale, n, format) => ({values: scale.ticks(n), format});

// Names at the right ends of lines, kept apart.
function addLineLabels(figure, box, lines, y, left) {
  const labels = lines.map((line) => ({line, at: y(line.items[line.items.length - 1])}))
      .sort((a, b) => a.at - b.at);
  labels.forEach((label, i) => { if (i) label.at = Math.max(label.at, labels[i - 1].at + 13); });
  labels.forEach((label, i) => { label.at = Math.min(label.at, box.bottom - 13 * (labels.length - 1 - i)); });
  for (const {line, at} of labels) {
    figure.svg.append("text").attr("class", `halo label ${kernelClass(line.kernel)}`).attr("x", left)
        .attr("y", at + 4).text(cut(line.name, 11));
  }
}

function addLines(layer, lines, x, y) {
  for (const line of lines) {
    layer.append("path").attr("class", `series ${kernelClass(line.kernel)}`)
        .attr("stroke-dasharray", dashOf(line.kernel)).attr("d", d3.line().x(x).y(y)(line.items));
  }
}

// ---- Throughput ----

// The same range for all figures of one device and dtype, whatever is filtered.
const topRates = new Map();
for (const item of points) {
  const key = `${item.where} ${item.row.problem.dtype}`;
  topRates.set(key, Math.max(topRates.get(key) || 0, item.tflops || 0, item.high || 0));
}

function drawThroughput(figure) {
  const list = figure.list.filter((item) => item.tflops !== null), [first] = figure.list;
  if (!list.length) return;
  const {tensor, name} = rowRoofs(first), wide = figure.width > 460;
  const box = plotBox(figure, {left: 56, right: wide ? (tensor ? 124 : 84) : tensor ? 44 : 14, top: 14});
  const {x, ticks} = lengthScale(list, box), at = (item) => x(item.length);
  const top = topRates.get(`${first.where} ${first.row.problem.dtype}`) * 1.06;
  const y = d3.scaleLinear().domain([0, top]).nice(5).range([box.bottom, box.top]);
  const layer = addAxes(figure, box, x, y, ticks, linearTicks(y, 6, plainNumber),
      "Sequence length (keys)", "TFLOPS");
  if (tensor) {
    const percent = y.copy().domain(y.domain().map((v) => 100 * v / tensor));
    figure.svg.append("g").attr("class", "axis").attr("transform", `translate(${box.right},0)`)
        .call(d3.axisRight(percent).ticks(6).tickFormat((v) => `${v}%`).tickSizeOuter(0));
    if (tensor <= y.domain()[1]) {
      addRule(figure, box, {y: y(tensor), label: `${significant(tensor)} TFLOPS (${name})`});
    }
  }
  const lines = linesOf(list);
  for (const line of lines) {
    layer.append("path").attr("class", `band ${kernelClass(line.kernel)}`).attr("d",
        d3.area().x(at).y0((item) => y(item.low)).y1((item) => y(item.high))(line.items));
  }
  const place = (item) => y(item.tflops);
  addLines(layer, lines, at, place);
  if (wide) addLineLabels(figure, box, lines, place, box.right + (tensor ? 42 : 8));
  addMarks(figure, figure.svg.append("g"), list, at, place, box);
}

function addThroughput() {
  addChart("throughput", facetGroups(points), ([first]) => ({
    title: facetTitle(first), draw: drawThroughput,
    description: "Throughput in TFLOPS against sequence length, one line a kernel.",
  }));
}

// ---- Bytes ----

const ratios = points.map((item) => item.ratio).filter((ratio) => ratio > 0);
const ratioDomain = [Math.min(0.8, (d3.min(ratios) || 1) / 1.1), Math.max(2, (d3.max(ratios) || 1) * 1.5)];

function drawBytes(figure) {
  const list = figure.list.filter((item) => item.ratio > 0);
  const box = plotBox(figure, {left: 62, right: 14, top: 18});
  if (!list.length) {
    figure.svg.append("text").attr("x", 8).attr("y", 24).text("No HBM bytes were counted here.");
    return;
  }
  const shapeKey = ({row: {problem: p}}) => JSON.stringify([p.seqlen_kv, p.seqlen_q, p.batch]);
  const keys = Array.from(new Set(list.map(shapeKey))).sort((a, b) => {
    const [l, r] = [JSON.parse(a), JSON.parse(b)];
    return l[0] - r[0] || l[1] - r[1] || l[2] - r[2];
  });
  const names = kernels.filter((kernel) => list.some((item) => item.kernel === kernel));
  const x = d3.scaleBand().domain(keys).range([box.left, box.right]).paddingInner(.25).paddingOuter(.15);
  const inner = d3.scaleBand().domain(names).range([0, x.bandwidth()]).padding(.08);
  const y = d3.scaleLog().domain(ratioDomain).range([box.bottom, box.top]);
  const every = Math.max(1, Math.ceil(keys.length * 46 / (box.right - box.left)));
  const middle = (key) => x(key) + x.bandwidth() / 2;
  addAxes(figure, box, middle, y, {values: [], format: String}, {values: logTicks(y, 36), format: (v) => `${plainNumber(v)}x`},
      "Sequence length (keys)", "HBM / compulsory bytes");
  const label = (key) => {
    const [k, q] = JSON.parse(key);
    return q === k ? formatCount(k) : `${formatCount(q)}x${formatCount(k)}`;
  };
  figure.svg.append("g").attr("class", "axis").attr("transform", `translate(0,${box.bottom})`)
      .call(d3.axisBottom(x).tickValues(keys.filter((key, i) => i % every === 0)).tickFormat(label).tickSizeOuter(0));
  const one = y(1), width = Math.max(1, inner.bandwidth());
  for (const item of list) {
    const left = x(shapeKey(item)) + inner(item.kernel), top = y(item.ratio);
    figure.svg.append("rect").attr("class", `bar ${kernelClass(item.kernel)}${item.sim ? " sim" : ""}`)
        .attr("x", left).attr("width", width).attr("y", Math.min(top, one))
        .attr("height", Math.max(2, Math.abs(top - one)));
    figure.spots.push({x: left + width / 2, y: Math.min(top, one), item, text: describeItem});
    if (width < 20) continue;
    figure.svg.append("text").attr("class", "minor halo small").attr("text-anchor", "middle")
        .attr("x", left + width / 2).attr("y", Math.min(top, one) - 4)
        .text(width < 27 ? significant(item.ratio, 2) : significant(item.ratio));
  }
  figure.svg.append("line").attr("class", "base").attr("x1", box.left).attr("x2", box.right)
      .attr("y1", one).attr("y2", one);
}

function addBytes() {
  addChart("bytes", facetGroups(points), ([first]) => ({
    title: facetTitle(first), draw: drawBytes,
    description: "HBM bytes over compulsory bytes, one bar a kernel and shape, logarithmic.",
  }));
}

// ---- Memory ----

const neededBytes = ({row}) => row.status === "oom" ? row.memory.needed_bytes : row.memory.peak_bytes;

// A power of two of bytes.
const axisBytes = (bytes) => bytes >= 2 ** 40 ? `${formatCount(bytes / 2 ** 40)} TiB`
    : bytes >= 2 ** 30 ? `${bytes / 2 ** 30} GiB` : formatBytes(bytes);

function drawMemory(figure) {
  const list = figure.list.filter((item) => neededBytes(item) > 0), [first] = figure.list;
  if (!list.length) {
    figure.svg.append("text").attr("x", 8).attr("y", 24).text("No figures of memory here.");
    return;
  }
  const device = records[first.run].environment.devices.find((d) => d.device === first.row.device);
  const most = device ? device.memory_bytes : null, wide = figure.width > 460;
  const box = plotBox(figure, {left: 80, right: wide ? 84 : 14, top: 16});
  const {x, ticks} = lengthScale(list, box);
  const sizes = list.map(neededBytes).concat(most || []);
  const y = d3.scaleLog().base(2).domain([d3.min(sizes) / 1.6, d3.max(sizes) * 1.8])
      .range([box.bottom, box.top]);
  const low = Math.ceil(Math.log2(y.domain()[0])), high = Math.floor(Math.log2(y.domain()[1]));
  const step = Math.max(1, Math.ceil((high - low) / 7));
  const layer = addAxes(figure, box, x, y, ticks,
      {values: d3.range(low, high + 1, step).map((e) => 2 ** e), format: axisBytes},
      "Sequence length (keys)", "Memory");
  if (most) addRule(figure, box, {y: y(most), label: `device memory ${formatBytes(most)}`});
  const at = (item) => x(item.length), place = (item) => y(neededBytes(item)), lines = linesOf(list);
  addLines(layer, lines, at, place);
  if (wide) addLineLabels(figure, box, lines, place, box.right + 8);
  addMarks(figure, layer, list.filter(({row}) => row.status !== "oom"), at, place, box);
  const text = (item) => `${describeItem(item)}\nneeds ${formatBytes(neededBytes(item))}`;
  for (const item of list.filter(({row}) => row.status === "oom")) {
    figure.svg.append("path").attr("class", `cross ${kernelClass(item.kernel)}`)
        .attr("d", `M${at(item)},${place(item)}m-5,-5l10,10m0,-10l-10,10`);
    figure.spots.push({x: at(item), y: place(item), item, text});
  }
}

function addMemory() {
  const list = items.filter((item) => item.row.status === "oom" && item.row.round === 0).concat(points);
  addChart("memory", facetGroups(list), ([first]) => ({
    title: facetTitle(first), draw: drawMemory,
    description: "Memory that a case needs against sequence length, both logarithmic; crosses did not fit.",
  }));
}
