// ---- Scatter plots: accuracy, noise, predicted against measured -----------------------------------------

// Domain around `values`, widened by a factor on each side; at least one decade.
function logDomain(values, factor = 1.6) {
  const good = values.filter((value) => value > 0 && Number.isFinite(value));
  if (!good.length) return [0.1, 10];
  let low = d3.min(good) / factor, high = d3.max(good) * factor;
  while (high / low < 10) {
    low /= 1.3;
    high *= 1.3;
  }
  return [low, high];
}

const groupsByWhere = (list) => new Map([...groupBy(list, (item) => item.where)].sort(([a], [b]) => byText(a, b)));

// `chart`: x, y (functions of an item), xTitle, yTitle, xFormat, yFormat, rules, diagonal.
function drawScatter(figure, chart) {
  const list = figure.list.filter((item) => chart.x(item) > 0 && chart.y(item) > 0);
  if (!list.length) {
    figure.svg.append("text").attr("x", 8).attr("y", 24).text("No such figures in these rows.");
    return;
  }
  const box = plotBox(figure, {left: 74, right: 28, top: 16});
  const xs = list.map(chart.x), ys = list.map(chart.y).concat((chart.rules || []).map((rule) => rule.y));
  const both = chart.diagonal ? logDomain(xs.concat(ys)) : null;
  const x = zoomedX(figure, d3.scaleLog().domain(both || logDomain(xs)).range([box.left, box.right]));
  const y = zoomedY(figure, d3.scaleLog().domain(both || logDomain(ys)).range([box.bottom, box.top]));
  const layer = addAxes(figure, box, x, y,
      {values: logTicks(x, 64), format: chart.xFormat || plainNumber, grid: true},
      {values: logTicks(y, 34), format: chart.yFormat || plainNumber}, chart.xTitle, chart.yTitle);
  if (both) {
    layer.append("line").attr("class", "rule").attr("x1", x(both[0])).attr("y1", y(both[0]))
        .attr("x2", x(both[1])).attr("y2", y(both[1]));
  }
  for (const rule of chart.rules || []) addRule(figure, box, {y: y(rule.y), label: rule.label});
  addMarks(figure, layer, list, (item) => x(chart.x(item)), (item) => y(chart.y(item)), box,
           chart.text || describeItem);
  addKey(figure, box, list);
  const dtypes = groupBy(list, (item) => item.row.problem.dtype);
  if (!chart.dtypes || dtypes.size < 2) return;
  const labels = Array.from(dtypes, ([dtype, group]) =>
      ({dtype, at: y(Math.exp(d3.mean(group, (item) => Math.log(chart.y(item)))))}))
      .sort((a, b) => a.at - b.at);
  labels.forEach((label, i) => { if (i) label.at = Math.max(label.at, labels[i - 1].at + 15); });
  for (const {dtype, at} of labels) {
    if (at < box.top || at > box.bottom) continue;
    figure.svg.append("text").attr("class", "halo minor").attr("x", box.left + 5).attr("y", at + 4).text(dtype);
  }
}

function addScatter(name, list, make) {
  const container = document.querySelector(`[data-chart="${name}"]`);
  if (!container) return;
  const parts = make.map((chart, i) => {
    const part = container.appendChild(document.createElement("div"));
    part.className = "part";
    part.dataset.chart = `${name}-${i}`;
    return {chart, name: `${name}-${i}`};
  });
  for (const {chart, name: partName} of parts) {
    addChart(partName, groupsByWhere(list.filter(chart.wanted || (() => true))), ([first]) => ({
      title: `${chart.title} (${cut(first.where, 40)}${first.sim ? ", simulated" : ""})`,
      description: chart.description, zoom: true,
      draw: chart.draw || ((figure) => drawScatter(figure, chart)),
    }), `${chart.title}: no such rows.`);
  }
}

const exponent = (value) => value >= 1e-3 && value < 1e5 ? plainNumber(value)
    : value.toExponential(0).replace("+", "");

