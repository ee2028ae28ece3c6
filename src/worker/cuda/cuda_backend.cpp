// One real GPU: runs a case from its inputs to its counters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/units.hpp"
#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/device_stream.hpp"
#include "gpu/kernel_names.hpp"
#include "gpu/nvml.hpp"
#include "gpu/nvtx.hpp"
#include "measure/ceilings.hpp"
#include "measure/counters.hpp"
#include "measure/l2_flush.hpp"
#include "measure/timer.hpp"
#ifdef ROOFLASH_SLOWDOWN
#include "measure/slowdown.hpp"
#endif
#include "model/gpu_spec.hpp"
#include "registry.hpp"
#include "verify/gpu_quantize.hpp"
#include "verify/gpu_verify.hpp"
#include "worker/backend.hpp"
#include "worker/cuda/buffer_pool.hpp"
#include "worker/cuda/cuda_doctor.hpp"
#include "worker/cuda/cuda_row.hpp"
#include "worker/cuda/failed_case.hpp"
#include "worker/cuda/profile_case.hpp"
#include "worker/cuda/timed_case.hpp"

namespace rooflash {
namespace {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(int ordinal)
      : device_(describe_device(ordinal)),
        limits_(device_limits(ordinal)),
        sm_limits_(sm_limits(ordinal)),
        nvml_(pci_bus_id(ordinal), device_.name),
        spec_(find_gpu_by_name(device_.name)),
        ordinal_(ordinal),
        stream_(ordinal),
        timer_(stream_, flush_bytes(device_.l2_bytes.value_or(0)), limits_.sm_count) {}

  DeviceInfo device() override { return device_; }
  Environment environment() override {
    Environment environment;
    environment.driver = nvml_.driver_version();
    environment.cuda = toolkit_version();
    if (const VendorLibrary cudnn = cudnn_library(); cudnn.missing.empty()) {
      environment.cudnn = cudnn.version;
      environment.cudnn_hash = cudnn.hash;
    }
    environment.visible_devices = visible_devices();
    return environment;
  }
  Row run(const CaseRequest& request, const PhaseSink& phase) override;
  Ceilings ceilings(bool sustained) override {
    pool_.release();
    const RoofDevice device{device_.device, limits_.sm, limits_.sm_count,
                            device_.l2_bytes.value_or(0)};
    Ceilings ceilings = measure_ceilings(device, stream_);
    if (sustained) {
      ceilings.sustained =
          measure_sustained(device, stream_, [&] { return nvml_.snapshot().power_w; });
    }
    return ceilings;
  }
  std::vector<DoctorCheck> doctor() override {
    DeviceState state = software_state();
    state.device = device_;
    state.facts = nvml_.facts();
    state.now = nvml_.snapshot();
    state.driver = nvml_.driver_version();
    return device_checks(state);
  }
  std::vector<DoctorCheck> prove_counters(const std::string& counters) override {
    pool_.release();
    return rooflash::prove_counters(counter_session(counters), timer_, stream_);
  }
  MetricAnswer metrics(const std::vector<std::string>& names) override {
    return answer_metrics(counter_session("hbm"), names);
  }
  CountedProfile profile(const ProfileRequest& request, const PhaseSink& phase) override;
  bool lost() const override { return lost_; }

 private:
  // A case ready to be launched: set up, and verified where that was asked for.
  struct Ready {
    const Prepared& prepared;
    const Tensors& tensors;
    const Traffic& traffic;
    const GpuQuantizer* quantizer;  // of e4m3; else nullptr
  };
  // What is done with it; false where the row has ended.
  using Work = std::function<bool(const Ready&, Row&)>;

  Row run_row(const CaseRequest& request, const PhaseSink& phase, const Work& work);
  void run_case(const CaseRequest& request, const PhaseSink& phase, const Work& work, Row& row);
  bool measure(const CaseRequest& request, const PhaseSink& phase, const Ready& ready, Row& row);
  // Brings the L2 into the state that `l2` names.
  void prepare_l2(const std::string& l2, const Launch& launch);
  bool fits(Row& row, std::int64_t needed);
  bool verify(const CaseRequest& request, const Prepared& prepared, const Tensors& tensors,
              Row& row);
  void count(const CaseRequest& request, const Traffic& traffic, const Launch& launch, Row& row);
  // Whether another process had a context here at the start, or came since.
  bool is_shared() const {
    return device_.other_processes.value_or(0) > 0 ||
           nvml_.facts().compute_processes.value_or(0) > processes_with_own_;
  }
  // Made for the first case that is counted; `wanted` is the same for all cases of a run.
  CounterSession& counter_session(const std::string& wanted) {
    if (!counters_) {
      counters_ = std::make_unique<CounterSession>(counter_target(ordinal_),
                                                   wanted == "force" ? "" : outer_tool());
    }
    return *counters_;
  }

