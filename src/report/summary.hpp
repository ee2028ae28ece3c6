// What a record says in a few sentences: which kernel is faster, and what to mind.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "report/pivot.hpp"

namespace rooflash {

// A kernel on one device, dtype and pass.
struct Ranking {
  std::string device;
  std::string dtype;
  std::string pass;
  std::string kernel;
  int ranked = 0;  // problems with a time
  int wins = 0;    // of those where another kernel has a time too
  int contested = 0;
  std::map<std::string, int> unranked;  // problems without a ranked time, by why: "OOM", "n/s"
  double geomean_tflops = 0;
  OptDouble speedup;  // geomean over the slowest kernel, on common problems
  int common = 0;     // problems behind `speedup`
  std::string slowest;
};
std::vector<Ranking> rank_kernels(const Pivot& pivot);

// "fa2 is 5.1x faster than naive (geomean of 24 cases)", per device; the fastest against each
// other; and what quantising takes beside the times of e4m3.
std::vector<std::string> summary_sentences(const Pivot& pivot);

struct Warning {
  std::string what;
  std::string action;
};
std::vector<Warning> warnings(const Record& record);

// Devices whose rows are simulated, in order of appearance.
std::vector<std::string> simulated_devices(const Record& record);

// "36 ok, 2 oom, 1 wrong".
std::string status_counts(const Record& record);

}  // namespace rooflash
