// ---- Figures: frame, axes, marks ------------------------------------------------------------------

// A kernel is told by colour, shape and dash. After seven kernels colours repeat, with other shapes.
// Shapes are relative paths around a point.
const shapes = [
  "m-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
  "m-3.6,-3.6h7.2v7.2h-7.2z",
  "m0,-4.9l4.6,8.2h-9.2z",
  "m0,-5.2l4.4,5.2l-4.4,5.2l-4.4,-5.2z",
  "m-1.6,-4.8h3.2v3.2h3.2v3.2h-3.2v3.2h-3.2v-3.2h-3.2v-3.2h3.2z",
  "m0,4.9l4.6,-8.2h-9.2z",
  "m-4.4,-4.4l8.8,8.8v-8.8l-8.8,8.8z",
];
const dashes = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2 1 2", "1 4"];
const slots = new Map(kernels.map((kernel, i) => [kernel, i]));
const slotOf = (kernel) => slots.get(kernel) ?? 0;
const kernelClass = (kernel) => `k${slotOf(kernel) % 7}`;
const variety = (kernel) => (slotOf(kernel) + Math.floor(slotOf(kernel) / 7)) % 7;
const shapeOf = (kernel) => shapes[variety(kernel)];
const dashOf = (kernel) => dashes[variety(kernel)];
const dotShape = "m-1.5,0a1.5,1.5 0 1,0 3,0a1.5,1.5 0 1,0 -3,0z";

function describeItem(item) {
  const {row} = item, lines = [cut(row.case, 120), `${item.where}${item.sim ? ", simulated" : ""}`];
  if (row.time_us) {
    const t = row.time_us;
    lines.push(`${formatTime(t.median)} (95 %: ${formatTime(t.ci95[0])} to ` +
               `${formatTime(t.ci95[1])}, n = ${t.n})`);
    lines.push(`${significant(item.tflops ?? NaN)} TFLOPS, ` +
               `${significant(row.derived.roof_pct ?? NaN)} % of the roof`);
    lines.push(item.moved === null
        ? `HBM bytes n/a: ${cut(missingReason(row, "counters.hbm_read_bytes"), 100)}`
        : `HBM ${formatBytes(item.moved)}${item.predicted ? " (predicted)" : ""}, ` +
          `${significant(item.ratio ?? NaN)}x compulsory, ${significant(item.x ?? NaN)} FLOP/byte`);
  } else {
    lines.push(cut(`${row.status}: ${row.reason}`, 200));
  }
  if (row.flags.length) lines.push(cut(`flags: ${row.flags.join(", ")}`, 120));
  return lines.join("\n");
}

// ---- A figure ----

const figures = [];  // of all charts, in the order of the page
let nextFigure = 0;

// Adds a figure to `container`. `spec`: title, description, height (of 560 px of width), zoom
// (whether its scales can be zoomed), draw(figure).
// draw() puts the chart into figure.svg, figure.width by figure.height, and gives figure.spots: what
// the pointer and the arrow keys can reach, [{x, y, text, item}].
function addFigure(container, spec) {
  const id = `figure-${nextFigure++}`;
  const figure = {...spec, id, transform: d3.zoomIdentity, dirty: true, spots: []};
  const box = d3.select(container).append("figure");
  const caption = box.append("figcaption");
  caption.append("span").attr("class", "title").text(spec.title);
  const tools = caption.append("span").attr("class", "tools");
  figure.svg = box.append("svg").attr("xmlns", "http://www.w3.org/2000/svg").attr("id", id)
      .attr("role", "img").attr("tabindex", 0).attr("aria-labelledby", `${id}-title ${id}-desc`);
  figure.note = box.append("p").attr("class", "offframe");
  figure.node = box.node();
  const tool = (text, label, action) => tools.append("button").attr("type", "button").text(text)
      .attr("aria-label", `${label}: ${cut(spec.title, 80)}`).attr("title", label)
      .node().addEventListener("click", action);
  if (spec.zoom) {
    tool("+", "Zoom in", () => figure.zoomBy(1.5));
    tool("\u2212", "Zoom out", () => figure.zoomBy(1 / 1.5));
    tool("1:1", "Reset the zoom", () => figure.zoomBy(0));
  }
  tool("SVG", "Save as SVG", () => saveSvg(figure));
  tool("PNG", "Save as PNG", () => savePng(figure));
  watchPointer(figure);
  watchKeys(figure);
  if (spec.zoom) watchZoom(figure);
  figures.push(figure);
  return figure;
}

