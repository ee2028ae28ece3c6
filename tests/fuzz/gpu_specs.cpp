// The reader of GPU specifications, and with it the strict JSON of files that people write.
#include <string_view>

#include "core/error.hpp"
#include "fuzz/target.hpp"
#include "model/gpu_spec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflash;
  try {
    for (const GpuSpec& spec :
         parse_gpu_specs({reinterpret_cast<const char*>(data), size}, "fuzz.json", gpu_specs())) {
      model_ceilings(spec, "sim:" + spec.key);
      simulated_device(spec);
      datasheet(spec);
      balance_point(spec, DType::bf16);
    }
  } catch (const UsageError&) {
  }
  return 0;
}
