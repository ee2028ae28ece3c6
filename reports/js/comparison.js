// ---- Comparison of records: a forest plot ----------------------------------------------------------------

// The cases of each comparison, largest change first; as comparison_table() of the program.
const comparedItems = comparisons.map((comparison) => {
  const size = ({row: {ratio}}) => ratio > 0 ? Math.abs(Math.log(ratio)) : -1;
  return comparison.cases.map((row) => ({row, kernel: row.kernel, sim: false})).sort((a, b) => size(b) - size(a));
});

const verdictShapes = {slower: 2, faster: 5, same: 0, unsure: 3};  // up, down, circle, diamond

function drawForest(figure) {
  const {list} = figure;
  const shown = list.slice(0, figure.most), narrow = figure.width < 640;
  const box = {left: narrow ? 14 : Math.min(460, figure.width * 0.4), right: figure.width - (narrow ? 14 : 232), top: 14,
               bottom: 14 + shown.length * (narrow ? 34 : 22)};
  const bounds = shown.flatMap(({row}) => [row.ratio, row.ci95_low ?? row.ratio, row.ci95_high ?? row.ratio,
                                           1 + (row.threshold ?? 0.05) * 1.6, 1 / (1 + (row.threshold ?? 0.05) * 1.6)]);
  const [low, high] = d3.extent(bounds), pad = Math.max(1.004, (high / low) ** 0.04);
  const x = d3.scaleLog().domain([low / pad, high * pad]).range([box.left, box.right]);
  const ticks = d3.scaleLinear().domain(x.domain()).ticks(Math.max(2, Math.floor((box.right - box.left) / 90)));
  const step = (box.bottom - box.top) / Math.max(1, shown.length);
  const y = (i) => box.top + step * (i + (narrow ? 0.72 : 0.5));
  const limit = shown[0].row.threshold;
  if (limit) {
    figure.svg.append("rect").attr("class", "threshold").attr("x", x(1 / (1 + limit))).attr("y", box.top)
        .attr("width", x(1 + limit) - x(1 / (1 + limit))).attr("height", box.bottom - box.top);
  }
  const layer = addAxes(figure, box, x, (i) => y(i), {values: ticks, format: changeText, grid: true},
      {values: [], format: String}, "Change in time, new against base", "");
  layer.append("line").attr("class", "base").attr("x1", x(1)).attr("x2", x(1)).attr("y1", box.top).attr("y2", box.bottom);
  shown.forEach((item, i) => {
    const {row} = item, kind = `v-${row.verdict.replace(/[^a-z]/g, "")}`, at = y(i);
    const part = figure.svg.append("g").attr("class", `forest ${kind}`);
    if (row.ci95_low !== null && row.ci95_high !== null) {
      part.append("path").attr("class", "whisker").attr("d", `M${x(row.ci95_low)},${at}H${x(row.ci95_high)}`);
    }
    part.append("path").attr("class", "mark").attr("data-n", 1)
        .attr("d", `M${x(row.ratio)},${at}${shapes[verdictShapes[row.verdict] ?? 4]}`);
    const interval = row.ci95_low === null ? ", no interval" : narrow ? "" : ` [${changeText(row.ci95_low)}, ${changeText(row.ci95_high)}]`;
    const name = part.append("text").attr("class", "label").text(cut(row.case, narrow ? 46 : Math.floor((box.left - 20) / 7.5)));
    const value = part.append("text").attr("class", "label minor");
    if (narrow) {
      name.attr("x", box.left).attr("y", at - 10);
      value.attr("x", box.right).attr("y", at - 10).attr("text-anchor", "end").text("");
    } else {
      name.attr("x", box.left - 10).attr("y", at + 4).attr("text-anchor", "end");
      value.attr("x", box.right + 8).attr("y", at + 4).text(`${row.verdict} ${changeText(row.ratio)}${interval}`);
    }
    const text = () => `${cut(row.case, 120)}\n${cut(row.device, 60)}\n${row.verdict}${row.reason ? `: ${cut(row.reason, 160)}` : ""}\n` +
        `${formatTime(row.base_us)} to ${formatTime(row.new_us)}, ${changeText(row.ratio)}` +
        (row.ci95_low === null ? ", too few rounds for an interval" : ` (95 %: ${changeText(row.ci95_low)} to ${changeText(row.ci95_high)})`);
    figure.spots.push({x: x(row.ratio), y: at, item, text});
  });
  if (list.length > shown.length) figure.note.text(`${shown.length} of ${counted(list.length, "case")}, the largest changes; all are in the data table`);
}

function addComparisons() {
  comparisons.forEach((comparison, i) => {
    const list = comparedItems[i].filter(({row}) => row.ratio > 0);
    const most = 40;
    addChart(`comparison-${i + 1}`, new Map(list.length ? [["all", list]] : []), () => ({
      title: `${comparison.new_name} against ${comparison.base_name}`, draw: drawForest, most, whole: true,
      description: "Ratio of times with its 95 % interval, one line a case, largest change first; the band is what does not matter.",
      tall: (width, figure) => 14 + Math.min(most, figure.list.length) * (width < 640 ? 34 : 22) + 46,
    }), "No case has a time on both sides.");
  });
}
