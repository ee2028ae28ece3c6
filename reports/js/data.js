// ---- The records, as rows and points -------------------------------------------------------------

// Characters that would change how the text around them reads, or that nothing shows. Saved data
// keeps them.
const unsafe =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]/g;

// `value` with those replaced in every text and key.
function cleansed(value) {
  if (typeof value === "string") return value.replace(unsafe, "\ufffd");
  if (Array.isArray(value)) return value.map(cleansed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [cleansed(key), cleansed(item)]));
}

// The page's data block: base64 of a zlib stream of JSON.
async function unpack(text) {
  const characters = atob(text), packed = new Uint8Array(characters.length);
  for (let i = 0; i < packed.length; i++) packed[i] = characters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

// The tables of the page stay as they are where a browser cannot unpack the data.
const source = await unpack(document.getElementById("data").textContent).catch((fault) => {
  const note = document.createElement("p");
  note.className = "simulated";
  note.textContent = `This browser cannot draw the charts (${fault.message}); the tables hold the figures.`;
  document.querySelector("main").prepend(note);
  throw fault;
});
// Raw marks, and control characters, which JSON writes as escapes; most records have none.
const suspicious = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\\u00[01]|\\[bf]/;
const data = suspicious.test(source) ? cleansed(JSON.parse(source)) : JSON.parse(source);
const {records, comparisons, names, detectable, history, max_points: maxPoints} = data;

const kernelLabel = (row) => row.provider === "builtin" || !row.provider ||
    row.kernel.includes(row.provider) ? row.kernel : `${row.provider}:${row.kernel}`;

function maskLabel(p) {
  let text = p.mask === "none" ? "full" : p.mask;
  if (p.window) text += ` ${p.window.map((v) => v < 0 ? "inf" : v).join(",")}`;
  return p.mask !== "none" && p.align === "top-left" ? `${text} top-left` : text;
}

// What a chart of several lengths holds fixed, but for the mask.
function facetLabel(p) {
  let text = `${p.pass} ${p.dtype} d${p.headdim}`;
  if (p.headdim_v !== p.headdim) text += `-${p.headdim_v}`;
  text += `, ${counted(p.heads_q, "head")}`;
  if (p.heads_kv !== p.heads_q) text += ` on ${p.heads_kv}`;
  if (p.distribution !== "normal") text += `, ${p.distribution}`;
  for (const [name, value] of Object.entries(p.options)) text += `, ${name}=${value}`;
  return cut(text, 80);
}

// Why `path` has no value in this row; as missing_reason() of the program.
function missingReason(row, path) {
  if (row.missing[path]) return row.missing[path];
  if (row.status !== "ok") return row.reason ? `${row.status}: ${row.reason}` : row.status;
  if (row.simulated) return "simulated";
  if (path.startsWith("counters.") || path.startsWith("derived.")) {
    if (row.counters.reason) return row.counters.reason;
    if (row.counters.status !== "ok") return `counters ${row.counters.status}`;
  }
  return "not measured";
}

const isRanked = (row) => row.status === "ok" && row.time_us !== null &&
    row.time_us.median > 0 && !row.flags.includes("implausible");

// What the charts need of a row, beside it.
function makeItem(row, run, index) {
  const {hbm_read_bytes: read, hbm_write_bytes: written} = row.counters;
  const counted = read !== null && written !== null ? read + written : null;
  const moved = counted ?? (row.simulated ? row.model.predicted_hbm_bytes : null);
  const compulsory = row.model.compulsory_bytes;
  const ok = row.status === "ok", p = row.problem;
  const l2 = row.counters.sm_l2_read_bytes !== null && row.counters.sm_l2_write_bytes !== null
      ? row.counters.sm_l2_read_bytes + row.counters.sm_l2_write_bytes
      : row.simulated ? row.model.predicted_sm_l2_bytes : null;
  return {
    row, run, index, ref: `${run}:${index}`, kernel: kernelLabel(row), sim: row.simulated,
    where: records.length > 1 ? `${row.device}, ${cut(names[run], 40)}` : row.device,
    facet: facetLabel(p), mask: maskLabel(p), length: p.seqlen_kv,
    // The problem alone: the case without its kernel.
    rival: JSON.stringify([run, row.device, row.case.slice(row.kernel.length), row.round]),
    moved, predicted: counted === null, tflops: row.derived.tflops,
    x: !ok ? null : row.derived.intensity_flop_per_byte ?? (moved > 0 ? row.model.flops / moved : null),
    xc: compulsory > 0 ? row.model.flops / compulsory : null,
    xl2: ok && l2 > 0 ? row.model.flops / l2 : null,
    ratio: ok && moved !== null && compulsory > 0 ? moved / compulsory : null,
    low: row.time_us ? row.model.flops / row.time_us.ci95[1] / 1e6 : null,
    high: row.time_us ? row.model.flops / row.time_us.ci95[0] / 1e6 : null,
  };
}

const items = records.flatMap((record, run) =>
    record.rows.map((row, index) => makeItem(row, run, index)));
const itemOf = new Map(items.map((item) => [item.ref, item]));

// One point a case and device: of several rounds the middle one by time.
function makePoints() {
  const timed = items.filter((item) => item.row.status === "ok" && item.row.time_us);
  const cases = groupBy(timed, (item) =>
      JSON.stringify([item.run, item.row.device, item.row.case, item.row.provider]));
  return Array.from(cases.values(), (rounds) => {
    rounds.sort((a, b) => a.row.time_us.median - b.row.time_us.median);
    return rounds[Math.floor((rounds.length - 1) / 2)];
  });
}
const points = makePoints();

const kernels = Array.from(new Set(items.map((item) => item.kernel))).sort(byText);

// The roofs of one device: measured (or of the model) first, then the datasheet's.
function roofsOf(run, device, gpu) {
  const own = records[run].ceilings.find((c) => c.device === device);
  const sheet = records[run].datasheet.find((d) => d.gpu === gpu);
  const roofs = [];
  if (own) {
    roofs.push({
      solid: true, name: own.source, what: own.hbm_copy_gbps ? "HBM copy" : "HBM read",
      hbm: own.hbm_copy_gbps ?? own.hbm_read_gbps, tensor: own.gemm_tflops,
      l2: own.units?.l2_read_gbps ?? null, sustained: own.sustained?.gemm_tflops ?? {},
    });
  }
  if (sheet) {
    roofs.push({solid: false, name: "datasheet, dense", what: "HBM", hbm: sheet.hbm_gbps,
                tensor: sheet.tensor_tflops, l2: null, sustained: {}});
  }
  return roofs;
}

// The lower of the two roofs that a row is held against, as roofs_of() of the program.
function rowRoofs(item) {
  const [roof] = roofsOf(item.run, item.row.device, item.row.gpu);
  const tensor = roof ? roof.tensor[item.row.problem.dtype] : undefined;
  return {hbm: roof ? roof.hbm : null, tensor: tensor ?? null, name: roof ? roof.name : ""};
}
