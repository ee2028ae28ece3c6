#include "worker/protocol.hpp"

#include "record/check.hpp"
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
  io("warmup_launches", options.warmup_launches);
  io("sram_bytes", options.sram_bytes);
  io("profile", options.profile);
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

template <class Io>
void describe(Io& io, Described<Io, ProfileRequest> request) {
  io("case", request.request);
  io("groups", request.groups);
}

template <class Io>
void describe(Io& io, Described<Io, MetricAnswer> answer) {
  io("chip", answer.chip);
  io("library", answer.library);
  io.choice("status", answer.status, kCounterStatuses);
  io("reason", answer.reason);
  io("refused", answer.refused);
}

template <class Io>
void describe(Io& io, Described<Io, CountedGroup> group) {
  io.choice("status", group.status, kCounterStatuses);
  io("reason", group.reason);
  io("passes", group.passes);
  io("values", group.values);
  io("missing", group.missing);
}

template <class Io>
void describe(Io& io, Described<Io, SmLimits> limits) {
  io("sm_count", limits.sm_count);
  io("warps", limits.warps);
  io("blocks", limits.blocks);
  io("registers", limits.registers);
  io("smem_bytes", limits.smem_bytes);
  io("smem_reserved_bytes", limits.smem_reserved_bytes);
}

template <class Io>
void describe(Io& io, Described<Io, CountedProfile> profile) {
  io("row", profile.row);
  io("chip", profile.chip);
  io("library", profile.library);
  io("limits", profile.limits);
  io("groups", profile.groups);
}

namespace {

void check(const CaseRequest& request) {
  const std::string reason = invalid_reason(request.problem);
  if (!reason.empty()) throw UsageError("request.problem: " + reason);
  const RunOptions& options = request.options;
  if (request.index < 0) throw UsageError("request.index: is negative");
  if (request.round < 0) throw UsageError("request.round: is negative");
  if (options.min_samples < 1) throw UsageError("request.options.min_samples: must be positive");
  if (options.max_samples < options.min_samples) {
    throw UsageError("request.options.max_samples: is below min_samples");
  }
  if (options.warmup_launches.value_or(1) < 1) {
    throw UsageError("request.options.warmup_launches: must be positive");
  }
  if (options.warmup_s && options.warmup_launches) {
    throw UsageError("request.options: warmup_s and warmup_launches exclude each other");
  }
  if (options.max_noise < 0 || options.max_time_s < 0 || options.warmup_s.value_or(0) < 0 ||
      options.sram_bytes < 0) {
    throw UsageError("request.options: max_noise, max_time_s, warmup_s or sram_bytes is negative");
  }
}

}  // namespace

Json to_json(const CaseRequest& request) {
  return JsonWriter::encode(request);
}
Json to_json(const ProfileRequest& request) {
  return JsonWriter::encode(request);
}
Json to_json(const MetricAnswer& answer) {
  return JsonWriter::encode(answer);
}
Json to_json(const CountedProfile& profile) {
  return JsonWriter::encode(profile);
}

CaseRequest case_request_from_json(const Json& json) {
  CaseRequest request;
  JsonReader::decode(json, Place{nullptr, "request"}, request);
  check(request);
  return request;
}

ProfileRequest profile_request_from_json(const Json& json) {
  ProfileRequest request;
  JsonReader::decode(json, Place{nullptr, "request"}, request);
  check(request.request);
  for (const std::vector<std::string>& group : request.groups) {
    if (group.empty()) throw UsageError("request.groups: a group without metrics");
  }
  return request;
}

MetricAnswer metric_answer_from_json(const Json& json, std::string_view place) {
  MetricAnswer answer;
  JsonReader::decode(json, Place{nullptr, place}, answer);
  return answer;
}

CountedProfile counted_profile_from_json(const Json& json, std::string_view place) {
  CountedProfile profile;
  JsonReader::decode(json, Place{nullptr, place}, profile);
  check_row(profile.row, std::string(place) + ".row");
  return profile;
}

}  // namespace rooflash
