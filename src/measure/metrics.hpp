// Names of the hardware metrics, by chip and dtype, and what their values mean. No CUDA.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/record.hpp"

namespace rooflash {

// One set is collected in a single pass on the chips where that was checked, so that all figures of
// a row come from the same execution. Empty names are not collected.
struct MetricNames {
  std::string gpu_time_ns;
  std::string sm_clock_hz;
  std::string hbm_read_bytes;
  std::string hbm_write_bytes;
  std::string sm_l2_read_sectors;  // of 32 bytes, that arrive at the SMs; TMA loads included
  std::string sm_l2_write_sectors;
  std::string l2_read_sectors;  // asked of L2, where several SMs' requests are merged before it
  std::string tensor_pipe_pct;
  std::string xu_pipe_pct;              // exponentials and conversions
  std::vector<std::string> tensor_ops;  // summed; 1 multiply-add = 2

  std::vector<std::string> all() const;
};

// For CUPTI's name of a chip ("GH100"); empty where the chip is not in the table.
std::optional<MetricNames> metric_names(std::string_view chip, DType dtype);

// What a case must show, so that an impossible zero is told from a real one.
struct CounterExpectation {
  double min_hbm_read_bytes = 0;  // 0 where the inputs may stay in L2
  bool sm_reads = false;          // the SMs read inputs, from wherever
  bool tensor_ops = false;        // the kernel uses the tensor cores
};

// `values` by metric name. Status `ok`, or `invalid` with the reason (a figure missing, not finite,
// or zero where it cannot be), and then no figures.
Counters interpret(const MetricNames& names, const std::map<std::string, double>& values,
                   const CounterExpectation& expected);

}  // namespace rooflash
