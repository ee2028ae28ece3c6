// What memory-efficient attention in fp32 promises: the output of exact attention, up to the
// rounding of fp32. An approximate exponential, TF32 products or sums that drift over a long row
// would all be larger than this bound, and pass the judge, which allows what eager code loses.
#include <cmath>

#include "device_case.hpp"
#include "harness.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

constexpr double kMostRelativeError = 2e-6;  // Frobenius norms, against fp64

// Of O over every `step`-th row.
double relative_error(const Kernel* kernel, const Problem& p, std::int64_t step) {
  HostCase host = make_host_case(p, kSeed);
  DeviceCase device(kernel, p);
  device.upload_inputs(host);
  device.run();
  device.download_outputs(host);
  double of_error = 0;
  double of_reference = 0;
  for (std::int64_t head = 0; head < p.heads_q; ++head) {
    for (std::int64_t row = 0; row < p.seqlen_q; row += step) {
      const ReferenceRow reference = reference_row(p, host.tensors(), {0, head, row});
      const std::int64_t first = (row * p.heads_q + head) * p.headdim_v;
      for (std::int64_t c = 0; c < p.headdim_v; ++c) {
        const double expected = reference.o[static_cast<std::size_t>(c)];
        const double error = host.o[static_cast<std::size_t>(first + c)] - expected;
        of_error += error * error;
        of_reference += expected * expected;
      }
    }
  }
  return std::sqrt(of_error / of_reference);
}

TEST(Sdpa, Fp32IsExactUpToRounding) {
  for (const std::int64_t headdim : {64, 128, 256}) {
    for (const std::int64_t seqlen : {200, 1024, 8192}) {
      for (const Mask& mask : {Mask{}, Mask{MaskKind::causal, Align::bottom_right}}) {
        Problem p;
        p.dtype = DType::fp32;
        p.heads_q = p.heads_kv = 2;
        p.seqlen_q = p.seqlen_kv = seqlen;
        p.headdim = p.headdim_v = headdim;
        p.mask = mask;
        EXPECT_LE(relative_error(find_kernel("sdpa"), p, 1 + seqlen / 64), kMostRelativeError)
            << case_id("sdpa", p);
      }
    }
  }
}

}  // namespace
}  // namespace rooflash
