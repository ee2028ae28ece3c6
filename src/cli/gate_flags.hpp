// The flags of `rooflash gate`, as typed, and which of its modes they choose.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/comparison.hpp"
#include "cli/gate_measure.hpp"
#include "cli/sweep_flags.hpp"

namespace CLI {
class App;
}

namespace rooflash {

enum class GateMode {
  records,   // two records
  paired,    // two executables, in turns
  baseline,  // a stored baseline against a record, or what is measured now
};

struct GateFlags {
  ComparisonFlags comparison;
  SweepFlags sweep;
  std::map<std::string, std::string> measuring;  // flags of `run`, by name
  std::vector<std::string> records;              // as typed, or the paths that they name
  std::vector<std::string> names;                // what the user knows them by
  std::string against;
  std::string executable;
  std::string baseline;
  std::string baseline_folder;
  std::string rounds;
  std::string confirm_rounds;
  std::string folder;
  std::string missing = "fail";
  std::string unsure = "warn";
  std::string mismatch = "fail";
  std::string explain;
  std::string junit;
  std::string summary;
  std::string verdict;
  std::string ci = "none";
  std::string save_rules;
  bool resume = false;
  bool calibrate = false;
};

void add_gate_flags(CLI::App& command, GateFlags& flags);

// Throws UsageError where flags contradict each other.
GateMode mode_of(const GateFlags& flags);

// What is measured: the sweep, with its devices found. Throws what resolving a sweep throws.
struct GatePlan {
  GateSweep sweep;
  std::string suite;
  std::vector<DeviceInfo> devices;
  bool exact = false;  // all devices are simulated: one round tells all
};
GatePlan plan_gate(const GateFlags& flags, bool quiet);

// A number of rounds as typed, or `standard` where nothing was. Throws UsageError naming `flag`.
int parse_rounds(const std::string& text, std::string_view flag, int standard);

}  // namespace rooflash
