// The same inputs give the same bits: run after run, and whatever else is in the batch.
#include "device_case.hpp"
#include "harness.hpp"

namespace rooflash {
namespace {

// On few SMs, which take the tiles of a persistent kernel in ever new ways.
TEST_P(Kernels, HundredRunsGiveTheSameBits) {
  constexpr int kSmCount = 4;
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.heads_q = 6;
  p.heads_kv = 2;
  p.seqlen_q = 500;
  p.seqlen_kv = 700;
  p.distribution = Distribution::peaky;
  SCOPED_TRACE(case_id(kernel.kernel->name, p));
  DeviceCase device(kernel.kernel, p, kSmCount);
  device.make_inputs(kSeed);
  device.run(0xFF);
  const std::vector<std::byte> first = device.output_bytes();
  for (int run = 1; run < 100; ++run) {
    device.run(run % 2 == 0 ? 0xFF : 0x7F);
    ASSERT_TRUE(first == device.output_bytes()) << "run " << run << " differs";
  }
}

std::vector<float> last(const std::vector<float>& values, std::int64_t count) {
  return {values.end() - count, values.end()};
}

// Where both take the same tile: into how many parts keys are cut depends on how many tiles there
// are.
TEST_P(Kernels, ItemAloneEqualsItemInBatch) {
  const KernelVariant& kernel = GetParam();
  if (kernel.kernel->name == "naive") {
    GTEST_SKIP() << "cuBLAS may choose another GEMM for another batch size";
  }
  Problem p = kernel.problem();
  p.batch = 5;
  p.heads_q = 16;
  p.heads_kv = 8;
  p.seqlen_kv = 180;
  if (p.dtype == DType::e4m3) p.options["smooth"] = "on";  // a mean is an item's own, too
  for (const std::int64_t seqlen_q : {130, 1}) {
    p.seqlen_q = seqlen_q;
    Problem item = p;
    item.batch = 1;
    const auto choice = kernel.kernel->choice;
    ASSERT_TRUE(choice == nullptr || choice(p) == choice(item));
    HostCase in_batch = make_host_case(p, kSeed);
    HostCase alone{last(in_batch.q, q_elements(item)),
                   last(in_batch.k, k_elements(item)),
                   last(in_batch.v, v_elements(item)),
                   {},
                   {}};
    // The scales of e4m3.
    const auto of_item = [&](const std::vector<float>& scales) {
      return last(scales, std::ssize(scales) / p.batch);
    };
    alone.q_scale = of_item(in_batch.q_scale);
    alone.k_scale = of_item(in_batch.k_scale);
    alone.v_scale = of_item(in_batch.v_scale);
    alone.v_log2 = of_item(in_batch.v_log2);
    alone.v_mean = of_item(in_batch.v_mean);
    for (const Mask& mask : kernel.masks(p, 6)) {
      p.mask = item.mask = mask;
      SCOPED_TRACE(case_id(kernel.kernel->name, p));
      const auto run = [&](const Problem& problem, HostCase& host) {
        DeviceCase device(kernel.kernel, problem);
        device.upload_inputs(host);
        device.run();
        device.download_outputs(host);
      };
      run(p, in_batch);
      run(item, alone);
      // As bytes: 0 and -0 are not the same.
      EXPECT_TRUE(encode(DType::fp32, last(in_batch.o, o_elements(item))) ==
                  encode(DType::fp32, alone.o))
          << "O differs";
      EXPECT_TRUE(encode(DType::fp32, last(in_batch.lse, lse_elements(item))) ==
                  encode(DType::fp32, alone.lse))
          << "LSE differs";
    }
  }
}

}  // namespace
}  // namespace rooflash
