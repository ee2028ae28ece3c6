#include "common/two_level_memory.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rooflash {

SramTile::SramTile(TwoLevelMemory& memory, std::int64_t rows, std::int64_t cols,
                   std::int64_t element_bytes)
    : memory_(&memory), rows_(rows), cols_(cols), bytes_(rows * cols * element_bytes) {
  memory_->take_sram(bytes_);
  values_.assign(static_cast<std::size_t>(rows * cols), 0.0F);
}

SramTile::~SramTile() {
  if (memory_ != nullptr) memory_->give_sram(bytes_);
}

SramTile::SramTile(SramTile&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      rows_(other.rows_),
      cols_(other.cols_),
      bytes_(other.bytes_),
      values_(std::move(other.values_)) {}

void SramTile::fill(float value) {
  std::fill(values_.begin(), values_.end(), value);
}

void TwoLevelMemory::load(SramTile& tile, const float* source, std::int64_t rows, std::int64_t cols,
                          std::int64_t stride, DType dtype) {
  if (rows < tile.rows() || cols < tile.cols()) tile.fill(0.0F);
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(source + r * stride, cols, tile.row(r));
  read_bytes_ += rows * cols * size_bytes(dtype);
}

void TwoLevelMemory::store(const SramTile& tile, float* target, std::int64_t rows,
                           std::int64_t cols, std::int64_t stride, DType dtype) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::transform(tile.row(r), tile.row(r) + cols, target + r * stride,
                   [dtype](float value) { return round_to(dtype, value); });
  }
  write_bytes_ += rows * cols * size_bytes(dtype);
}

std::vector<float> TwoLevelMemory::allocate_slow(std::int64_t elements, DType dtype) {
  slow_used_ += elements * size_bytes(dtype);
  slow_peak_ = std::max(slow_peak_, slow_used_);
  return std::vector<float>(static_cast<std::size_t>(elements));
}

void TwoLevelMemory::release_slow(std::int64_t elements, DType dtype) {
  slow_used_ -= elements * size_bytes(dtype);
}

void TwoLevelMemory::take_sram(std::int64_t bytes) {
  if (bytes > sram_bytes_ - sram_used_) {
    throw Error(ExitCode::incomplete,
                "a tile of " + std::to_string(bytes) +
                    " bytes does not fit the SRAM: " + std::to_string(sram_used_) + " of " +
                    std::to_string(sram_bytes_) + " bytes are in use",
                "use a smaller tile or a larger --sram");
  }
  sram_used_ += bytes;
  sram_peak_ = std::max(sram_peak_, sram_used_);
}

void TwoLevelMemory::give_sram(std::int64_t bytes) {
  sram_used_ -= bytes;
}

}  // namespace rooflash
