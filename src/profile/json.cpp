// A profile for machines: docs/formats.md.
#include "profile/profile.hpp"
#include "record/describe.hpp"
#include "record/environment.hpp"

namespace rooflash {
namespace {

constexpr int kProfileSchema = 1;

Json metric_json(const MeasuredMetric& one) {
  Json json{{"id", one.metric.id},
            {"name", one.metric.name},
            {"unit", one.metric.unit},
            {"value", JsonWriter::encode(one.value)}};
  if (!one.value) json["missing"] = without_folders(one.missing);
  return json;
}

Json occupancy_json(const Occupancy& occupancy) {
  return {{"theoretical_pct", occupancy.pct},      {"blocks_per_sm", occupancy.blocks},
          {"limiter", occupancy.limiter},          {"by_registers", occupancy.by_registers},
          {"by_shared_memory", occupancy.by_smem}, {"by_warps", occupancy.by_warps},
          {"by_blocks", occupancy.by_blocks}};
}

// What a library or the driver said may name folders of this machine.
Row without_machine(Row row) {
  row.reason = without_folders(row.reason);
  for (auto& [field, reason] : row.missing) reason = without_folders(reason);
  return row;
}

}  // namespace

std::string profile_json(const Profile& profile) {
  Json sets = Json::array();
  for (const MeasuredSet& set : profile.sets) {
    Json metrics = Json::array();
    for (const MeasuredMetric& one : set.metrics) metrics.push_back(metric_json(one));
    sets.push_back({{"set", set.name}, {"passes", set.passes}, {"metrics", std::move(metrics)}});
  }
  Json findings = Json::array();
  for (const Finding& finding : profile.findings) {
    findings.push_back({{"what", finding.what},
                        {"evidence", finding.evidence},
                        {"gain_pct", JsonWriter::encode(finding.gain_pct)},
                        {"formula", finding.formula},
                        {"next_step", finding.next_step}});
  }
  const Json json{{"profile", kProfileSchema},
                  {"tool", JsonWriter::encode(profile.tool)},
                  {"device", JsonWriter::encode(profile.device)},
                  {"driver", profile.driver},
                  {"chip", profile.chip},
                  {"cupti", without_folders(profile.library)},
                  {"l2", profile.l2},
                  {"row", JsonWriter::encode(without_machine(profile.row))},
                  {"occupancy", profile.occupancy ? occupancy_json(*profile.occupancy) : Json()},
                  {"sets", std::move(sets)},
                  {"findings", std::move(findings)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rooflash
