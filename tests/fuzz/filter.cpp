// The filter language, with names that this build knows and with any.
#include <string_view>

#include "core/error.hpp"
#include "fuzz/target.hpp"
#include "sweep/filter.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflash;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Filter::Names names : {Filter::Names::known, Filter::Names::any}) {
    try {
      Filter::parse(text, names).matches("fa2", Problem(), "cuda:0");
    } catch (const UsageError&) {
    }
  }
  return 0;
}