function addAccuracy() {
  const verify = (item) => item.row.verify;
  const text = (item) => {
    const v = verify(item);
    return `${describeItem(item)}\nrelative error ${v.rel_err === null ? "n/a" : v.rel_err.toExponential(2)}, ` +
        `max ${v.max_abs_err === null ? "n/a" : v.max_abs_err.toExponential(2)} of ` +
        `${v.tolerance_max === null ? "n/a" : v.tolerance_max.toExponential(2)} allowed`;
  };
  const share = (item) => verify(item).max_abs_err / verify(item).tolerance_max;
  addScatter("accuracy", points, [
    {title: "Relative error", x: (item) => item.tflops, y: (item) => verify(item).rel_err, text,
     wanted: (item) => verify(item).rel_err > 0, dtypes: true,
     xTitle: "Throughput, TFLOPS", yTitle: "Relative error of O", yFormat: exponent,
     description: "Relative error of the output against throughput, both logarithmic; lower and further right is better."},
    {title: "Share of the error allowed", x: (item) => item.tflops, y: share, text,
     wanted: (item) => share(item) > 0, rules: [{y: 1, label: "largest error allowed"}],
     xTitle: "Throughput, TFLOPS", yTitle: "Max error / allowed", yFormat: exponent,
     description: "Largest error over the largest one allowed, against throughput, both logarithmic."},
  ]);
}

// ---- Noise ----

const halfWidth = (item) => 50 * (item.row.time_us.ci95[1] - item.row.time_us.ci95[0]) / item.row.time_us.median;

// Rows in the order of the record, which is the order in which they ran; `low`, `high` draw whiskers.
function drawSequence(figure, {value, low, high, title, limit}) {
  const list = [...figure.list].sort((a, b) => a.index - b.index);
  const box = plotBox(figure, {left: 74, right: 16, top: 16});
  const values = list.flatMap((item) => [low(item), high(item)]).concat(limit ? [limit.y] : []);
  const [min, max] = d3.extent(values), pad = (max - min || max || 1) * 0.08;
  const x = zoomedX(figure, d3.scaleLinear().domain([-0.5, list.length - 0.5]).range([box.left, box.right]));
  const y = zoomedY(figure, d3.scaleLinear().domain([min - pad, max + pad]).range([box.bottom, box.top]));
  const places = new Map(list.map((item, i) => [item, x(i)]));
  const layer = addAxes(figure, box, x, y,
      {values: x.ticks(8).filter(Number.isInteger), format: (v) => `${v + 1}`},
      linearTicks(y, 6, (v) => `${Number(v.toPrecision(6))}`), "Row, in the order of the record", title);
  for (const [kernel, group] of groupBy(list, (item) => item.kernel)) {
    const whiskers = group.filter((item) => high(item) > low(item))
        .map((item) => `M${places.get(item).toFixed(1)},${y(low(item)).toFixed(1)}V${y(high(item)).toFixed(1)}`);
    layer.append("path").attr("class", `whisker ${kernelClass(kernel)}`).attr("d", whiskers.join(""));
  }
  if (limit) addRule(figure, box, {y: y(limit.y), label: limit.label});
  addMarks(figure, layer, list, (item) => places.get(item), (item) => y(value(item)), box, (item) =>
      `${describeItem(item)}\nSM clock ${significant(item.row.clock_mhz?.median ?? NaN, 4)} MHz, ` +
      `${significant(item.row.power_w ?? NaN)} W, ${significant(item.row.temperature_c ?? NaN)} C` +
      (item.row.throttle.length ? `\nthrottle: ${cut(item.row.throttle.join(", "), 100)}` : ""));
}

const deviceOf = (item) => records[item.run].environment.devices.find((d) => d.device === item.row.device);

// Medians of the rounds of a case over the case's own middle: a strip a case, widest first.
function drawRounds(figure) {
  const cases = Array.from(groupBy(figure.list, (item) => item.row.case).values())
      .map((rounds) => {
        const middle = d3.median(rounds, (item) => item.row.time_us.median);
        const shifts = rounds.map((item) => ({item, shift: 100 * (item.row.time_us.median / middle - 1)}));
        return {shifts, spread: d3.max(shifts, (s) => Math.abs(s.shift)), name: rounds[0].row.case};
      })
      .sort((a, b) => b.spread - a.spread);
  const shown = cases.slice(0, 24), box = plotBox(figure, {left: 30, right: 16, top: 16});
  const widest = Math.max(0.5, d3.max(shown, (c) => c.spread) * 1.1);
  const x = d3.scaleLinear().domain([-widest, widest]).range([box.left, box.right]);
  const y = d3.scaleLinear().domain([-0.7, shown.length - 0.3]).range([box.top, box.bottom]);
  const layer = addAxes(figure, box, x, y, {values: x.ticks(7), format: (v) => `${v}%`, grid: true},
      {values: d3.range(shown.length), format: () => ""}, "Median of a round against the case's middle", "Cases, widest first");
  const flat = shown.flatMap((c, i) => c.shifts.map((s) => ({...s, i})));
  const at = new Map(flat.map((s) => [s.item, s]));
  addMarks(figure, layer, flat.map((s) => s.item), (item) => x(at.get(item).shift), (item) => y(at.get(item).i), box);
  if (cases.length > shown.length) figure.note.text(`${shown.length} of ${counted(cases.length, "case")}, the widest`);
}

