// What a row's figures are held against: the roofs of its device and the bytes it moved.
#pragma once

#include <string>

#include "core/record.hpp"

namespace rooflash {

struct Roofs {
  OptDouble hbm_gbps;       // copy rate, read rate where the copy was not measured
  OptDouble tensor_tflops;  // best GEMM of the row's dtype
  std::string source;       // "measured", "model" or "datasheet, dense"; "" where none is known
};

// The roofs of one device for one dtype: its ceilings, or the datasheet's figures where the record
// holds no ceilings of that device.
Roofs roofs_of(const Record& record, const std::string& device, const std::string& gpu,
               DType dtype);

struct HbmBytes {
  OptDouble bytes;
  bool predicted = false;  // simulated rows: from the traffic model, not from counters
};
HbmBytes hbm_bytes(const Row& row);

// Model FLOPs per HBM byte of an `ok` row: measured, or predicted on simulated rows.
OptDouble intensity(const Row& row);
OptDouble compulsory_intensity(const Row& row);
OptDouble bytes_over_compulsory(const Row& row);

// FLOPs as the FlashAttention papers count them: seqlen_q x seqlen_kv pairs, half of that for
// causal, backward 2.5 x forward. Empty where that is within 0.1 % of the row's exact count, and
// for windows, which the papers do not have.
OptDouble paper_flops(const Row& row);

// "137.4 GFLOP", and the papers' count where it differs.
std::string flops_text(const Row& row);

// 'c' where the compute roof limits at `flop_per_byte`, 'm' where memory does, 0 where unknown.
char roof_side(const Roofs& roofs, OptDouble flop_per_byte);

// Why `path` ("counters.hbm_read_bytes") has no value in this row. Never empty.
std::string missing_reason(const Row& row, const std::string& path);

bool has_flag(const Row& row, std::string_view flag);
// `ok`, timed and plausible: the only rows that may be ranked.
bool is_ranked(const Row& row);

}  // namespace rooflash
