#ifdef ROOFLASH_SLOWDOWN
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/ptx/special.cuh"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gpu/check.hpp"
#include "measure/slowdown.hpp"

namespace rooflash {
namespace {

__global__ void note_start(std::uint64_t* start_ns) {
  *start_ns = ptx::globaltimer_ns();
}

__global__ void wait_for_part(const std::uint64_t* start_ns, double part) {
  const std::uint64_t now = ptx::globaltimer_ns();
  const auto wait = static_cast<std::uint64_t>(static_cast<double>(now - *start_ns) * part);
  while (ptx::globaltimer_ns() - now < wait) {
  }
}

// The part for `kernel`; empty where it is not named.
std::optional<double> part_of(std::string_view kernel) {
  const char* set = std::getenv("ROOFLASH_SLOWDOWN");
  std::string_view text = set == nullptr ? "" : set;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t at = one.find('=');
    double part = -1;
    if (at != std::string_view::npos) {
      std::from_chars(one.data() + at + 1, one.data() + one.size(), part);
    }
    if (!(part >= 0 && part <= 1)) {
      throw UsageError("ROOFLASH_SLOWDOWN: '" + printable(one) + "' is not KERNEL=PART",
                       "write fa2=0.03 for 3 %");
    }
    if (one.substr(0, at) == kernel) return part;
  }
  return std::nullopt;
}

}  // namespace

Launch slowed_down(Launch launch, std::string_view kernel) {
  const std::optional<double> part = part_of(kernel);
  if (!part) return launch;
  void* memory = nullptr;
  ROOFLASH_CUDA(cudaMalloc(&memory, sizeof(std::uint64_t)));
  const std::shared_ptr<std::uint64_t> start(static_cast<std::uint64_t*>(memory),
                                             [](std::uint64_t* p) { (void)cudaFree(p); });
  return [launch = std::move(launch), start, part = *part](CUstream_st* stream) {
    note_start<<<1, 1, 0, stream>>>(start.get());
    ROOFLASH_CUDA_LAUNCHED();
    launch(stream);
    wait_for_part<<<1, 1, 0, stream>>>(start.get(), part);
    ROOFLASH_CUDA_LAUNCHED();
  };
}

}  // namespace rooflash
#endif
