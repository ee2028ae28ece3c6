// Every way in which counting fails, on a fake CUPTI: each gives its status, says what, why and
// what to do, gives back what it took, and leaves the next measurement possible.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "measure/counters.hpp"
#include "measure/cupti_api.hpp"

namespace rooflash {
namespace {

const std::string kFakes = ROOFLASH_FAKES;

class CounterFaults : public testing::Test {
 protected:
  void SetUp() override { use("cupti", ""); }
  void TearDown() override {
    ASSERT_EQ(unsetenv("FAKE_CUPTI"), 0);
    ASSERT_EQ(unsetenv("ROOFLASH_CUPTI"), 0);
  }

  // The fake in `folder`, with a script (fakes/script.hpp).
  void use(const std::string& folder, const std::string& script) {
    const std::string path = kFakes + "/" + folder + "/libcupti.so";
    ASSERT_EQ(setenv("ROOFLASH_CUPTI", path.c_str(), 1), 0);
    ASSERT_EQ(setenv("FAKE_CUPTI", script.c_str(), 1), 0);
    library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(library_, nullptr) << dlerror();
    fake<void()>("fake_reset")();
  }
  template <class Function>
  Function* fake(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  int calls(const char* function) const { return fake<int(const char*)>("fake_calls")(function); }
  bool clean() const { return fake<bool()>("fake_is_clean")(); }

  static CounterTarget target() {
    CounterTarget target;
    target.context = reinterpret_cast<CUctx_st*>(std::uintptr_t{0x10});  // never looked into
    target.synchronize = [] {};
    return target;
  }
  Counters count(CounterSession& session) {
    return session.measure(
        DType::bf16, [this] { ++prepared_; }, [this] { ++launched_; },
        {.min_hbm_read_bytes = 1e3, .sm_reads = true, .tensor_ops = true});
  }
  // With a session of its own.
  Counters count_once(const std::string& tool = "") {
    CounterSession session(target(), tool);
    return count(session);
  }
  // `script` must give `status` and a reason that holds all of `words`; nothing may be left behind.
  void expect(const std::string& script, const std::string& status,
              std::initializer_list<const char*> words) {
    SCOPED_TRACE(script);
    use("cupti", script);
    {
      CounterSession session(target(), "");
      expect_failed(count(session), status, words);
    }
    EXPECT_TRUE(clean()) << "something was not given back";
  }
  static void expect_failed(const Counters& counted, const std::string& status,
                            std::initializer_list<const char*> words) {
    EXPECT_EQ(counted.status, status) << counted.reason;
    for (const char* word : words) {
      EXPECT_NE(counted.reason.find(word), std::string::npos)
          << "no '" << word << "' in: " << counted.reason;
    }
    EXPECT_FALSE(counted.hbm_read_bytes || counted.tensor_ops || counted.gpu_time_us)
        << "a refused measurement has figures";
  }

  int prepared_ = 0;
  int launched_ = 0;

 private:
  void* library_ = nullptr;
};

TEST_F(CounterFaults, NoneGivesFigures) {
  {
    CounterSession session(target(), "");
    const Counters counted = count(session);
    EXPECT_EQ(counted.status, "ok") << counted.reason;
    EXPECT_EQ(counted.hbm_read_bytes, 1e6);
    EXPECT_EQ(counted.sm_l2_read_bytes, 32e6);
    EXPECT_EQ(counted.tensor_ops, 2e6);
    EXPECT_NE(session.library().find("/cupti/libcupti.so, API 13"), std::string::npos);
    EXPECT_EQ(count(session).status, "ok") << "a second time";
  }
  EXPECT_TRUE(clean());
  EXPECT_EQ(prepared_, 2);
  EXPECT_EQ(launched_, 2);
}

TEST_F(CounterFaults, SeveralPassesLaunchAsOften) {
  use("cupti", "passes=3");
  EXPECT_EQ(count_once().status, "ok");
  EXPECT_EQ(launched_, 3);
  EXPECT_EQ(prepared_, 3);
}

// What Start leaves dirty in L2 must be gone before the range begins.
TEST_F(CounterFaults, PreparesBetweenStartAndRange) {
  use("cupti", "passes=2");
  CounterSession session(target(), "");
  int prepared = 0;
  const auto prepare = [&] {
    ++prepared;
    EXPECT_EQ(calls("cuptiRangeProfilerStart"), prepared);
    EXPECT_EQ(calls("cuptiRangeProfilerPushRange"), prepared - 1);
  };
  EXPECT_EQ(session.count({"dram__bytes_read.sum"}, prepare, [] {}).status, "ok");
  EXPECT_EQ(prepared, 2);
}

TEST_F(CounterFaults, RowsOfSeveralTypesInTurn) {
  CounterSession session(target(), "");
  for (const DType dtype : {DType::bf16, DType::fp16, DType::bf16}) {
    const Counters counted = session.measure(
        dtype, [] {}, [] {}, {.min_hbm_read_bytes = 1e3, .sm_reads = true, .tensor_ops = true});
    EXPECT_EQ(counted.status, "ok") << counted.reason;
  }
}

// Enabling anew for each case would cost most of the time of counting.
TEST_F(CounterFaults, EnabledOnceUnlessACaptureFails) {
  use("cupti", "cuptiRangeProfilerStop@3=8");
  CounterSession session(target(), "");
  EXPECT_EQ(count(session).status, "ok");
  EXPECT_EQ(count(session).status, "ok");
  EXPECT_EQ(calls("cuptiRangeProfilerEnable"), 1);
  EXPECT_EQ(calls("cuptiRangeProfilerDisable"), 0);
  EXPECT_EQ(count(session).status, "unavailable");
  EXPECT_EQ(calls("cuptiRangeProfilerDisable"), 1);
  EXPECT_EQ(count(session).status, "ok") << "a fresh one";
  EXPECT_EQ(calls("cuptiRangeProfilerEnable"), 2);
}

TEST_F(CounterFaults, NoPermission) {
  for (const char* call : {"cuptiProfilerGetCounterAvailability", "cuptiRangeProfilerStart"}) {
    expect(std::string(call) + "=35", "no_permission",
           {call, "35", "administrators", "CAP_SYS_ADMIN", "CAP_PERFMON", "--cap-add=SYS_ADMIN",
            "NVreg_RestrictProfilingToAdminUsers=0", "reboot"});
  }
  expect("cuptiProfilerGetCounterAvailability=40", "no_permission", {"40", "vGPU", "host"});
  expect("supported=1;vgpu=2", "no_permission", {"vGPU", "host"});
}

TEST_F(CounterFaults, PermissionIsAskedForOnce) {
  use("cupti", "cuptiRangeProfilerStart=35");
  CounterSession session(target(), "");
  EXPECT_EQ(count(session).status, "no_permission");
  EXPECT_EQ(count(session).status, "no_permission");
  EXPECT_EQ(calls("cuptiRangeProfilerStart"), 1);
}

TEST_F(CounterFaults, BusyMayEnd) {
  expect("cuptiRangeProfilerEnable=26", "busy",
         {"26", "another process", "dcgmi profile --pause", "--resume"});
  use("cupti", "cuptiRangeProfilerStart@1=26");
  CounterSession session(target(), "");
  EXPECT_EQ(count(session).status, "busy");
  EXPECT_EQ(count(session).status, "ok") << "the other process has ended";
}

TEST_F(CounterFaults, OtherTool) {
  expect("client=Nsight Systems", "other_tool", {"Nsight Systems", "run without it"});
  expect("cuptiSubscribe_v2=39", "other_tool", {"another profiler", "run without it"});
  expect("cuptiRangeProfilerStart=39", "other_tool", {"39", "profiler is attached"});
  use("cupti", "");
  expect_failed(count_once("Nsight Compute"), "other_tool", {"Nsight Compute", "run without it"});
  EXPECT_EQ(calls("cuptiProfilerInitialize"), 0) << "touched the counters of a tool";
  EXPECT_EQ(launched_, 0);
}

TEST_F(CounterFaults, TooOldOrNotWhole) {
  expect("cuptiSubscribe_v2=15;version=120800", "unavailable",
         {"15", "driver is too old", "/cupti/libcupti.so", "120800", "newer driver"});
  use("alone", "cuptiProfilerHostInitialize=15");
  expect_failed(count_once(), "unavailable",
                {"15", "libnvperf_host.so is not beside", "/alone/libcupti.so", "install"});
  use("old", "");
  expect_failed(count_once(), "unavailable",
                {"/old/libcupti.so has no cuptiRangeProfilerDecodeData", "older"});
  expect("known_size=8;version=120800", "unavailable", {"120800", "built for", "ROOFLASH_CUPTI"});
}

TEST_F(CounterFaults, MissingLibrary) {
  ASSERT_EQ(setenv("ROOFLASH_CUPTI", "/nonexistent/libcupti.so", 1), 0);
  expect_failed(count_once(), "unavailable",
                {"no CUPTI library", "/nonexistent/libcupti.so", "install", "ROOFLASH_CUPTI"});
  ASSERT_EQ(setenv("ROOFLASH_CUPTI", "0", 1), 0);
  expect_failed(count_once(), "unavailable", {"ROOFLASH_CUPTI=0"});
  EXPECT_EQ(launched_, 0);
}

// "Not permitted" and "not there" send the user different ways.
TEST_F(CounterFaults, PlatformsWithoutCounters) {
  expect("cuptiProfilerDeviceSupported=43", "unavailable", {"43", "MIG", "whole GPU"});
  expect("cuptiProfilerInitialize=45", "unavailable", {"45", "WSL", "Windows 11"});
  expect("cuptiProfilerInitialize=41", "unavailable", {"41", "confidential"});
  expect("cuptiProfilerInitialize=42", "unavailable", {"42", "mining"});
  expect("cuptiProfilerInitialize=44", "unavailable", {"44", "SLI"});
  expect("cuptiProfilerInitialize=33", "unavailable", {"33", "virtual GPU"});
  expect("cuptiProfilerInitialize=31", "unavailable", {"31", "MPS"});
  expect("cuptiProfilerInitialize=999", "unavailable", {"999", "no driver"});
  expect("supported=1;wsl=1", "unavailable", {"cannot profile", "WSL"});
  expect("supported=1;sli=1;confidential=1", "unavailable", {"SLI", "confidential"});
  expect("supported=0;architecture=1", "unavailable", {"older than Volta"});
}

TEST_F(CounterFaults, UnknownChip) {
  expect("chip=XX999", "unavailable", {"chip XX999", "no metric names"});
  expect("cuptiProfilerHostInitialize=46", "unavailable", {"46", "chip", "newer CUPTI"});
  CounterTarget none = target();
  none.context = nullptr;
  use("cupti", "");
  CounterSession session(none, "");
  expect_failed(count(session), "unavailable", {"no CUDA context"});
}

TEST_F(CounterFaults, RefusedMetricIsNamed) {
  expect("reject=lts__t_sectors_srcunit_tex_op_write.sum", "unavailable",
         {"cuptiProfilerHostConfigAddMetrics",
          "has no metric lts__t_sectors_srcunit_tex_op_write.sum on chip GH100"});
}

// A figure that cannot be is refused with the whole set: its neighbours came from the same pass.
TEST_F(CounterFaults, ImpossibleValues) {
  expect("metric:dram__bytes_read.sum=0", "invalid", {"0 HBM bytes read"});
  expect("metric:dram__bytes_write.sum=nan", "invalid", {"dram__bytes_write.sum is nan"});
  expect("metric:sm__cycles_elapsed.avg.per_second=inf", "invalid", {"per_second is inf"});
  expect("metric:dram__bytes_read.sum=-1", "invalid", {"dram__bytes_read.sum is -1"});
  expect("metric:gpu__time_duration.sum=0", "invalid", {"GPU time is 0"});
  expect("metric:sm__cycles_elapsed.avg.per_second=0", "invalid", {"SM clock is 0"});
  expect("metric:l1tex__m_xbar2l1tex_read_sectors.sum=0", "invalid", {"no bytes from L2"});
  expect("metric:sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed=0", "invalid",
         {"never busy"});
  expect(
      "metric:sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum=0;"
      "metric:sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum=0",
      "invalid", {"no tensor operations"});
}

TEST_F(CounterFaults, LostRanges) {
  expect("dropped=1", "invalid", {"dropped the range"});
  expect("ranges=0", "invalid", {"0 ranges in place of 1"});
  expect("ranges=2", "invalid", {"2 ranges in place of 1"});
}

TEST_F(CounterFaults, PassesWithoutEndAreBounded) {
  expect("passes=1000000;announced=2", "invalid", {"3 passes were not enough"});
  EXPECT_EQ(launched_, 3);
}

// Each call in turn fails: a status other than ok, and nothing left behind, whatever was taken.
TEST_F(CounterFaults, AnyCallMayFail) {
  for (const char* call : {"cuptiProfilerInitialize",
                           "cuptiProfilerDeviceSupported",
                           "cuptiDeviceGetChipName",
                           "cuptiProfilerGetCounterAvailability",
                           "cuptiProfilerHostInitialize",
                           "cuptiProfilerHostConfigAddMetrics",
                           "cuptiProfilerHostGetConfigImageSize",
                           "cuptiProfilerHostGetConfigImage",
                           "cuptiProfilerHostGetNumOfPasses",
                           "cuptiRangeProfilerEnable",
                           "cuptiRangeProfilerGetCounterDataSize",
                           "cuptiRangeProfilerCounterDataImageInitialize",
                           "cuptiRangeProfilerSetConfig",
                           "cuptiRangeProfilerStart",
                           "cuptiRangeProfilerPushRange",
                           "cuptiRangeProfilerPopRange",
                           "cuptiRangeProfilerStop",
                           "cuptiRangeProfilerDecodeData",
                           "cuptiRangeProfilerGetCounterDataInfo",
                           "cuptiProfilerHostEvaluateToGpuValues"}) {
    expect(std::string(call) + "=8", "unavailable", {call, "(8)", "/cupti/libcupti.so"});
  }
}

// Newer headers have larger blocks, which the library of CUDA 13.0 refuses.
TEST(CuptiBlocks, AreThoseOfCuda13_0) {
  EXPECT_EQ(ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability).structSize, 40U);
  EXPECT_EQ(ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize).structSize, 48U);
  EXPECT_EQ(ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Enable).structSize, 32U);
}

