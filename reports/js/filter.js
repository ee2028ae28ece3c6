// ---- The filter language of -f -----------------------------------------------------------------
// The same grammar and meaning as src/sweep/filter.cpp; tests/browser compares the two. Names of
// kernels and devices are free, as where the program filters records.

const filterTexts = {
  kernel: (row) => row.kernel,
  device: (row) => row.device,
  case: (row) => row.case,
  pass: (row) => row.problem.pass,
  dtype: (row) => row.problem.dtype,
  mask: (row) => row.problem.mask,
  causal: (row) => row.problem.mask === "causal" ? "true" : "false",
  align: (row) => row.problem.align,
  distribution: (row) => row.problem.distribution,
  "fp8-scale": (row) => fp8Value(row, "scale", "block"),
  "fp8-hadamard": (row) => fp8Value(row, "hadamard", "off"),
  "fp8-accum": (row) => fp8Value(row, "accum", "exact"),
  "fp8-max": (row) => fp8Value(row, "max", "lazy"),
  "fp8-smooth": (row) => fp8Value(row, "smooth", "off"),
  "fp8-out": (row) => fp8Value(row, "out", "bf16"),
};
const fp8Value = (row, option, usual) => row.problem.dtype === "e4m3" ? row.problem.options[option] ?? usual : "";

const filterCounts = {
  "batch-size": (row) => row.problem.batch,
  nheads: (row) => row.problem.heads_q,
  "nheads-kv": (row) => row.problem.heads_kv,
  "gqa-ratio": (row) => Math.floor(row.problem.heads_q / row.problem.heads_kv),
  seqlen: (row) => row.problem.seqlen_kv,
  "seqlen-q": (row) => row.problem.seqlen_q,
  headdim: (row) => row.problem.headdim,
  "headdim-v": (row) => row.problem.headdim_v,
};
// Keys whose values are a closed set: another value can never match, so it is a mistake.
const filterValues = {
  pass: ["fwd", "bwd"],
  dtype: ["fp32", "fp16", "bf16", "e4m3"],
  mask: ["none", "causal", "window"],
  causal: ["true", "false"],
  align: ["bottom-right", "top-left"],
  distribution: ["normal", "outlier", "large", "negative", "constant", "biased", "biased-0.3", "peaky"],
  "fp8-scale": ["block", "head", "tensor"],
  "fp8-hadamard": ["off", "on"],
  "fp8-accum": ["exact", "fast"],
  "fp8-max": ["lazy", "true"],
  "fp8-smooth": ["off", "on"],
  "fp8-out": ["bf16", "fp16", "e4m3"],
};

function globMatch(pattern, text) {
  let p = 0, t = 0, star = -1, eaten = 0;
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === "*") {
      star = p++;
      eaten = t;
    } else if (p < pattern.length && pattern[p] === text[t]) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++eaten;
    } else {
      return false;
    }
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

// "4k" to 4096. Throws where it is no positive count below 2^53.
function parseCount(text) {
  const [, digits, suffix] = /^(-?[0-9]+)(.*)$/s.exec(text) || [];
  if (digits === undefined) throw new Error(`'${text}' is not a number`);
  const unit = {"": 1n, k: 1024n, m: 1024n * 1024n}[suffix.toLowerCase()];
  if (unit === undefined) throw new Error(`'${text}' is not a whole number`);
  const value = BigInt(digits) * unit;
  if (value <= 0n) throw new Error(`'${text}' is not positive`);
  if (value > 1n << 53n) throw new Error(`'${text}' is too large`);
  return Number(value);
}

const mostValues = 10000;  // a longer list is a slip of the pen

// "4k" or "512:16k:x2": the counts it stands for.
function parseCounts(text) {
  if (!text.includes(":")) return [parseCount(text)];
  const parts = text.split(":");
  if (parts.length !== 3) throw new Error(`range '${text}' does not have three parts`);
  const first = parseCount(parts[0]), last = parseCount(parts[1]);
  if (first > last) throw new Error(`range '${text}' runs backwards`);
  const geometric = parts[2].startsWith("x");
  const step = parseCount(parts[2].slice(geometric ? 1 : 0));
  if (geometric && step === 1) throw new Error(`range '${text}' never grows`);
  const values = [];
  for (let value = first; value <= last; value = geometric ? value * step : value + step) {
    if (values.length === mostValues) throw new Error(`range '${text}' has too many values`);
    values.push(value);
  }
  return values;
}

