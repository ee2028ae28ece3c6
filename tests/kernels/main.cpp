// The GPU tests. Ends with 77 where there is no GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "core/error.hpp"
#include "gpu/device.hpp"

namespace rooflash {
namespace {

// After a fault that costs the CUDA context every further test would fail too and hide the first.
class StopWhereTheContextIsLost : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const cudaError_t status = cudaDeviceSynchronize();
    if (status == cudaSuccess) return;
    std::printf("%s.%s lost the CUDA context (%s); the tests after it were not run\n",
                test.test_suite_name(), test.name(), cudaGetErrorString(status));
    std::fflush(stdout);
    std::_Exit(1);
  }
};

}  // namespace
}  // namespace rooflash

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!GTEST_FLAG_GET(list_tests)) {
    try {
      (void)rooflash::require_devices();
    } catch (const rooflash::Error& error) {
      std::printf("test_gpu_kernels: skipped: %s\n", error.what());
      return static_cast<int>(error.code());
    }
  }
  testing::UnitTest::GetInstance()->listeners().Append(new rooflash::StopWhereTheContextIsLost);
  return RUN_ALL_TESTS();
}