// The launch's own errors are the row's, not the counters'.
TEST_F(CounterFaults, LostDeviceIsThrown) {
  {
    CounterTarget lost = target();
    lost.synchronize = [] { throw std::runtime_error("the device is lost"); };
    CounterSession session(lost, "");
    EXPECT_THROW(count(session), std::runtime_error);
    EXPECT_EQ(calls("cuptiRangeProfilerDisable"), 1);
  }
  EXPECT_TRUE(clean());
}

// A list of metrics in place of a row's: each pass is a launch of its own, prepared like the first.
TEST_F(CounterFaults, AnyListInSeveralPasses) {
  use("cupti", "passes=3;metric:dram__bytes_read.sum=7;metric:lts__t_sector_hit_rate.pct=nan");
  CounterSession session(target(), "");
  const auto prepare = [this] { ++prepared_; };
  const auto launch = [this] { ++launched_; };
  const CountedGroup group =
      session.count({"dram__bytes_read.sum", "lts__t_sector_hit_rate.pct"}, prepare, launch);
  EXPECT_EQ(group.status, "ok") << group.reason;
  EXPECT_EQ(group.passes, 3);
  EXPECT_EQ(launched_, 3);
  EXPECT_EQ(prepared_, 3);
  EXPECT_EQ(group.values, (std::map<std::string, double>{{"dram__bytes_read.sum", 7}}));
  EXPECT_EQ(group.missing.at("lts__t_sector_hit_rate.pct"), "CUPTI gave nan");
  EXPECT_EQ(session.chip(), "GH100");

  use("cupti", "reject=dram__bytes_reed.sum");
  CounterSession other(target(), "");
  const CountedGroup refused = other.count({"dram__bytes_reed.sum"}, prepare, launch);
  EXPECT_EQ(refused.status, "unavailable");
  EXPECT_NE(refused.reason.find("no metric dram__bytes_reed.sum"), std::string::npos);
  EXPECT_TRUE(refused.values.empty());
  EXPECT_EQ(refused.passes, 0);
}

}  // namespace
}  // namespace rooflash
