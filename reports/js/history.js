// ---- History: the times of a case over records, with the changes of its level ------------------------------

// One item a point, all points of a case together; as history_table() of the program.
const histories = history.map((one) => one.points.map((point) => ({
  row: one, kernel: one.kernel, sim: one.simulated, point, time: point.time_us,
})));
const historyItems = histories.flat();

const changeWord = (ratio) => `${ratio > 1 ? "slower" : "faster"} ${changeText(ratio)}`;

// The level of each stretch between two changes, and a line with its size where one begins.
function drawLevels(figure, layer, list, x, y, box) {
  let path = "", labels = 0;
  list.forEach(({point}, i) => {
    const height = y(point.level_us).toFixed(1);
    if (i === 0) path += `M${x(0)},${height}`;
    if (point.change === null) {
      path += `H${x(i).toFixed(1)}`;
      return;
    }
    const left = (x(i - 1) + x(i)) / 2, atEnd = left > box.right - 110;
    path += `H${left.toFixed(1)}V${height}H${x(i).toFixed(1)}`;
    layer.append("line").attr("class", "rule").attr("x1", left).attr("x2", left).attr("y1", box.top).attr("y2", box.bottom);
    figure.svg.append("text").attr("class", "halo").attr("text-anchor", atEnd ? "end" : "start").attr("x", left + (atEnd ? -5 : 5))
        .attr("y", box.top + 13 + 15 * (labels++ % 4)).text(changeWord(point.change));
  });
  layer.append("path").attr("class", `series ${kernelClass(list[0].kernel)}`).attr("d", path);
}

function drawHistory(figure) {
  const {list} = figure, box = plotBox(figure, {left: 70, right: 18, top: 16});
  // At least 3 % around the first level, so that noise does not look like a change.
  const {level_us: level} = list[0].point;
  const [min, max] = d3.extent([0.97 * level, 1.03 * level,
                                ...list.flatMap(({point}) => [point.time_us, ...point.ci95_us])]);
  const [unit, scale] = max < 999.5 ? ["us", 1] : max < 999.5e3 ? ["ms", 1e3] : ["s", 1e6];
  const pad = (max - min) * 0.1;
  // Room above the marks for the sizes of changes.
  const above = list.some(({point}) => point.change !== null) ? 4 * pad : pad;
  const x = d3.scaleLinear().domain([-0.4, list.length - 0.6]).range([box.left, box.right]);
  const y = d3.scaleLinear().domain([min - pad, max + above]).range([box.bottom, box.top]);
  const dates = list.map(({point}) => point.date), day = dates[0].slice(0, 10);
  const oneDay = dates.every((date) => date.startsWith(day));
  const every = Math.ceil(list.length * 52 / (box.right - box.left));
  const layer = addAxes(figure, box, x, y,
      {values: d3.range(0, list.length, every), format: (i) => oneDay ? dates[i].slice(11, 16) : dates[i].slice(5, 10)},
      {values: y.ticks(6), format: (v) => `${Number((v / scale).toPrecision(6))}`},
      oneDay ? `Record, by its time on ${day} (UTC)` : "Record, by its date (UTC)", `Median time, ${unit}`);
  const places = new Map(list.map((item, i) => [item, x(i)]));
  const whiskers = list.map((item) => `M${places.get(item).toFixed(1)},${y(item.point.ci95_us[0]).toFixed(1)}V${y(item.point.ci95_us[1]).toFixed(1)}`);
  layer.append("path").attr("class", `whisker ${kernelClass(list[0].kernel)}`).attr("d", whiskers.join(""));
  drawLevels(figure, layer, list, x, y, box);
  addMarks(figure, layer, list, (item) => places.get(item), (item) => y(item.time), box, ({row, point}) =>
      `${cut(row.case, 120)}\n${cut(row.device, 80)}\n${point.date}, ${cut(point.commit, 40)}, ${cut(point.run, 60)}\n` +
      `${formatTime(point.time_us)} (95 %: ${formatTime(point.ci95_us[0])} to ${formatTime(point.ci95_us[1])})` +
      (point.change === null ? "" : `\n${changeWord(point.change)}: ${formatTime(point.level_us)} from here on`));
}

function addHistory() {
  const groups = new Map(histories.map((list, i) => [i, list]));
  addChart("history", groups, ([{row}]) => ({
    title: `${cut(row.case, 90)} (${cut(row.device, 60)}${row.simulated ? ", simulated" : ""})`, draw: drawHistory, whole: true,
    description: "Median time of one case in each record, by date, with its 95 % interval; a line at the level between two changes.",
  }), "No case that is shown has a time in three of the records.");
}
