#include "core/outer_tool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rooflash {
namespace {

class OuterTool : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void set(const char* variable, const char* value) {
    ASSERT_EQ(setenv(variable, value, 1), 0);
  }

 private:
  static void clear() {
    for (const char* variable :
         {"NV_COMPUTE_PROFILER_PERFWORKS_DIR", "NSYS_PROFILING_SESSION_ID", "NVPROF_ID",
          "NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN", "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
          "NV_NSIGHT_INJECTION_PORT_BASE", "NV_TPS_LAUNCH_TOKEN", "CUDA_INJECTION64_PATH"}) {
      ASSERT_EQ(unsetenv(variable), 0);
    }
  }
};

TEST_F(OuterTool, NoneLeavesNoTrace) {
  EXPECT_EQ(outer_tool(), "");
}

TEST_F(OuterTool, IsNamedByItsVariable) {
  set("NSYS_PROFILING_SESSION_ID", "123");
  EXPECT_EQ(outer_tool(), "Nsight Systems");
}

TEST_F(OuterTool, EmptyVariablesAreNoTrace) {
  set("NSYS_PROFILING_SESSION_ID", "");
  set("CUDA_INJECTION64_PATH", "");
  EXPECT_EQ(outer_tool(), "");
  set("NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN", "49152");
  EXPECT_EQ(outer_tool(), "compute-sanitizer");
}

TEST_F(OuterTool, OneThatIsNamedComesBeforeTracesThatSeveralLeave) {
  set("CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so");
  EXPECT_EQ(outer_tool(), "the tool in CUDA_INJECTION64_PATH");
  set("NV_NSIGHT_INJECTION_PORT_BASE", "49152");
  EXPECT_EQ(outer_tool(), "an Nsight tool");
  set("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "/opt/ncu");
  EXPECT_EQ(outer_tool(), "Nsight Compute");
}

TEST_F(OuterTool, SeveralAreAllNamed) {
  set("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "/opt/ncu");
  set("NSYS_PROFILING_SESSION_ID", "123");
  EXPECT_EQ(outer_tool(), "Nsight Compute and Nsight Systems");
}

}  // namespace
}  // namespace rooflash