// The function that says whether a row passes. Throws Error with the column where `text` is wrong.
//   any  := all { "OR" all }      all  := term { ["AND"] term }
//   term := "-" term | "(" any ")" | KEY ":" value | KEY ":(" value { "OR" value } ")"
function parseFilter(text) {
  const deepest = 100;
  let at = 0, depth = 0;

  const fail = (what) => { throw new Error(`${what} at column ${at + 1}`); };
  const deeper = () => { if (++depth > deepest) fail("nested too deeply"); };
  const skipSpaces = () => { while (text[at] === " " || text[at] === "\t") at++; };
  const accept = (c) => {
    skipSpaces();
    if (text[at] !== c) return false;
    at++;
    return true;
  };
  const wordHere = () => /^[^ \t()\n]*/.exec(text.slice(at))[0];
  const acceptWord = (word) => {
    skipSpaces();
    if (wordHere() !== word) return false;
    at += word.length;
    return true;
  };

  function any() {
    deeper();
    const parts = [];
    do parts.push(all()); while (acceptWord("OR"));
    depth--;
    return (row) => parts.some((part) => part(row));
  }

  function all() {
    const parts = [];
    for (;;) {
      parts.push(term());
      const more = acceptWord("AND");
      skipSpaces();
      const ends = at === text.length || text[at] === ")" || wordHere() === "OR";
      if (!more && ends) return (row) => parts.every((part) => part(row));
    }
  }

  function term() {
    if (accept("-")) {
      deeper();
      const part = term();
      depth--;
      return (row) => !part(row);
    }
    if (accept("(")) {
      const part = any();
      if (!accept(")")) fail("expected ')'");
      return part;
    }
    const key = parseKey();
    if (text[at] !== "(") return value(key);
    at++;
    const parts = [];
    do {
      skipSpaces();
      parts.push(value(key));
    } while (acceptWord("OR"));
    if (!accept(")")) fail("expected OR or ')'");
    return (row) => parts.some((part) => part(row));
  }

  function parseKey() {
    const word = wordHere(), colon = word.indexOf(":");
    if (colon <= 0) fail("expected KEY:VALUE");
    const key = word.slice(0, colon);
    if (!Object.hasOwn(filterTexts, key) && !Object.hasOwn(filterCounts, key)) {
      fail(`unknown key '${cut(key, 40)}'`);
    }
    at += colon + 1;
    return key;
  }

  function value(key) {
    const word = wordHere();
    if (!word) fail(`${key} needs a value`);
    const parts = Array.from(new Set(word.split(",")), (element) => {
      if (!element) fail(`${key} has an empty element`);
      return Object.hasOwn(filterTexts, key) ? textMatch(key, element) : countMatch(key, element);
    });
    at += word.length;
    return (row) => parts.some((part) => part(row));
  }

  function textMatch(key, pattern) {
    const known = filterValues[key];
    if (known && !known.some((name) => globMatch(pattern, name))) {
      fail(`${key} is never '${cut(pattern, 40)}'`);
    }
    const get = filterTexts[key];
    return (row) => globMatch(pattern, get(row));
  }

  function countMatch(key, text) {
    const get = filterCounts[key];
    const sign = /^(>=|<=|>|<|=)?/.exec(text)[0];
    try {
      if (!sign) {
        const counts = new Set(parseCounts(text));
        return (row) => counts.has(get(row));
      }
      const bound = parseCount(text.slice(sign.length));
      return {
        ">=": (row) => get(row) >= bound, "<=": (row) => get(row) <= bound,
        ">": (row) => get(row) > bound, "<": (row) => get(row) < bound,
        "=": (row) => get(row) === bound,
      }[sign];
    } catch (error) {
      return fail(`${key}: ${cut(error.message, 80)}`);
    }
  }

  const part = any();
  if (at < text.length) fail("unexpected ')'");
  return part;
}