// On paper columns are narrow: charts are drawn for them, so that their text stays readable.
let printing = false;
const printWidth = (figure) => figure.node.parentNode.matches(".wide, .chart.single, .samples") ? 640 : 430;

function drawFigure(figure) {
  figure.dirty = false;
  figure.width = printing ? printWidth(figure) : Math.max(300, Math.round(figure.node.clientWidth) || 560);
  figure.height = Math.round(figure.tall ? figure.tall(figure.width, figure) : figure.width > 460 ? figure.width * 0.56 : 290);
  figure.spots = [];
  const {svg, id} = figure;
  svg.selectAll("*").remove();
  svg.attr("viewBox", `0 0 ${figure.width} ${figure.height}`);
  svg.append("title").attr("id", `${id}-title`).text(figure.title);
  svg.append("desc").attr("id", `${id}-desc`).text(figure.description);
  figure.note.text("");
  figure.draw(figure);
  if (figure.left) {
    const thinned = `${figure.list.length} of ${counted(figure.list.length + figure.left, "row")} drawn (--max-points)`;
    figure.note.text(figure.note.text() ? `${figure.note.text()}; ${thinned}` : thinned);
  }
  if (figure.limits) figure.limits();
  figure.tree = d3.quadtree().x((spot) => spot.x).y((spot) => spot.y).addAll(figure.spots);
  figure.ring = svg.append("circle").attr("class", "ring").attr("r", 8).attr("visibility", "hidden");
}

// Where the plot itself lies inside the figure.
const plotBox = (figure, {left = 62, right = 16, top = 12, bottom = 46} = {}) =>
    ({left, right: figure.width - right, top, bottom: figure.height - bottom});

// A scale, zoomed as the figure is.
const zoomedX = (figure, scale) => figure.zoom ? figure.transform.rescaleX(scale) : scale;
const zoomedY = (figure, scale) => figure.zoom ? figure.transform.rescaleY(scale) : scale;

// Ticks of a logarithmic scale, `room` pixels apart at least: decades, with 2 and 5 or 3 between
// where there is room.
function logTicks(scale, room) {
  const [low, high] = scale.domain(), decades = Math.log10(high / low);
  const [a, b] = scale.range(), most = Math.max(2, Math.floor(Math.abs(b - a) / room));
  const between = (mantissas) => {
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const m of mantissas) {
        const value = m * 10 ** e;
        if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
      }
    }
    return ticks;
  };
  const mantissas = decades * 3 <= most ? [1, 2, 5] : decades * 2 <= most ? [1, 3] : [1];
  let ticks = between(mantissas);
  if (ticks.length < 2) ticks = between([1, 2, 5]);
  if (ticks.length < 2) ticks = d3.scaleLinear().domain([low, high]).ticks(Math.min(4, most));
  const every = Math.ceil(ticks.length / (most + 1));
  return ticks.filter((value, i) => i % every === 0);
}

// Grid, axes and their titles; `xTicks`, `yTicks`: {values, format}.
function addAxes(figure, box, x, y, xTicks, yTicks, xTitle, yTitle) {
  const {svg} = figure;
  const clip = svg.append("clipPath").attr("id", `${figure.id}-clip`).append("rect");
  clip.attr("x", box.left).attr("y", box.top).attr("width", Math.max(0, box.right - box.left))
      .attr("height", Math.max(0, box.bottom - box.top));
  const grid = svg.append("g").attr("class", "lines");
  for (const value of yTicks.values) {
    grid.append("line").attr("class", "grid").attr("x1", box.left).attr("x2", box.right)
        .attr("y1", y(value)).attr("y2", y(value));
  }
  for (const value of xTicks.grid ? xTicks.values : []) {
    grid.append("line").attr("class", "grid").attr("x1", x(value)).attr("x2", x(value))
        .attr("y1", box.top).attr("y2", box.bottom);
  }
  // An axis without values is drawn by the caller, or not at all.
  const axis = (make, scale, ticks, move) => ticks.values.length &&
      svg.append("g").attr("class", "axis").attr("transform", `translate(${move})`)
          .call(make(scale).tickValues(ticks.values).tickFormat(ticks.format).tickSizeOuter(0));
  axis(d3.axisBottom, x, xTicks, `0,${box.bottom}`);
  axis(d3.axisLeft, y, yTicks, `${box.left},0`);
  svg.append("text").attr("class", "axis-title").attr("text-anchor", "middle")
      .attr("x", (box.left + box.right) / 2).attr("y", box.bottom + 36).text(xTitle);
  svg.append("text").attr("class", "axis-title").attr("text-anchor", "middle")
      .attr("transform", `translate(13,${(box.top + box.bottom) / 2}) rotate(-90)`).text(yTitle);
  return svg.append("g").attr("clip-path", `url(#${figure.id}-clip)`);
}

