// Runs cases on several devices side by side, one worker each, and turns every way a worker can end
// into a row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "worker/driver/connection.hpp"
#include "worker/protocol.hpp"

namespace rooflash {

// A case to run. `blank` is its row without a result, on device `blank.device`; a case that gives
// no row of its own (crash, time limit) is reported as `blank` with that status and reason.
struct Job {
  CaseRequest request;
  Row blank;
};

// Runs `jobs`, each device's in their order; every round begins with a fresh worker. `on_row` gets
// each finished row before the next case of that device starts; what it throws ends the run. A case
// without a row `timeout_s` after it began is killed. Where counting takes the worker down (a crash
// or a hang), that case and the later ones of its device are run without counters. Returns the
// signal that stopped the run, with the cases in flight killed and not reported, or 0.
int run_jobs(std::vector<Connection>& connections, const std::vector<Job>& jobs, double timeout_s,
             const std::function<void(const Row&)>& on_row);

}  // namespace rooflash
