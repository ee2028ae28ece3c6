// A profile as a worker would have counted it, from the figures that a test names.
#pragma once

#include <map>
#include <string>

#include "profile/profile.hpp"

namespace rooflash {

// By "set.id"; every other metric of the chip is missing with a reason.
using Figures = std::map<std::string, double>;

inline CountedProfile counted(const Figures& figures, const std::string& chip = "GH100") {
  CountedProfile profile;
  profile.chip = chip;
  profile.library = "/opt/cuda/lib64/libcupti.so.13, API 130001";
  profile.limits = {132, 64, 32, 65536, 233472, 1024};
  Row& row = profile.row;
  row.kernel = "fa2";
  Problem& p = row.problem;
  p.batch = 2;
  p.heads_q = p.heads_kv = 16;
  p.seqlen_q = p.seqlen_kv = 8192;
  p.headdim = p.headdim_v = 128;
  row.case_id = case_id(row.kernel, p);
  row.device = "cuda:0";
  row.gpu = "NVIDIA H200";
  row.status = Status::ok;
  row.verify.status = "passed";
  row.missing["time_us"] = "profiled, not timed";
  row.model.flops = 1e12;
  row.model.compulsory_bytes = 100000000;
  row.kernels_run = {"rooflash::fa2::forward<128>"};
  row.resources.registers = 168;
  row.resources.spill_bytes = 0;
  row.resources.smem_bytes = 98304;
  row.resources.threads = 128;
  row.resources.grid = 2112;
  row.resources.waves = 8;
  for (const MetricSet& set : metric_sets(chip)) {
    for (const MetricGroup& metrics : set.groups) {
      CountedGroup group{"ok", "", 1, {}, {}};
      for (const Metric& metric : metrics) {
        const auto found = figures.find(set.name + "." + metric.id);
        if (found != figures.end()) {
          group.values[metric.name] = found->second;
        } else {
          group.missing[metric.name] = "not in this test";
        }
      }
      profile.groups.push_back(std::move(group));
    }
  }
  return profile;
}

inline Profile profile_of(const Figures& figures, const std::string& chip = "GH100") {
  Profile profile = make_profile(metric_sets(chip), counted(figures, chip));
  profile.l2 = "cold";
  return profile;
}

}  // namespace rooflash