  DeviceInfo device_;  // before the context: other_processes must not count this one
  DeviceLimits limits_;
  SmLimits sm_limits_;
  Nvml nvml_;
  const GpuSpec* spec_;  // nullptr for a card that is not in the list
  int ordinal_;
  DeviceStream stream_;
  Timer timer_;
  std::int64_t processes_with_own_ = nvml_.facts().compute_processes.value_or(0);
  BufferPool pool_;
  std::unique_ptr<CounterSession> counters_;
  bool lost_ = false;
};

Row CudaBackend::run(const CaseRequest& request, const PhaseSink& phase) {
  if (!request.options.profile) {
    return run_row(request, phase, [&](const Ready& ready, Row& row) {
      return measure(request, phase, ready, row);
    });
  }
  return run_row(request, phase, [&](const Ready& ready, Row& row) {
    phase("timed");
    const Launch& launch = ready.prepared.launch;
    launch_for_profiler(
        launch, [&] { prepare_l2(request.options.l2, launch); }, stream_);
    row.counters.reason = "--profile leaves the counters to the profiler";
    row.missing["time_us"] = "--profile: one launch for a profiler, not timed";
    return true;
  });
}

CountedProfile CudaBackend::profile(const ProfileRequest& request, const PhaseSink& phase) {
  CountedProfile profile;
  profile.row = run_row(request.request, phase, [&](const Ready& ready, Row& row) {
    phase("counters");
    const NvtxRange range(NvtxPhase::counters);
    const Launch& launch = ready.prepared.launch;
    profile.groups = count_groups(
        counter_session("hbm"), request.groups,
        [&] { prepare_l2(request.request.options.l2, launch); }, [&] { launch(stream_); });
    row.counters.reason = "the figures stand in the profile's sets";
    row.missing["time_us"] = "profiled, not timed";
    return true;
  });
  profile.limits = sm_limits_;
  if (counters_) {
    profile.chip = counters_->chip();
    profile.library = counters_->library();
  }
  return profile;
}

Row CudaBackend::run_row(const CaseRequest& request, const PhaseSink& phase, const Work& work) {
  Row row = start_row(request, device_);
  const NvtxRange range(row.case_id);
  try {
    run_case(request, phase, work, row);
  } catch (...) {
    lost_ = end_failed(row, limits_.sm, pool_);
  }
  explain_missing(row);
  return row;
}

void CudaBackend::run_case(const CaseRequest& request, const PhaseSink& phase, const Work& work,
                           Row& row) {
  const Problem& problem = request.problem;
  phase("setup");
  std::optional<NvtxRange> range(std::in_place, NvtxPhase::setup);
  const Kernel* kernel = find_kernel(request.kernel);
  if (kernel == nullptr) {
    return end_row(row, Status::failed, "there is no kernel " + request.kernel);
  }
  std::string reason;
  const Variant* variant = find_variant(*kernel, problem, limits_.sm, &reason);
  if (variant == nullptr) return end_row(row, Status::unsupported, reason);
  const PrepareFn prepare = find_prepare(*kernel, *variant);
  if (prepare == nullptr) {
    return end_row(row, Status::unsupported, "this binary holds no CUDA code of " + request.kernel);
  }
  Traffic traffic;
  if (kernel->traffic != nullptr && kernel->tile != nullptr) {
    traffic = kernel->traffic(problem, kernel->tile(problem, limits_.smem_per_block_bytes));
  }

  const std::int64_t workspace =
      kernel->workspace_bytes != nullptr ? kernel->workspace_bytes(problem) : 0;
  const std::int64_t bytes = tensor_bytes(problem) + workspace;
  const bool quantizes = problem.dtype == DType::e4m3;
  const std::int64_t quantizer_bytes = quantizes ? GpuQuantizer::memory_bytes(problem) : 0;
  if (!fits(row, bytes + quantizer_bytes + kVerifyMarginBytes)) return;
  const Tensors tensors = allocate(pool_, problem, workspace);
  std::optional<GpuQuantizer> quantizer;
  if (quantizes) {
    quantizer.emplace(problem, request.seed, stream_);
    quantizer->launch(tensors, stream_);
    row.saturated_elements = quantizer->saturated_elements(stream_);
  } else {
    fill_inputs(problem, request.seed, tensors, stream_);
  }
  Prepared prepared = prepare(problem, tensors, limits_);
#ifdef ROOFLASH_SLOWDOWN
  prepared.launch = slowed_down(std::move(prepared.launch), request.kernel);
#endif
  row.resources = prepared.resources;
  row.memory.workspace_bytes = workspace + prepared.workspace_bytes;
  row.memory.peak_bytes = bytes + prepared.workspace_bytes;

  if (request.options.verify != "off") {
    phase("verify");
    range.emplace(NvtxPhase::verify);
    if (!verify(request, prepared, tensors, row)) return;
  }
  range.reset();  // the work opens its own
  const Ready ready{prepared, tensors, traffic, quantizer ? &*quantizer : nullptr};
  if (request.options.verify != "only" && !work(ready, row)) return;
  LaunchedKernels ran = launched_kernels(prepared.launch, stream_);
  row.kernels_run = std::move(ran.names);
  if (!ran.missing.empty()) row.missing["kernels_run"] = ran.missing;
  stream_.synchronize();
  if (ran.missing.empty() && !ran_family(row.kernels_run, *kernel)) {
    return end_row(
        row, Status::failed,
        fmt::format("ran {}, and no kernel of {}", fmt::join(row.kernels_run, ", "), kernel->name));
  }
  if (is_shared()) row.flags.emplace_back("shared_gpu");
  finish_row(row, {});
  if (spec_ != nullptr) flag_implausible(row, *spec_, limits_.sm_count);
  row.status = Status::ok;
}

// Times, verifies once more and counts.
bool CudaBackend::measure(const CaseRequest& request, const PhaseSink& phase, const Ready& ready,
                          Row& row) {
  time_launch(timer_, nvml_, request.options, ready.prepared.launch, phase, row);
  if (request.options.l2 == "warm" &&
      row.memory.peak_bytes.value_or(0) <= device_.l2_bytes.value_or(0)) {
    row.flags.emplace_back("l2_resident");
  }
  if (ready.quantizer != nullptr) {
    // Makes the row's inputs again, the same bits.
    const Launch quantize = [&](CUstream_st* stream) {
      ready.quantizer->launch(ready.tensors, stream);
    };
    time_quantizing(timer_, request.options, quantize, phase, row);
  }
  if (request.options.verify != "off") {
    // A kernel may be right once and wrong when it runs back to back.
    const NvtxRange range(NvtxPhase::verify);
    if (!verify(request, ready.prepared, ready.tensors, row)) return false;
  }
  if (request.options.counters != "none") {
    phase("counters");
    const NvtxRange range(NvtxPhase::counters);
    count(request, ready.traffic, ready.prepared.launch, row);
  }
  return true;
}

void CudaBackend::prepare_l2(const std::string& l2, const Launch& launch) {
  if (l2 != "warm") return timer_.flush();
  launch(stream_);
  launch(stream_);
}

// Compares what the case needs with what is free, buffers of earlier cases given back if need be.
bool CudaBackend::fits(Row& row, std::int64_t needed) {
  std::size_t free = 0;
  std::size_t total = 0;
  ROOFLASH_CUDA(cudaMemGetInfo(&free, &total));
  if (needed <= static_cast<std::int64_t>(free)) return true;
  pool_.release();
  ROOFLASH_CUDA(cudaMemGetInfo(&free, &total));
  const auto available = static_cast<std::int64_t>(free);
  if (needed <= available) return true;
  row.memory.needed_bytes = needed;
  row.memory.free_bytes = available;
  end_row(row, Status::oom,
          fmt::format("needs {} and {} is free", format_gib(static_cast<double>(needed)),
                      format_gib(static_cast<double>(available))));
  return false;
}

// One launch onto poisoned outputs, checked. False where the row has ended as wrong.
bool CudaBackend::verify(const CaseRequest& request, const Prepared& prepared,
                         const Tensors& tensors, Row& row) {
  poison_outputs(request.problem, tensors, stream_);
  prepared.launch(stream_);
  stream_.synchronize();
  row.verify = verify_on_gpu(request.problem, request.seed, tensors, stream_);
  if (row.verify.status != "failed") return true;
  end_row(row, Status::wrong,
          row.verify.worst.empty() ? "the output differs from the reference" : row.verify.worst);
  return false;
}

void CudaBackend::count(const CaseRequest& request, const Traffic& traffic, const Launch& launch,
                        Row& row) {
  const Problem& problem = request.problem;
  const CounterExpectation expected =
      expected_counters(problem, traffic, request.options.l2 != "warm");
  const auto prepare = [&] { prepare_l2(request.options.l2, launch); };
  row.counters = counter_session(request.options.counters)
                     .measure(
                         problem.dtype, prepare, [&] { launch(stream_); }, expected);
  const auto output = static_cast<double>(o_elements(problem) * size_bytes(output_dtype(problem)));
  if (row.counters.hbm_write_bytes.value_or(output) < 0.5 * output) {
    row.flags.emplace_back("output_in_l2");  // the intensity is higher than a longer run would show
  }
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int ordinal) {
  return std::make_unique<CudaBackend>(ordinal);
}

std::vector<DeviceInfo> cuda_devices() {
  std::vector<DeviceInfo> devices;
  const int count = require_devices();
  for (int ordinal = 0; ordinal < count; ++ordinal) devices.push_back(describe_device(ordinal));
  return devices;
}

}  // namespace rooflash
