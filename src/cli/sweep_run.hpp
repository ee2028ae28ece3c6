// One sweep from its cases to its record: workers, journal, progress, resume.
#pragma once

#include <string>
#include <vector>

#include "cli/devices.hpp"
#include "cli/sweep_flags.hpp"
#include "core/record.hpp"
#include "worker/protocol.hpp"

namespace rooflash {

struct SweepRun {
  std::vector<std::string> argv;
  Sweep sweep;
  RunOptions options;
  double timeout_s = 60;  // of one case, its --max-time not counted
  std::vector<DeviceInfo> devices;
  std::vector<std::string> outputs;  // the journal lies beside the first; empty: nothing is kept
  bool keeps_previous = false;       // the first output is last.json: cli/kept_runs.hpp
  bool resume = false;
  bool ceilings = true;  // the record gets the roofs of its devices
  bool quiet = false;
  bool progress = true;
};

struct SweepResult {
  Record record;
  int signal = 0;  // that stopped the run; the record is then not complete
};

// Runs the cases and writes the outputs. The record holds a row for every case, in plan order.
// Throws UsageError before any work on outputs that cannot be written or a journal that does not
// fit, Error(nothing_ran) where there is no case, and Error where a worker does not start or a
// later write fails; the journal then keeps what is finished.
SweepResult run_sweep(const SweepRun& run);

// The exit code that the rows and the signal give: wrong, then interrupted, incomplete, nothing
// ran.
int exit_code_of(const SweepResult& result);

}  // namespace rooflash
