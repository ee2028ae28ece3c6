// What the program's filter makes of many expressions, as JSON on stdout: the oracle for the one in
// the report (reports/js/filter.js).
//   {"rows": [...], "cases": [{"text": "...", "matches": [true, ...]} or {"text", "error"}]}
#include <fmt/format.h>

#include <iostream>
#include <vector>

#include "core/error.hpp"
#include "record/describe.hpp"
#include "sweep/filter.hpp"
#include "sweep/filter_keys.hpp"

namespace {

using namespace rooflash;

struct Subject {
  std::string kernel;
  std::string device;
  Problem problem;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const char* const kernels[] = {"naive", "fa2", "other.kernel"};
  const char* const devices[] = {"cuda:0", "sim:h200", "cuda:11"};
  for (int i = 0; i < 72; ++i) {
    Problem p;
    p.pass = i % 5 == 0 ? Pass::bwd : Pass::fwd;
    p.dtype = std::array{DType::fp32, DType::fp16, DType::bf16, DType::e4m3}[i % 4];
    p.batch = 1 + i % 3;
    p.heads_kv = 1 + i % 2;
    p.heads_q = p.heads_kv * (1 + i % 4);
    p.seqlen_kv = std::int64_t{512} << (i % 7);
    p.seqlen_q = i % 3 ? p.seqlen_kv : 1;
    p.headdim = std::array{64, 96, 128}[i % 3];
    p.headdim_v = i % 8 ? p.headdim : 128;
    p.mask.kind = std::array{MaskKind::none, MaskKind::causal, MaskKind::window}[i % 3];
    p.mask.align = i % 6 == 1 ? Align::top_left : Align::bottom_right;
    if (p.mask.kind == MaskKind::window) p.mask.left = 255;
    p.distribution = i % 9 ? Distribution::normal : Distribution::peaky;
    if (p.dtype == DType::e4m3 && i % 8 == 3) p.options["accum"] = "fast";
    if (p.dtype == DType::e4m3 && i % 3 == 0) p.options["hadamard"] = "on";
    if (p.dtype == DType::e4m3 && i % 5 == 2) p.options = {{"max", "true"}, {"out", "fp16"}};
    all.push_back({kernels[i / 4 % 3], devices[i / 2 % 3], p});
  }
  return all;
}

std::vector<std::string> expressions() {
  std::vector<std::string> all = {
      "kernel:fa2 dtype:(bf16 OR fp16) seqlen:>=4k -causal:true",
      "kernel:fa2 OR kernel:naive seqlen:>8k", "(kernel:fa2 OR kernel:naive) seqlen:>8k",
      "kernel:fa2 AND seqlen:4k AND -headdim:96", "-(kernel:fa2 OR dtype:e4m3)", "--kernel:fa2",
      "- kernel:fa2", "kernel:f*2", "kernel:*", "kernel:*e*", "kernel:**a**", "kernel:nope",
      "kernel:other.kernel", "case:*d128*", "case:fa2/fwd/*", "case:*/causal", "case:*causal*",
      "case:fa2", "device:cuda:0", "device:cuda:*", "device:sim:h200", "device:nowhere",
      "kernel:fa2,naive", "kernel:(fa2 OR naive,other.kernel)", "kernel:( fa2 OR naive )",
      "seqlen:512,1k", "seqlen:512:8k:x2", "seqlen:1k:4k:1k", "seqlen:(<1k OR >=16k)", "seqlen:1K",
      "seqlen:1m", "seqlen:=1024", "seqlen:512,>=8k", "seqlen:512,512", "seqlen-q:1",
      "headdim:64,96", "headdim-v:128", "gqa-ratio:>1", "nheads:<=4", "nheads-kv:2",
      "fp8-accum:fast", "fp8-accum:exact", "fp8-scale:block OR fp8-hadamard:on", "batch-size:1:3:1",
      "fp8-max:true", "fp8-max:lazy fp8-smooth:off", "fp8-smooth:on OR fp8-out:fp16",
      "fp8-out:fp32", "dtype:*16", "mask:w*", "align:top-left", "distribution:peaky",
      "\tkernel:fa2\t dtype:bf16 ", "kernel:fa2  OR  kernel:naive",
      // Wrong.
      "", " ", "fa2", "kernel", "kernel:", "kernel: fa2", ":fa2", "nokey:1", "kernel:fa2 OR",
      "OR kernel:fa2", "kernel:fa2 AND", "AND", "kernel:(fa2", "kernel:(fa2 naive)", "kernel:()",
      "(kernel:fa2", "kernel:fa2)", "()", "-", "kernel:fa2 -", "kernel:fa2,", "kernel:,fa2",
      "seqlen:0", "seqlen:-1", "seqlen:x", "seqlen:1.5k", "seqlen:1kk", "seqlen:>", "seqlen:>=<1k",
      "seqlen:99999999999999999999", "seqlen:9007199254740993", "seqlen:9007199254740992",
      "seqlen:8589934592m", "seqlen:1:2", "seqlen:1:2:3:4", "seqlen:2:1:1", "seqlen:1:8:x1",
      "seqlen:1:1m:1", "seqlen:1:8:0", "seqlen:+1", "seqlen: 512", "dtype:float", "dtype:BF16",
      "mask:full", "causal:yes", "align:left", "distribution:gauss", "pass:both", "kernel:fa2\nx",
      "kernel:fa2 kernel", "constructor:1", "__proto__:1", "toString:x", "dtype:(bf16 OR float)"};
  for (const FilterKey& key : filter_keys()) {
    all.push_back(key.name + ":*");
    all.push_back(key.name + ":1");
    all.push_back("-" + key.name + ":>1");
    all.push_back(key.name + ":(2 OR 3)");
  }
  for (const auto& [key, values] : closed_filter_values()) {
    for (const std::string& value : values) all.push_back(fmt::format("{}:{}", key, value));
  }
  all.push_back(std::string(99, '-') + "kernel:fa2");
  all.push_back(std::string(101, '-') + "kernel:fa2");
  all.push_back(std::string(99, '(') + "kernel:fa2" + std::string(99, ')'));
  all.push_back(std::string(101, '(') + "kernel:fa2" + std::string(101, ')'));
  return all;
}

}  // namespace

int main() {
  const std::vector<Subject> rows = subjects();
  Json result;
  for (const Subject& row : rows) {
    Json json;
    json["case"] = case_id(row.kernel, row.problem);
    json["kernel"] = row.kernel;
    json["device"] = row.device;
    json["problem"] = JsonWriter::encode(row.problem);
    result["rows"].push_back(std::move(json));
  }
  for (const std::string& text : expressions()) {
    Json json;
    json["text"] = text;
    try {
      const Filter filter = Filter::parse(text, Filter::Names::any);
      for (const Subject& row : rows) {
        json["matches"].push_back(filter.matches(row.kernel, row.problem, row.device));
      }
    } catch (const UsageError& error) {
      json["error"] = error.what();
    }
    result["cases"].push_back(std::move(json));
  }
  std::cout << result.dump() << "\n";
}
