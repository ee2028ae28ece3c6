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
//                      {"type":"metrics","names":[...]}            which of these can be counted
//                      {"type":"profile","request":{"case":{...},"groups":[[...]]}}   count one
//                      case
//   worker -> driver   {"type":"hello","protocol":1,"device":{...},"environment":{...}}
//                      {"type":"phase","index":3,"phase":"verify"}
//                      setup|verify|warmup|timed|counters
//                      {"type":"row","index":3,"row":{...}}        ends a case
//                      {"type":"ceilings","ceilings":{...}}
//                      {"type":"doctor","checks":[{"id","status","detail","fix"}]}  and "proof"
//                      alike
//                      {"type":"metrics","metrics":{"chip","library","status","reason","refused"}}
//                      {"type":"profile","profile":{...}}          ends a case; phases come before
//                      {"type":"error","code":77,"what":"...","hint":"..."}   fatal; the worker
//                      exits
//
// After a row whose error is sticky (a CUDA context that is lost) the worker writes the row and
// exits; the driver starts a fresh one. A worker whose stdin closes exits at once.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "profile/counted.hpp"

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
  OptDouble warmup_s = {};      // launches back to back for so long before the timed phase,
  OptInt warmup_launches = {};  // or so many; neither: until the clock settles
  std::int64_t sram_bytes = 0;  // sim: SRAM of one SM; 0 takes the GPU's
  bool profile = false;         // one launch for a profiler outside, neither timed nor counted
};

struct CaseRequest {
  std::int64_t index = 0;  // of the case in the plan; replies carry it
  std::string kernel;
  Problem problem;
  int round = 0;
  std::uint64_t seed = 0;
  RunOptions options;
};

// One case to be counted: CUPTI's names of metrics, each group collected by itself, in as many
// passes as it takes.
struct ProfileRequest {
  CaseRequest request;  // JSON: "case"
  std::vector<std::vector<std::string>> groups;
};

// What a device says of metrics.
struct MetricAnswer {
  std::string chip;     // CUPTI's name: "GH100"
  std::string library;  // CUPTI's file and version, or why there is none
  std::string status;   // of Counters: "ok" where metrics can be counted
  std::string reason;
  std::map<std::string, std::string> refused;  // names asked for that the chip has not: why
};

nlohmann::ordered_json to_json(const CaseRequest& request);
nlohmann::ordered_json to_json(const ProfileRequest& request);
nlohmann::ordered_json to_json(const MetricAnswer& answer);
nlohmann::ordered_json to_json(const CountedProfile& profile);
// Throws UsageError with the field's name on anything missing or of another type.
CaseRequest case_request_from_json(const nlohmann::ordered_json& json);
ProfileRequest profile_request_from_json(const nlohmann::ordered_json& json);
// `place` names the sender in messages.
MetricAnswer metric_answer_from_json(const nlohmann::ordered_json& json, std::string_view place);
CountedProfile counted_profile_from_json(const nlohmann::ordered_json& json,
                                         std::string_view place);

}  // namespace rooflash
