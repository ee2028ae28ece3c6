// ---- What is shown, and the address that says so -------------------------------------------------

const state = {
  filter: "",              // as typed
  passes: () => true,      // the last filter that could be read
  hidden: new Set(),       // kernels
  baseline: "",            // of the speed-up; "" takes the slowest
  item: null,              // whose detail is open
};

// Whether the legend and the filter show an item; items of the records know it already.
const isShown = (item) => item.shown ?? (!state.hidden.has(item.kernel) && state.passes(item.row));
function updateShown() {
  for (const item of items) item.shown = !state.hidden.has(item.kernel) && state.passes(item.row);
}

// Of a kernel as the page's own lines name it, which may be shortened.
const isHiddenName = (name) => Array.from(state.hidden).some((kernel) => shortened(kernel) === name);

// Sets the filter; returns what is wrong with it, or "".
function setFilter(text) {
  state.filter = text.trim();
  if (!state.filter) {
    state.passes = () => true;
    return "";
  }
  try {
    state.passes = parseFilter(state.filter);
    return "";
  } catch (error) {
    return error.message;
  }
}

// "#filter=kernel%3Afa2&hide=naive&case=0:12"
function stateHash() {
  const parts = new URLSearchParams();
  if (state.filter) parts.set("filter", state.filter);
  for (const kernel of state.hidden) parts.append("hide", kernel);
  if (state.baseline) parts.set("baseline", state.baseline);
  const theme = document.documentElement.dataset.theme;
  if (theme !== startTheme) parts.set("theme", theme);
  if (state.item) parts.set("case", `${state.item.row.case}@${state.item.ref}`);
  return parts.toString();
}

const startTheme = document.documentElement.dataset.theme;

function readHash() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const fault = setFilter(parts.get("filter") || "");
  state.hidden = new Set(parts.getAll("hide").filter((kernel) => kernels.includes(kernel)));
  state.baseline = parts.get("baseline") || "";
  const theme = parts.get("theme");
  document.documentElement.dataset.theme =
      ["light", "dark", "auto"].includes(theme) ? theme : startTheme;
  const ref = (parts.get("case") || "").split("@").pop();
  state.item = itemOf.get(ref) || null;
  return fault;
}

// The address bar follows the state; the page's history does not grow with each key.
let writtenHash = null, hashTimer = 0;
function writeHash() {
  window.clearTimeout(hashTimer);
  hashTimer = window.setTimeout(() => {
    const hash = stateHash();
    if (hash === location.hash.slice(1)) return;
    writtenHash = hash;
    location.replace(`#${hash}`);
  }, 250);
}
