// The suite reader and the list grammar of its axes.
#include <string_view>

#include "core/error.hpp"
#include "fuzz/target.hpp"
#include "sweep/suite.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflash;
  try {
    const Suite suite =
        parse_suite({reinterpret_cast<const char*>(data), size}, "fuzz.json", "fuzz");
    for (const Axes& grid : suite.grids) expand(grid);
  } catch (const UsageError&) {
  }
  return 0;
}
