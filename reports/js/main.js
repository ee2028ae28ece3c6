// ---- The page ---------------------------------------------------------------------------------------------------

const filterBox = document.getElementById("filter");
const filterNote = document.getElementById("filter-note");

function showFilterState(fault) {
  filterBox.toggleAttribute("aria-invalid", Boolean(fault));
  filterBox.classList.toggle("invalid", Boolean(fault));
  const shown = items.filter(isShown).length;
  filterNote.classList.toggle("fault", Boolean(fault));
  filterNote.textContent = fault || (shown === items.length ? counted(items.length, "row")
                                                            : `${shown} of ${counted(items.length, "row")}`);
}

// After any change of what is shown; `all` draws each figure anew.
function refresh(all = false) {
  updateShown();
  for (const chart of charts) chart.refresh(all);
  drawFigures();
  refreshTables();
  for (const item of document.querySelectorAll(".advice li")) item.hidden = isHiddenName(item.dataset.kernel);
}

function addLegend() {
  const legend = document.getElementById("legend");
  for (const kernel of kernels) {
    const label = legend.appendChild(document.createElement("label"));
    const box = label.appendChild(document.createElement("input"));
    box.type = "checkbox";
    box.checked = !state.hidden.has(kernel);
    box.dataset.kernel = kernel;
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(kernel); else state.hidden.add(kernel);
      refresh();
      showFilterState("");
      writeHash();
    });
    const mine = points.filter((item) => item.kernel === kernel);
    const group = d3.select(label).append("svg").attr("viewBox", "0 0 36 16").attr("aria-hidden", "true").append("g")
        .attr("class", `${kernelClass(kernel)}${mine.length && mine.every((item) => item.sim) ? " sim" : ""}`);
    group.append("path").attr("class", "series").attr("d", "M0,8H36").attr("stroke-dasharray", dashOf(kernel));
    group.append("path").attr("class", "mark").attr("d", `M18,8${shapeOf(kernel)}`);
    if (mine.length && mine.every((item) => item.sim)) group.append("path").attr("class", "core").attr("d", `M18,8${dotShape}`);
    label.append(cut(kernel, 40));
    label.title = cut(kernel, 200);
  }
  if (items.some((item) => item.sim)) {
    const note = legend.appendChild(document.createElement("span"));
    note.className = "note";
    note.textContent = "outlined with a dot: simulated";
  }
}

function showState(fault) {
  filterBox.value = state.filter;
  for (const box of document.querySelectorAll("#legend input")) box.checked = !state.hidden.has(box.dataset.kernel);
  showFilterState(fault);
}

// A click on a link of the page without scripts ("#case-fa2/...") leads to the same case with them.
function caseOfAnchor() {
  if (!location.hash.startsWith("#case-")) return null;
  try {
    const line = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    return line ? itemOf.get(line.dataset.row) || null : null;
  } catch {
    return null;  // no percent-encoded text
  }
}

const fault = readHash();
const linked = caseOfAnchor();
addLegend();
addRooflines();
addThroughput();
const baselineBox = addSpeedup();
addBytes();
addMemory();
addAccuracy();
addNoise();
addModel();
addComparisons();
addHistory();
for (const node of document.querySelectorAll("table")) addTable(node);
document.querySelector(".controls").hidden = false;
refresh();
showState(fault);
if (linked) openCase(linked);
else if (state.item && casePanel) {
  fillCase();
  casePanel.scrollIntoView({block: "start"});
}

let typing = 0;
filterBox.addEventListener("input", () => {
  window.clearTimeout(typing);
  typing = window.setTimeout(() => {
    const wrong = setFilter(filterBox.value);
    if (!wrong) refresh();
    showFilterState(wrong);
    writeHash();
  }, 80);
});

document.getElementById("reset").addEventListener("click", () => {
  setFilter("");
  state.hidden.clear();
  state.baseline = "";
  if (baselineBox) baselineBox.value = "";
  for (const figure of figures) if (figure.zoom && figure.transform.k > 1) figure.zoomBy(0);
  refreshTables(["table-speedup"]);
  refresh(true);
  showState("");
  writeHash();
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches
                                             : root.dataset.theme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  writeHash();
});

document.getElementById("print").addEventListener("click", () => window.print());
document.getElementById("save-csv").addEventListener("click", () => save("rooflash.csv", "text/csv", csv()));
document.getElementById("save-json").addEventListener("click", () => save("rooflash.json", "application/json", recordJson()));

// Links within the page scroll; the address keeps the state.
for (const link of document.querySelectorAll("nav a, .chip.warn, .skip")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const target = document.querySelector(link.getAttribute("href"));
    target.scrollIntoView();
    target.querySelector("h2").tabIndex = -1;
    target.querySelector("h2").focus({preventScroll: true});
  });
}

window.addEventListener("hashchange", () => {
  if (location.hash.slice(1) === writtenHash) return;
  if (!location.hash.includes("=")) {
    const item = caseOfAnchor();
    if (item) openCase(item);
    return;
  }
  const wrong = readHash();
  if (baselineBox) baselineBox.value = state.baseline;
  refreshTables(["table-speedup"]);
  refresh(true);
  showState(wrong);
  fillCase();
});

let resizing = 0, lastWidth = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  window.clearTimeout(resizing);
  resizing = window.setTimeout(() => {
    if (document.documentElement.clientWidth === lastWidth) return;
    lastWidth = document.documentElement.clientWidth;
    for (const figure of figures) figure.dirty = true;
    drawFigures();
  }, 150);
});
for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(event, () => {
    drawForPrint(on);
    openForPrint(on);
  });
}
document.documentElement.dataset.ready = "yes";