function addNoise() {
  const measured = (item) => !item.sim;
  const first = points.find((item) => measured(item) && deviceOf(item));
  const device = first ? deviceOf(first) : null;
  const clock = (item) => item.row.clock_mhz?.median ?? null;
  addScatter("noise", points, [
    {title: "How well the median is known", wanted: measured, x: (item) => item.row.time_us.median, y: halfWidth,
     xTitle: "Median time, us", yTitle: "Half width of the interval, %", yFormat: exponent,
     description: "Half width of the 95 % interval in per cent of the median, against the median, both logarithmic."},
    {title: "SM clock", wanted: (item) => measured(item) && clock(item) !== null,
     description: "SM clock of each row, with its range over the samples, in the order of the record.",
     draw: (figure) => drawSequence(figure, {
       value: clock, low: (item) => item.row.clock_mhz.min ?? clock(item),
       high: (item) => item.row.clock_mhz.max ?? clock(item), title: "SM clock, MHz",
       limit: device?.sm_clock_max_mhz ? {y: device.sm_clock_max_mhz, label: `highest, ${device.sm_clock_max_mhz} MHz`} : null})},
    {title: "Power", wanted: (item) => measured(item) && item.row.power_w !== null,
     description: "Board power after each row, in the order of the record.",
     draw: (figure) => drawSequence(figure, {
       value: (item) => item.row.power_w, low: (item) => item.row.power_w, high: (item) => item.row.power_w,
       title: "Power, W",
       limit: device?.power_limit_w ? {y: device.power_limit_w, label: `limit, ${device.power_limit_w} W`} : null})},
  ]);
  const timed = items.filter((item) => item.row.time_us && measured(item));
  const container = document.querySelector('[data-chart="noise"]');
  if (container && timed.some((item) => item.row.round > 0)) {
    const part = container.appendChild(document.createElement("div"));
    part.className = "part";
    part.dataset.chart = "noise-rounds";
    addChart("noise-rounds", groupsByWhere(timed), ([item]) => ({
      title: `Between rounds (${cut(item.where, 40)})`, draw: drawRounds,
      description: "Median of each round over the middle of its case's rounds, one line a case.",
    }));
  }
}

function addModel() {
  const measured = (item) => !item.sim;
  const text = (item) => `${describeItem(item)}\npredicted ${formatTime(item.row.model.predicted_time_us ?? NaN)}` +
      (item.row.model.predicted_hbm_bytes === null ? "" : `, HBM ${formatBytes(item.row.model.predicted_hbm_bytes)}`);
  addScatter("model", points, [
    {title: "Time", wanted: (item) => measured(item) && item.row.model.predicted_time_us > 0, diagonal: true, text,
     x: (item) => item.row.time_us.median, y: (item) => item.row.model.predicted_time_us,
     xTitle: "Measured time, us", yTitle: "Predicted time, us",
     description: "Predicted against measured time, both logarithmic; the line is where they are equal."},
    {title: "HBM bytes", wanted: (item) => measured(item) && item.row.model.predicted_hbm_bytes > 0 && item.moved > 0,
     diagonal: true, text, x: (item) => item.moved / 2 ** 20, y: (item) => item.row.model.predicted_hbm_bytes / 2 ** 20,
     xTitle: "Counted HBM traffic, MiB", yTitle: "Predicted HBM traffic, MiB",
     description: "Predicted against counted HBM bytes, both logarithmic; the line is where they are equal."},
  ]);
}
