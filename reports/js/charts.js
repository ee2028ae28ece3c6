// ---- Charts of several figures --------------------------------------------------------------------

const charts = [];

// At most as many items as the page was asked to draw: evenly, and the extremes of what is drawn.
function thinned(list) {
  if (!maxPoints || list.length <= maxPoints) return list;
  const kept = new Set();
  for (const valueOf of [(item) => item.tflops, (item) => item.x, (item) => item.row.time_us?.median]) {
    kept.add(d3.least(list, valueOf)).add(d3.greatest(list, valueOf));
  }
  kept.delete(undefined);
  const spread = maxPoints - kept.size;
  for (let i = 0; i < spread; i++) kept.add(list[Math.floor(i * list.length / spread)]);
  return list.filter((item) => kept.has(item));
}

// One figure a group of items, in the order of `groups` (a Map). specOf(group) gives the figure's
// spec; figure.list holds the group's items that are shown, thinned unless the spec says `whole`, and
// figure.left how many that left out. Figures with none are hidden, and so are those beyond a limit,
// until asked for.
function addChart(name, groups, specOf, whyNone = "No rows.") {
  const container = document.querySelector(`[data-chart="${name}"]`);
  if (!container) return {name, refresh() {}};  // of a section that the page was made without
  const made = new Map();
  let limit = 24;
  const none = d3.select(container).append("p").attr("class", "note").text(whyNone);
  const more = d3.select(container.parentNode).insert("button", () => container.nextSibling)
      .attr("type", "button").attr("class", "more-figures");
  const refresh = (all = false) => {
    let shown = 0, rest = 0, fresh = false;
    for (const [key, group] of groups) {
      const visible = group.filter(isShown), old = made.get(key);
      const show = visible.length > 0 && shown < limit;
      if (visible.length && !show) rest++;
      if (old) old.node.hidden = !show;
      if (!show) continue;
      shown++;
      if (!old) {
        made.set(key, addFigure(container, specOf(group)));
        fresh = true;
      }
      const figure = made.get(key), before = figure.list, list = figure.whole ? visible : thinned(visible);
      if (all || !before || before.length !== list.length || before.some((item, i) => item !== list[i])) {
        figure.dirty = true;
      }
      figure.list = list;
      figure.left = visible.length - list.length;
    }
    if (fresh) for (const key of groups.keys()) if (made.has(key)) container.append(made.get(key).node);
    none.attr("hidden", shown ? "" : null);
    more.attr("hidden", rest ? null : "").text(`Show ${counted(rest, "more chart")}`);
    container.classList.toggle("single", shown === 1);
  };
  more.node().addEventListener("click", () => {
    limit += 48;
    refresh();
    drawFigures();
  });
  charts.push({name, refresh});
  return {name, refresh};
}
