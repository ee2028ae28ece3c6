#include "measure/metrics.hpp"

#include <fmt/format.h>

#include <cmath>

namespace rooflash {
namespace {

constexpr double kSectorBytes = 32;

// Operations on the tensor cores. Hopper counts warp-level (hmma) and warpgroup-level (hgmma)
// instructions apart; the others have one metric per input type.
std::vector<std::string> tensor_metrics(std::string_view chip, DType dtype) {
  const std::string prefix = "sm__ops_path_tensor_";
  const bool hopper = chip == "GH100";
  const bool volta = chip == "GV100" || chip.starts_with("TU");
  if (dtype == DType::bf16 && !volta) {
    if (!hopper) return {prefix + "src_bf16_dst_fp32.sum"};
    return {prefix + "op_hmma_src_bf16_dst_fp32_sparsity_off.sum",
            prefix + "op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"};
  }
  if (dtype == DType::fp16 && !volta) {
    if (!hopper) return {prefix + "src_fp16_dst_fp32.sum"};
    return {prefix + "op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
            prefix + "op_hgmma_src_fp16_sparsity_off.sum"};
  }
  if (dtype == DType::e4m3) {
    if (hopper) return {prefix + "src_fp8_sparsity_off.sum"};
    if (chip.starts_with("AD")) return {prefix + "src_fp8.sum"};
    if (chip.starts_with("GB20")) return {prefix + "src_fp8_dst_fp32.sum"};
  }
  return {};
}

}  // namespace

std::vector<std::string> MetricNames::all() const {
  std::vector<std::string> names;
  for (const std::string* name :
       {&gpu_time_ns, &sm_clock_hz, &hbm_read_bytes, &hbm_write_bytes, &sm_l2_read_sectors,
        &sm_l2_write_sectors, &l2_read_sectors, &tensor_pipe_pct, &xu_pipe_pct}) {
    if (!name->empty()) names.push_back(*name);
  }
  names.insert(names.end(), tensor_ops.begin(), tensor_ops.end());
  return names;
}

std::optional<MetricNames> metric_names(std::string_view chip, DType dtype) {
  bool known = false;
  for (const std::string_view prefix : {"GV100", "TU10", "GA10", "AD10", "GH100", "GB10", "GB20"}) {
    known = known || chip.starts_with(prefix);
  }
  if (!known) return std::nullopt;
  MetricNames names;
  names.gpu_time_ns = "gpu__time_duration.sum";
  names.sm_clock_hz = "sm__cycles_elapsed.avg.per_second";
  const bool gddr7 = chip.starts_with("GB20");
  names.hbm_read_bytes = gddr7 ? "dram__bytes_op_read.sum" : "dram__bytes_read.sum";
  names.hbm_write_bytes = gddr7 ? "dram__bytes_op_write.sum" : "dram__bytes_write.sum";
  names.sm_l2_read_sectors = "l1tex__m_xbar2l1tex_read_sectors.sum";
  if (chip.starts_with("GV")) {  // the port of the SMs takes several passes there
    names.sm_l2_read_sectors = "lts__t_sectors_srcunit_tex_op_read.sum";
  } else if (chip == "GH100" || chip.starts_with("GB10")) {
    // These have a request coalescer between the SMs and L2.
    names.l2_read_sectors = "lts__t_sectors_srcunit_tex_op_read.sum";
  }
  names.sm_l2_write_sectors = "lts__t_sectors_srcunit_tex_op_write.sum";
  names.xu_pipe_pct = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed";
  names.tensor_ops = tensor_metrics(chip, dtype);
  if (!names.tensor_ops.empty()) {
    names.tensor_pipe_pct = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";
  }
  return names;
}

Counters interpret(const MetricNames& names, const std::map<std::string, double>& values,
                   const CounterExpectation& expected) {
  Counters counters;
  counters.status = "invalid";
  const auto refuse = [](std::string reason) {
    Counters refused;
    refused.status = "invalid";
    refused.reason = std::move(reason);
    return refused;
  };
  for (const std::string& name : names.all()) {
    const auto found = values.find(name);
    if (found == values.end()) return refuse(name + " was not returned");
    if (!std::isfinite(found->second) || found->second < 0) {
      return refuse(fmt::format("{} is {}", name, found->second));
    }
  }
  const auto value = [&](const std::string& name) -> OptDouble {
    if (name.empty()) return std::nullopt;
    return values.at(name);
  };
  const auto scaled = [&](const std::string& name, double factor) -> OptDouble {
    const OptDouble raw = value(name);
    return raw ? OptDouble(*raw * factor) : std::nullopt;
  };
  counters.gpu_time_us = scaled(names.gpu_time_ns, 1e-3);
  counters.sm_clock_mhz = scaled(names.sm_clock_hz, 1e-6);
  counters.hbm_read_bytes = value(names.hbm_read_bytes);
  counters.hbm_write_bytes = value(names.hbm_write_bytes);
  counters.sm_l2_read_bytes = scaled(names.sm_l2_read_sectors, kSectorBytes);
  counters.sm_l2_write_bytes = scaled(names.sm_l2_write_sectors, kSectorBytes);
  counters.l2_read_bytes = scaled(names.l2_read_sectors, kSectorBytes);
  counters.tensor_pipe_pct = value(names.tensor_pipe_pct);
  counters.xu_pipe_pct = value(names.xu_pipe_pct);
  if (!names.tensor_ops.empty()) {
    double sum = 0;
    for (const std::string& name : names.tensor_ops) sum += values.at(name);
    counters.tensor_ops = sum;
  }
  // Zeros are what a card gives that does not count: they are never taken for a figure.
  if (counters.gpu_time_us.value_or(0) <= 0) return refuse("the counted GPU time is 0");
  if (counters.sm_clock_mhz.value_or(0) <= 0) return refuse("the counted SM clock is 0");
  if (counters.hbm_read_bytes.value_or(0) < expected.min_hbm_read_bytes) {
    return refuse(fmt::format("counted {:.4g} HBM bytes read, and {:.4g} cannot be avoided",
                              counters.hbm_read_bytes.value_or(0), expected.min_hbm_read_bytes));
  }
  if (expected.sm_reads && counters.sm_l2_read_bytes.value_or(0) <= 0) {
    return refuse("counted no bytes from L2 to the SMs of a kernel that reads its inputs");
  }
  if (expected.tensor_ops && counters.tensor_ops) {
    if (*counters.tensor_ops <= 0) {
      return refuse("counted no tensor operations of a kernel that needs them");
    }
    if (counters.tensor_pipe_pct.value_or(0) <= 0) {
      return refuse("counted tensor operations, and a tensor pipe that was never busy");
    }
  }
  counters.status = "ok";
  return counters;
}

}  // namespace rooflash
