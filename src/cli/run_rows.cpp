#include "cli/run_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "worker/backend.hpp"

namespace rooflash {
namespace {

std::string measuring_flags(const RunOptions& options, std::uint64_t seed) {
  const RunOptions standard;
  std::string flags;
  if (seed != 1) flags += fmt::format(" --seed {}", seed);
  if (options.l2 != standard.l2) flags += " --l2 " + options.l2;
  if (options.power != standard.power) flags += " --power " + options.power;
  if (options.counters != standard.counters) flags += " --counters " + options.counters;
  if (options.verify != standard.verify) flags += " --verify " + options.verify;
  if (options.min_samples != standard.min_samples) {
    flags += fmt::format(" --min-samples {}x", options.min_samples);
  }
  if (options.max_samples != std::max(standard.max_samples, options.min_samples)) {
    flags += fmt::format(" --max-samples {}x", options.max_samples);
  }
  if (options.warmup_s) flags += fmt::format(" --warmup {:.6g}s", *options.warmup_s);
  if (options.warmup_launches) flags += fmt::format(" --warmup {}x", *options.warmup_launches);
  if (options.max_noise != standard.max_noise) {
    flags += fmt::format(" --max-noise {:.6g}%", options.max_noise * 100);
  }
  if (options.max_time_s != standard.max_time_s) {
    flags += fmt::format(" --max-time {:.6g}s", options.max_time_s);
  }
  return flags;
}

}  // namespace

Row blank_row(const Case& one, const DeviceInfo& device, const RunOptions& options,
              std::uint64_t seed) {
  CaseRequest request;
  request.kernel = one.kernel;
  request.problem = one.problem;
  request.round = one.round;
  request.options = options;
  Row row = start_row(request, device);
  row.repro += measuring_flags(options, seed);
  return row;
}

bool is_incomplete(const Row& row) {
  switch (row.status) {
    case Status::crashed:
    case Status::timeout:
    case Status::failed:
    case Status::not_run:
      return true;
    case Status::oom:
      return row.memory.needed_bytes.value_or(0) <= row.memory.free_bytes.value_or(0);
    case Status::ok:
    case Status::wrong:
    case Status::unsupported:
      return false;
  }
  return true;
}

}  // namespace rooflash
