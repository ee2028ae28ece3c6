#include "worker/protocol.hpp"

#include "record/describe.hpp"
#include "record/json.hpp"

namespace rooflash {

template <class Io>
void describe(Io& io, Described<Io, RunOptions> options) {
  io.choice("l2", options.l2, {"cold", "warm"});
  io.choice("power", options.power, {"burst", "sustained"});
  io.choice("counters", options.counters, {"hbm", "none", "force"});
  io.choice("verify", options.verify, {"on", "off", "only"});
  io("min_samples", options.min_samples);
  io("max_samples", options.max_samples);
  io("max_noise", options.max_noise);
  io("max_time_s", options.max_time_s);
  io("warmup_s", options.warmup_s);
  io("sram_bytes", options.sram_bytes);
}

template <class Io>
void describe(Io& io, Described<Io, CaseRequest> request) {
  io("index", request.index);
  io("kernel", request.kernel);
  io("problem", request.problem);
  io("round", request.round);
  io("seed", request.seed);
  io("options", request.options);
}

Json to_json(const CaseRequest& request) {
  return JsonWriter::encode(request);
}

CaseRequest case_request_from_json(const Json& json) {
  CaseRequest request;
  JsonReader::decode(json, Place{nullptr, "request"}, request);
  const std::string reason = invalid_reason(request.problem);
  if (!reason.empty()) throw UsageError("request.problem: " + reason);
  const RunOptions& options = request.options;
  if (request.index < 0) throw UsageError("request.index: is negative");
  if (request.round < 0) throw UsageError("request.round: is negative");
  if (options.min_samples < 1) throw UsageError("request.options.min_samples: must be positive");
  if (options.max_samples < options.min_samples) {
    throw UsageError("request.options.max_samples: is below min_samples");
  }
  if (options.max_noise < 0 || options.max_time_s < 0 || options.warmup_s < 0 ||
      options.sram_bytes < 0) {
    throw UsageError("request.options: max_noise, max_time_s, warmup_s or sram_bytes is negative");
  }
  return request;
}

}  // namespace rooflash
