// The line protocol between the driver and a worker: one JSON object a line, UTF-8, '\n' at the
// end. The worker reads requests on stdin and writes replies on the file descriptor that was its
// stdout (it points its own stdout at stderr first, so that a kernel's printf cannot break the
// protocol).
//
//   driver -> worker   {"type":"start","device":"cuda:0"}          once, first
//                      {"type":"run","request":{...}}              one case
//                      {"type":"ceilings","sustained":false}       measure the roofs
//                      {"type":"doctor"}                           the state of this device
//                      {"type":"proof","counters":"hbm"}           count work of known size
//   worker -> driver   {"type":"hello","protocol":1,"device":{...},"environment":{...}}
//                      {"type":"phase","index":3,"phase":"verify"}
//                      setup|verify|warmup|timed|counters
//                      {"type":"row","index":3,"row":{...}}        ends a case
//                      {"type":"ceilings","ceilings":{...}}
//                      {"type":"doctor","checks":[{"id","status","detail","fix"}]}  and "proof"
//                      alike
//                      {"type":"error","code":77,"what":"...","hint":"..."}   fatal; the worker
//                      exits
//
// After a row whose error is sticky (a CUDA context that is lost) the worker writes the row and
// exits; the driver starts a fresh one. A worker whose stdin closes exits at once.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/problem.hpp"

namespace rooflash {

inline constexpr int kProtocolVersion = 1;

// How a case is measured. Every field has its command line flag.
struct RunOptions {
  std::string l2 = "cold";       // cold | warm
  std::string power = "burst";   // burst | sustained
  std::string counters = "hbm";  // hbm | none | force (hbm, where a tool seems to own them too)
  std::string verify = "on";     // on | off | only
  std::int64_t min_samples = 10;
  std::int64_t max_samples = 200;
  double max_noise = 0.005;     // stop when the 95 % interval's half width is below this
  double max_time_s = 0.4;      // of the timed phase
  double warmup_s = 0.05;       // at least; longer while the clock still moves, at most 20x
  std::int64_t sram_bytes = 0;  // sim: SRAM of one SM; 0 takes the GPU's
};

struct CaseRequest {
  std::int64_t index = 0;  // of the case in the plan; replies carry it
  std::string kernel;
  Problem problem;
  int round = 0;
  std::uint64_t seed = 0;
  RunOptions options;
};

nlohmann::ordered_json to_json(const CaseRequest& request);
// Throws UsageError with the field's name on anything missing or of another type.
CaseRequest case_request_from_json(const nlohmann::ordered_json& json);

}  // namespace rooflash
