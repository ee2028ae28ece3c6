// Head dims that are no multiple of 8, where a family takes them: rows and heads then start at
// addresses that no vector access may be aligned to.
#include "harness.hpp"

namespace rooflash {
namespace {

TEST_P(Kernels, SmallOddHeaddims) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  std::string refusal;
  int served = 0;
  for (const std::int64_t headdim : {1, 2, 7, 36, 63, 100, 132}) {
    p.headdim = p.headdim_v = headdim;
    for (const std::int64_t seqlen_kv : {64, 65, 130}) {
      p.seqlen_q = 33;
      p.seqlen_kv = seqlen_kv;
      if (!kernel.serves(p)) {
        if (refusal.empty()) (void)find_variant(*kernel.kernel, p, gpu().limits.sm, &refusal);
        continue;
      }
      expect_reference(kernel, p);
      ++served;
    }
  }
  if (served == 0) GTEST_SKIP() << refusal;
}

}  // namespace
}  // namespace rooflash
