// A simulated GPU: host algorithms where the shape is small, closed forms and the time model
// everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <tuple>

#include "common/two_level_memory.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "kernel.hpp"
#include "model/gpu_spec.hpp"
#include "registry.hpp"
#include "verify/reference.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

// Cases up to this many floating-point operations and input elements run at full size: a fraction
// of a second each.
constexpr double kFullSizeFlops = 2e8;
constexpr std::int64_t kFullSizeElements = std::int64_t{1} << 21;
constexpr std::int64_t kMaxCheckedRows = 192;
// A reduced sequence: several tiles and a ragged last one.
constexpr std::int64_t kReducedSeqlenQ = 257;
constexpr std::int64_t kReducedSeqlenKv = 333;  // where it differs from the query's
constexpr std::int64_t kReducedGroup = 4;       // query heads to a KV head, at most
constexpr std::int64_t kReducedWindow = 64;
constexpr const char* kNothingToCount =
    "a simulated device has no counters: there is nothing to profile";

// Work of all pairs, masked or not: naive computes them all.
double dense_flops(const Problem& p) {
  return 2.0 * static_cast<double>(p.batch * p.heads_q) *
         static_cast<double>(p.seqlen_q * p.seqlen_kv) *
         static_cast<double>(p.headdim + p.headdim_v);
}

// The smaller shape that stands for `p`: same dtype, head dims, mask kind and distribution.
Problem reduced(const Problem& p) {
  Problem small = p;
  small.batch = 1;
  small.heads_kv = 1;
  small.heads_q = std::min(kReducedGroup, p.heads_q / p.heads_kv);
  small.seqlen_q = std::min(kReducedSeqlenQ, p.seqlen_q);
  small.seqlen_kv =
      p.seqlen_q == p.seqlen_kv ? small.seqlen_q : std::min(kReducedSeqlenKv, p.seqlen_kv);
  small.mask.left = std::min(kReducedWindow, p.mask.left);
  small.mask.right = std::min(kReducedWindow, p.mask.right);
  return small;
}

// "b1.h1.kv1/q257.k257/d128/causal": the case id without kernel, pass and dtype.
std::string shape_text(const Problem& p) {
  std::string id = case_id("", p);
  for (int part = 0; part < 3; ++part) id.erase(0, id.find('/') + 1);
  return id;
}

class SimBackend : public Backend {
 public:
  explicit SimBackend(const std::string& gpu)
      : spec_(require_gpu(gpu)),
        device_(simulated_device(spec_)),
        ceilings_(model_ceilings(spec_, device_.device)) {}

  DeviceInfo device() override { return device_; }
  Environment environment() override { return {}; }
  Ceilings ceilings(bool /*sustained*/) override { return ceilings_; }

  std::vector<DoctorCheck> doctor() override {
    return {{"gpu", CheckStatus::ok, "a model of " + device_.name, ""},
            {"model", spec_.validated ? CheckStatus::ok : CheckStatus::fail,
             spec_.validated ? "times were compared with measurements on this card"
                             : "times were never compared with measurements on this card",
             spec_.validated ? "" : "read them as estimates, or take sim:h200"}};
  }
  std::vector<DoctorCheck> prove_counters(const std::string& /*counters*/) override { return {}; }

  MetricAnswer metrics(const std::vector<std::string>&) override {
    return {"", "", "unavailable", kNothingToCount, {}};
  }

  CountedProfile profile(const ProfileRequest& request, const PhaseSink&) override {
    CountedProfile profile;
    profile.row = start_row(request.request, device_);
    end(profile.row, Status::unsupported, kNothingToCount);
    return profile;
  }

  Row run(const CaseRequest& request, const PhaseSink& phase) override {
    phase("setup");
    Row row = start_row(request, device_);
    try {
      run_case(row, request, phase);
    } catch (const NotBuiltError& error) {
      end(row, Status::unsupported, error.what());
    } catch (const Error& error) {
      end(row, Status::failed,
          error.hint().empty() ? error.what() : fmt::format("{}; {}", error.what(), error.hint()));
    } catch (const std::bad_alloc&) {
      end(row, Status::failed, "the host algorithm ran out of the host's memory");
    }
    row.counters.status = "unavailable";
    row.counters.reason = "simulated device";
    finish_row(row, ceilings_);
    explain_missing(row);
    return row;
  }

