#include "model/l2_model.hpp"

#include <algorithm>
#include <cmath>

namespace rooflash {
namespace {

// How soon an intermediate is gone: exp(-(kGone x its size / L2)^2) of it outlives a sweep. Set on
// intermediates of 0.8 to 1.8 times the L2 of an H200.
constexpr double kGone = 1.2;

// Sweeps that come around in order lose more than what does not fit: the part that will be wanted
// next is the one that goes. All is lost where they are 1 + 1 / kLost times L2.
constexpr double kLost = 2;

// Bytes that a stream would move to and from HBM if L2 held nothing between passes.
double touched_bytes(const Stream& stream, double running_tiles) {
  const double together =
      std::clamp(static_cast<double>(stream.shared_by_tiles), 1.0, running_tiles);
  const auto read = static_cast<double>(stream.read_bytes);
  const auto once = static_cast<double>(std::min(stream.unique_bytes, stream.read_bytes));
  return static_cast<double>(stream.write_bytes) + std::max(once, read / together);
}

// Tiles of the launch with the fewest, which are those that sweep the same bytes side by side.
double tiles_of(const Traffic& traffic) {
  double fewest = traffic.stages.empty() ? 1 : traffic.stages.front().tiles;
  for (const Stage& stage : traffic.stages) fewest = std::min(fewest, stage.tiles);
  return std::max(fewest, 1.0);
}

// Written by one launch and read by a later one.
bool handed_on(const Stream& stream, const Traffic& traffic) {
  return traffic.stages.size() > 1 && stream.read_bytes > 0 && stream.write_bytes > 0;
}

// L2 that a stream takes for each byte of its footprint: bytes read through the partition that is
// not their home are kept in both, and so is what is read and written over and over.
double copies(const Stream& stream, double partitions) {
  if (stream.read_bytes == 0) return 1;
  const bool in_both = stream.shared_by_tiles > 1 || stream.write_bytes > 0;
  return in_both ? partitions : (1 + partitions) / 2;
}

// Bytes of a stream's footprint in use at one time.
double live_bytes(const Stream& stream, const Traffic& traffic, double running_tiles) {
  const auto unique = static_cast<double>(stream.unique_bytes);
  const bool reused = stream.read_bytes + stream.write_bytes > stream.unique_bytes;
  if (!reused) return 0;
  if (handed_on(stream, traffic)) return unique;
  const auto group = static_cast<double>(std::max<std::int64_t>(stream.shared_by_tiles, 1));
  const double running_groups = std::ceil(running_tiles / group);
  return unique * std::min(1.0, running_groups * group / tiles_of(traffic));
}

}  // namespace

double hbm_bytes(const Traffic& traffic, const L2Cache& cache) {
  const double running = std::clamp(cache.running_tiles, 1.0, tiles_of(traffic));
  const auto capacity = static_cast<double>(cache.capacity_bytes);
  double live = 0;
  double handed = 0;   // bytes of intermediates
  double written = 0;  // of the others
  double filled = 0;
  for (const Stream& stream : traffic.streams) {
    const double copied = copies(stream, cache.partitions);
    live += live_bytes(stream, traffic, running) * copied;
    filled += static_cast<double>(stream.unique_bytes) * copied;
    if (handed_on(stream, traffic)) {
      handed += static_cast<double>(stream.unique_bytes);
    } else {
      written += static_cast<double>(std::min(stream.write_bytes, stream.unique_bytes));
    }
  }
  const double too_much = std::clamp((live / capacity - 1) * kLost, 0.0, 1.0);
  const double outlives = std::exp(-std::pow(kGone * handed / capacity, 2));
  double bytes = 0;
  for (const Stream& stream : traffic.streams) {
    const double touched = touched_bytes(stream, running);
    const double once = std::min(static_cast<double>(stream.unique_bytes), touched);
    const double missing = handed_on(stream, traffic) ? 1 - outlives : too_much;
    bytes += once + (touched - once) * missing;
  }
  // Still there at the end, and not written back: the last that came in, and intermediates that
  // outlive the sweep that writes them and the one that reads them.
  const double left = filled > capacity ? capacity / filled : 1;
  return bytes - written * left - handed * outlives * outlives;
}

}  // namespace rooflash
