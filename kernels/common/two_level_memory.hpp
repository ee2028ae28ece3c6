// An instrumented two-level memory: unlimited slow memory (HBM, or L2 as an SM sees it) and a small
// fast one (SRAM, an SM's shared memory). Host algorithms compute on SRAM tiles only, and the only
// way to fill or drain one is `load` and `store`, so no byte moves uncounted.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"

namespace rooflash {

class TwoLevelMemory;

// `element_bytes` of accumulators: they live in the register file, which is no part of the SRAM
// that sets the tile size.
inline constexpr std::int64_t kInRegisters = 0;

// A rows x cols block of fp32 values held in SRAM; `element_bytes` is what one value occupies
// there. Frees its SRAM when destroyed. Move-only.
class SramTile {
 public:
  SramTile(TwoLevelMemory& memory, std::int64_t rows, std::int64_t cols,
           std::int64_t element_bytes);
  ~SramTile();
  SramTile(SramTile&& other) noexcept;
  SramTile(const SramTile&) = delete;
  SramTile& operator=(const SramTile&) = delete;
  SramTile& operator=(SramTile&&) = delete;

  float* row(std::int64_t r) { return values_.data() + r * cols_; }
  const float* row(std::int64_t r) const { return values_.data() + r * cols_; }
  float& at(std::int64_t r, std::int64_t c) {
    return values_[static_cast<std::size_t>(r * cols_ + c)];
  }
  float at(std::int64_t r, std::int64_t c) const {
    return values_[static_cast<std::size_t>(r * cols_ + c)];
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  void fill(float value);

 private:
  TwoLevelMemory* memory_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::int64_t bytes_;
  std::vector<float> values_;
};

class TwoLevelMemory {
 public:
  explicit TwoLevelMemory(std::int64_t sram_bytes) : sram_bytes_(sram_bytes) {}

  // Copies rows x cols values from slow memory (row stride `stride` elements) into the tile's top
  // left corner and zero-fills the rest. Counts rows * cols * size_bytes(dtype) read.
  void load(SramTile& tile, const float* source, std::int64_t rows, std::int64_t cols,
            std::int64_t stride, DType dtype);
  // Copies the tile's top left rows x cols values to slow memory, rounded to `dtype`, and counts
  // the bytes written.
  void store(const SramTile& tile, float* target, std::int64_t rows, std::int64_t cols,
             std::int64_t stride, DType dtype);

  // Slow memory beyond the inputs and outputs (score matrices, accumulators). fp32 values; counted
  // in the element size of `dtype`. Freed by the returned vector's owner through release_slow.
  std::vector<float> allocate_slow(std::int64_t elements, DType dtype);
  void release_slow(std::int64_t elements, DType dtype);

  std::int64_t read_bytes() const { return read_bytes_; }
  std::int64_t write_bytes() const { return write_bytes_; }
  std::int64_t sram_peak_bytes() const { return sram_peak_; }
  std::int64_t slow_peak_bytes() const { return slow_peak_; }
  std::int64_t sram_bytes() const { return sram_bytes_; }

 private:
  friend class SramTile;
  void take_sram(std::int64_t bytes);  // throws Error where the tile does not fit
  void give_sram(std::int64_t bytes);

  std::int64_t sram_bytes_;
  std::int64_t sram_used_ = 0;
  std::int64_t sram_peak_ = 0;
  std::int64_t slow_used_ = 0;
  std::int64_t slow_peak_ = 0;
  std::int64_t read_bytes_ = 0;
  std::int64_t write_bytes_ = 0;
};

}  // namespace rooflash