const inside = (box, x, y) => x >= box.left - 0.5 && x <= box.right + 0.5 && y >= box.top - 0.5 &&
    y <= box.bottom + 0.5;

// The marks of `list` at x(item), y(item): one path a kernel, so that thousands cost little.
// Simulated rows are outlined, with a dot. Those inside the box become spots.
function addMarks(figure, layer, list, x, y, box, text = describeItem) {
  for (const [, group] of groupBy(list, (item) => `${slotOf(item.kernel)} ${item.sim}`)) {
    const {kernel, sim} = group[0];
    let marks = "", dots = "", drawn = 0;
    for (const item of group) {
      const px = x(item), py = y(item);
      if (!Number.isFinite(px) || !Number.isFinite(py) || !inside(box, px, py)) continue;
      const at = `M${px.toFixed(1)},${py.toFixed(1)}`;
      marks += at + shapeOf(kernel);
      if (sim) dots += at + dotShape;
      drawn++;
      figure.spots.push({x: px, y: py, item, text});
    }
    if (!drawn) continue;
    const part = layer.append("g").attr("class", `${kernelClass(kernel)}${sim ? " sim" : ""}`);
    part.append("path").attr("class", "mark").attr("data-n", drawn).attr("d", marks);
    if (sim) part.append("path").attr("class", "core").attr("d", dots);
  }
}

// A horizontal or vertical line over the plot with a label.
function addRule(figure, box, {x, y, label, className = "rule"}) {
  const line = figure.svg.append("line").attr("class", className);
  const text = figure.svg.append("text").attr("class", "halo minor").text(label);
  if (y !== undefined) {
    if (y < box.top || y > box.bottom) {
      line.remove();
      text.remove();
      return;
    }
    line.attr("x1", box.left).attr("x2", box.right).attr("y1", y).attr("y2", y);
    text.attr("x", box.right - 4).attr("text-anchor", "end").attr("y", y - 5 < box.top + 8 ? y + 14 : y - 5);
  } else {
    line.attr("x1", x).attr("x2", x).attr("y1", box.top).attr("y2", box.bottom);
    text.attr("x", x + 4).attr("y", box.top + 12);
  }
}

// ---- Drawing on demand ----

// Marks all figures and draws those in view; the rest follow in slices, so that typing stays quick.
let slice = 0;
function drawFigures() {
  document.documentElement.dataset.drawn = "";
  const dirty = figures.filter((figure) => figure.dirty && !figure.node.hidden);
  const seen = ({top, bottom}) => bottom > -200 && top < window.innerHeight + 200;
  const near = dirty.filter((figure) => seen(figure.node.getBoundingClientRect()));
  for (const figure of near) drawFigure(figure);
  window.clearTimeout(slice);
  slice = window.setTimeout(drawRest, 30);
}

function drawRest() {
  const end = performance.now() + 25;
  for (const figure of figures) {
    if (!figure.dirty || figure.node.hidden) continue;
    drawFigure(figure);
    if (performance.now() > end) {
      slice = window.setTimeout(drawRest, 0);
      return;
    }
  }
  document.documentElement.dataset.drawn = "all";
}

function drawForPrint(on) {
  printing = on;
  for (const figure of figures) if (!figure.node.hidden) drawFigure(figure);
}