 private:
  static void end(Row& row, Status status, const std::string& reason) {
    row.status = status;
    row.reason = reason;
    row.time_us.reset();
  }

  void run_case(Row& row, const CaseRequest& request, const PhaseSink& phase) {
    const Problem& problem = request.problem;
    const Kernel* kernel = find_kernel(request.kernel);
    if (kernel == nullptr) {
      return end(row, Status::failed, "no kernel is named " + printable(request.kernel, 60));
    }
    std::string reason;
    if (find_variant(*kernel, problem, spec_.compute_capability, &reason) == nullptr) {
      return end(row, Status::unsupported, reason);
    }
    if (reason = no_model(*kernel); !reason.empty()) {
      return end(row, Status::unsupported, reason);
    }
    const std::int64_t needed = *row.memory.peak_bytes;
    if (needed > spec_.memory_bytes) {
      row.memory.needed_bytes = needed;
      row.memory.free_bytes = spec_.memory_bytes;
      return end(
          row, Status::oom,
          fmt::format("needs {} of memory, {} has {}", format_gib(static_cast<double>(needed)),
                      device_.name, format_gib(static_cast<double>(spec_.memory_bytes))));
    }
    if (request.options.verify != "off") {
      phase("verify");
      row.verify = verify(*kernel, request);
      if (row.verify.status == "failed") return end(row, Status::wrong, row.verify.worst);
    }
    if (request.options.verify == "only") {
      row.status = Status::ok;
      return;
    }
    phase("timed");
    if (!row.model.predicted_time_us) {
      return end(row, Status::failed, row.missing["model.predicted_time_us"]);
    }
    const double us = *row.model.predicted_time_us;
    row.status = Status::ok;
    row.time_us = TimeUs{
        us, us, us, us, 1, {us}, request.options.l2, request.options.power, "model", "model"};
    if (!spec_.validated) row.flags.emplace_back("model_unvalidated");
  }

  // Runs the host algorithm, at full size where that is quick, else on a reduced shape, once per
  // shape.
  VerifyResult verify(const Kernel& kernel, const CaseRequest& request) {
    const bool full =
        dense_flops(request.problem) <= kFullSizeFlops &&
        q_elements(request.problem) + k_elements(request.problem) + v_elements(request.problem) <=
            kFullSizeElements;
    const Problem problem = full ? request.problem : reduced(request.problem);
    const auto key = std::tuple(case_id(kernel.name, problem), request.seed, sram_bytes(request));
    const auto known = verified_.find(key);
    // Test families misbehave anew in each case.
    if (known != verified_.end() && !kernel.hidden) return known->second;
    HostCase host = make_host_case(problem, request.seed);
    TwoLevelMemory memory(sram_bytes(request));
    kernel.host(problem, host.tensors(), kernel.tile(problem, memory.sram_bytes()), memory);
    const HostTensors real = host.real_tensors();
    VerifyResult result = verify_on_host(problem, host.tensors(), kMaxCheckedRows, request.seed,
                                         problem.dtype == DType::e4m3 ? &real : nullptr);
    if (!full) result.shape = shape_text(problem);
    if (!full && result.status == "passed") result.status = "reduced";
    return verified_.insert_or_assign(key, result).first->second;
  }

  std::int64_t sram_bytes(const CaseRequest& request) const {
    return request.options.sram_bytes > 0 ? request.options.sram_bytes : spec_.smem_per_block_bytes;
  }

  const GpuSpec& spec_;
  DeviceInfo device_;
  Ceilings ceilings_;
  std::map<std::tuple<std::string, std::uint64_t, std::int64_t>, VerifyResult> verified_;
};

}  // namespace

std::unique_ptr<Backend> make_sim_backend(const std::string& gpu) {
  return std::make_unique<SimBackend>(gpu);
}

}  // namespace rooflash
