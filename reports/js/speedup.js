// ---- Speed-up against a baseline kernel, as heat maps --------------------------------------------------

const problemKey = (item) => JSON.stringify(
    [item.run, item.row.device, item.row.case.slice(item.row.kernel.length)]);

// Kernels of one record, slowest first: by the geometric mean of time over the fastest of each
// problem, as the program orders them.
function slownessOrder(run) {
  const ranked = points.filter((item) => item.run === run && isRanked(item.row));
  const sums = new Map(kernels.map((kernel) => [kernel, {sum: 0, n: 0}]));
  for (const rivals of groupBy(ranked, problemKey).values()) {
    const best = d3.min(rivals, (item) => item.row.time_us.median);
    for (const item of rivals) {
      const total = sums.get(item.kernel);
      total.sum += Math.log(item.row.time_us.median / best);
      total.n++;
    }
  }
  const slowness = ({sum, n}) => n ? sum / n : -1;
  return [...sums].filter(([kernel]) => items.some((p) => p.run === run && p.kernel === kernel))
      .sort(([, a], [, b]) => slowness(b) - slowness(a)).map(([kernel]) => kernel);
}
const slownessOrders = records.map((_, run) => slownessOrder(run));
const slowest = slownessOrders.map(([kernel]) => kernel);
const baselineOf = (run) => state.baseline || slowest[run];

// Ranked rows by the problem, round included; for the table.
const rivalsOf = groupBy(items.filter((item) => isRanked(item.row)), (item) => item.rival);
const rankedPoints = groupBy(points.filter((item) => isRanked(item.row)), problemKey);

function speedupOf(item, rivals) {
  const base = (rivals || []).find((other) => other.kernel === baselineOf(item.run));
  return base && isRanked(item.row) ? base.row.time_us.median / item.row.time_us.median : null;
}

const statusWords = {unsupported: "n/s", wrong: "WRONG", failed: "FAIL", oom: "OOM",
                     crashed: "CRASH", timeout: "T/O", not_run: "not run", ok: "ok"};

function drawSpeedup(figure) {
  const {list} = figure, [first] = list, base = baselineOf(first.run);
  const rows = [...slownessOrders[first.run]].reverse().filter((kernel) => kernel !== base && list.some((item) => item.kernel === kernel));
  const shape = ({row: {problem: p}}) => JSON.stringify([p.seqlen_kv, p.seqlen_q, p.batch]);
  const columns = Array.from(new Set(list.map(shape))).sort((a, b) => {
    const [l, r] = [JSON.parse(a), JSON.parse(b)];
    return l[0] - r[0] || l[1] - r[1] || l[2] - r[2];
  });
  if (!rows.length) {
    figure.svg.append("text").attr("x", 8).attr("y", 24).text(`Only the baseline, ${cut(base, 40)}, ran here.`);
    return;
  }
  const left = 18 + 7 * Math.min(16, d3.max(rows, (kernel) => kernel.length));
  const box = {left, right: figure.width - 6, top: 8, bottom: 8 + rows.length * 34};
  const x = d3.scaleBand().domain(columns).range([box.left, box.right]).paddingInner(.04);
  const y = d3.scaleBand().domain(rows).range([box.top, box.bottom]).paddingInner(.1);
  const label = (key) => {
    const [k, q] = JSON.parse(key);
    return q === k ? formatCount(k) : `${formatCount(q)}x${formatCount(k)}`;
  };
  const every = Math.max(1, Math.ceil(columns.length * 40 / (box.right - box.left)));
  figure.svg.append("g").attr("class", "axis bare").attr("transform", `translate(0,${box.bottom})`)
      .call(d3.axisBottom(x).tickValues(columns.filter((key, i) => i % every === 0)).tickFormat(label).tickSize(0).tickPadding(8));
  figure.svg.append("g").attr("class", "axis bare").attr("transform", `translate(${box.left},0)`)
      .call(d3.axisLeft(y).tickFormat((kernel) => cut(kernel, 16)).tickSize(0).tickPadding(8));
  figure.svg.append("text").attr("class", "axis-title").attr("text-anchor", "middle")
      .attr("x", (box.left + box.right) / 2).attr("y", box.bottom + 38).text("Sequence length (keys)");
  const narrow = x.bandwidth() < 34;
  for (const item of list) {
    if (item.kernel === base) continue;
    const left = x(shape(item)), top = y(item.kernel);
    const speedup = speedupOf(item, rankedPoints.get(problemKey(item)));
    // Full colour from 8 times on, either way.
    const strength = speedup ? Math.min(1, Math.abs(Math.log2(speedup)) / 3) : 0;
    figure.svg.append("rect").attr("class", `cell ${speedup === null ? "none" : speedup >= 1 ? "faster" : "slower"}`)
        .attr("x", left).attr("y", top).attr("width", x.bandwidth()).attr("height", y.bandwidth())
        .attr("rx", 3).attr("fill-opacity", speedup === null ? 1 : (0.1 + 0.5 * strength).toFixed(2));
    const word = speedup !== null ? `${significant(speedup, narrow || speedup >= 100 ? 2 : 3)}${narrow ? "" : "x"}`
        : item.row.status === "ok" ? "n/a" : statusWords[item.row.status] || item.row.status;
    figure.svg.append("text").attr("class", narrow ? "cell-text small" : "cell-text").attr("text-anchor", "middle")
        .attr("x", left + x.bandwidth() / 2).attr("y", top + y.bandwidth() / 2 + 4).text(word);
    const text = (p) => `${describeItem(p)}\n${speedup === null ? `no time of ${cut(base, 40)} to compare with`
        : `${significant(speedup)}x as fast as ${cut(base, 40)}`}`;
    figure.spots.push({x: left + x.bandwidth() / 2, y: top + y.bandwidth() / 2, item, text});
  }
}

function addSpeedup() {
  // One cell a kernel and problem: of several rounds the first that is not ok, else the middle one.
  const cells = new Map(points.map((item) => [problemKey(item) + item.kernel, item]));
  for (const item of items.filter(({row}) => row.status !== "ok").reverse()) {
    cells.set(problemKey(item) + item.kernel, item);
  }
  const groups = new Map([...facetGroups([...cells.values()])]
      .filter(([, group]) => new Set(group.map((item) => item.kernel)).size > 1));
  const chart = addChart("speedup", groups, (group) => ({
    title: facetTitle(group[0]), draw: drawSpeedup, whole: true,
    description: "Speed-up over the baseline kernel, one row a kernel, one column a length. Each cell says by how much.",
    tall: (_, figure) => 8 + 34 * Math.max(1, new Set(figure.list.map((item) => item.kernel)
        .filter((kernel) => kernel !== baselineOf(group[0].run))).size) + 50,
  }), "Nothing to compare: one kernel alone on each problem.");
  const select = document.getElementById("baseline");
  if (!select) return null;
  const option = (value, text) => {
    const entry = select.appendChild(document.createElement("option"));
    entry.value = value;
    entry.textContent = cut(text, 60);
  };
  option("", `slowest (${Array.from(new Set(slowest.filter((name) => name))).join(", ") || "none"})`);
  for (const kernel of kernels) option(kernel, kernel);
  select.value = kernels.includes(state.baseline) ? state.baseline : "";
  select.addEventListener("change", () => {
    state.baseline = select.value;
    chart.refresh(true);
    drawFigures();
    refreshTables(["table-speedup"]);
    writeHash();
  });
  document.querySelector(".controls-inline").hidden = false;
  return select;
}
