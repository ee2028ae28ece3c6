// The provider over a cuDNN that does not work. One process takes one library, so all is asked of
// the same fake, whose handles fail at first.
#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string>

#include "core/error.hpp"
#include "kernel.hpp"

namespace rooflash::cudnn {

extern const std::span<const PrepareFn> kPrepare;

namespace {

template <class Fault>
std::string fault_of(const Problem& problem) {
  try {
    kPrepare[0](problem, {}, {.sm = 90});
  } catch (const UnsupportedError& error) {
    EXPECT_TRUE((std::is_same_v<Fault, UnsupportedError>)) << error.what();
    return error.what();
  } catch (const Error& error) {
    EXPECT_TRUE((std::is_same_v<Fault, Error>)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "a plan was built";
  return {};
}

TEST(Provider, FaultsAndRefusalsAreTold) {
  const std::string folder = std::string(ROOFLASH_FAKES) + "/cudnn";
  ASSERT_EQ(setenv("ROOFLASH_CUDNN", folder.c_str(), 1), 0);
  Problem problem;
  problem.seqlen_q = problem.seqlen_kv = 64;

  ASSERT_EQ(setenv("FAKE_CUDNN", "cudnnCreate=1001", 1), 0);
  EXPECT_EQ(fault_of<Error>(problem),
            "cuDNN 9.19.1: creating a handle: CUDNN_STATUS_NOT_INITIALIZED");
  ASSERT_EQ(unsetenv("FAKE_CUDNN"), 0);

  problem.headdim = problem.headdim_v = 60;
  EXPECT_EQ(fault_of<UnsupportedError>(problem),
            "cuDNN 9.19.1: hidden_dim should be multiple of 8");
  problem.headdim = problem.headdim_v = 64;
  problem.seqlen_q = 65;
  problem.mask.kind = MaskKind::causal;  // one row would see no key
  EXPECT_NE(fault_of<UnsupportedError>(problem).find("s_q > max_s_kv"), std::string::npos);

  // A function that the library lacks.
  problem.seqlen_q = 64;
  EXPECT_NE(fault_of<UnsupportedError>(problem).find("cudnnBackend"), std::string::npos);
}

}  // namespace
}  // namespace rooflash::cudnn
