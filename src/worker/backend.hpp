// What the worker loop drives: one device, real or simulated.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "worker/doctor/check.hpp"
#include "worker/protocol.hpp"

namespace rooflash {

struct GpuSpec;

// The time base of a row's trace until the loop rebases it: microseconds of the steady clock.
inline double steady_us(
    std::chrono::steady_clock::time_point moment = std::chrono::steady_clock::now()) {
  return std::chrono::duration<double, std::micro>(moment.time_since_epoch()).count();
}

using PhaseSink = std::function<void(std::string_view phase)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceInfo device() = 0;
  // driver, cuda, cudnn and visible_devices of the environment; the rest belongs to the driver.
  virtual Environment environment() = 0;
  // Runs one case to its end. Faults of the case become the row's status; only what makes the
  // worker itself unusable throws. Where it knows them, the row's trace holds the samples' starts
  // and the power, at steady_us(); the phases are the loop's to add.
  virtual Row run(const CaseRequest& request, const PhaseSink& phase) = 0;
  // `sustained` asks for those under lasting load too.
  virtual Ceilings ceilings(bool sustained) = 0;
  virtual std::vector<DoctorCheck> doctor() = 0;
  // By running work of known size; `counters` as in RunOptions. Empty where nothing is counted.
  virtual std::vector<DoctorCheck> prove_counters(const std::string& counters) = 0;
  // Which of the metrics `names` the device has, and whether they can be counted at all.
  virtual MetricAnswer metrics(const std::vector<std::string>& names) = 0;
  // Runs one case and counts each group of metrics. Faults as in run(); a group that could not be
  // counted says so itself.
  virtual CountedProfile profile(const ProfileRequest& request, const PhaseSink& phase) = 0;
  // True once the device can run nothing more in this process (sticky error).
  virtual bool lost() const { return false; }
};

// `gpu` is a key of suites/gpus.json ("h200").
std::unique_ptr<Backend> make_sim_backend(const std::string& gpu);
// Device `ordinal` of the CUDA runtime. Throws Error(no_gpu) where there is none.
std::unique_ptr<Backend> make_cuda_backend(int ordinal);
// JSON of all CUDA devices for `rooflash-worker --devices`; throws Error(no_gpu) without a driver.
std::vector<DeviceInfo> cuda_devices();

// The row of a case before anything ran (status not_run): identity, model figures with the
// prediction for a known GPU, memory need, repro.
Row start_row(const CaseRequest& request, const DeviceInfo& device);

// Fills `row.derived` from the row's time and counters and the roofs of its device. Figures whose
// inputs are missing stay empty. start_row and finish_row are the one place where a row's derived
// figures are made; the driver, which keeps the measured roofs, finishes each row once more.
void finish_row(Row& row, const Ceilings& ceilings);

// Gives each empty figure of an ok row a reason in `row.missing`, unless one is there.
void explain_missing(Row& row);

// Flags a finished row as "implausible" where it is faster than the card can be: above the
// datasheet's HBM rate, or above the tensor operations per clock times the row's own cycles.
void flag_implausible(Row& row, const GpuSpec& spec, int sm_count);

}  // namespace rooflash
