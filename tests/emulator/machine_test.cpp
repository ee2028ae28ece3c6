// That the machine sees faults, and that they fail a test with their message.
#include "machine.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "device.hpp"

namespace machine {
namespace {

using namespace rooflash;  // NOLINT

constexpr int kSmemBytes = 1024;

// What the machine says of a kernel of two warps; its argument is the address of its shared memory.
std::string fault_of(const std::function<void(std::uint32_t)>& kernel) {
  try {
    run(1, 64, kSmemBytes, [&] { kernel((ptx::smem_address(nullptr) + 127) / 128 * 128); });
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}
void expect_fault(const std::string& message, const std::function<void(std::uint32_t)>& kernel) {
  const std::string fault = fault_of(kernel);
  EXPECT_NE(fault.find(message), std::string::npos) << fault;
}
bool first() {
  return threadIdx.x == 0;
}

TEST(Machine, RunsAKernelWithoutFault) {
  int sum = 0;
  EXPECT_EQ(fault_of([&](std::uint32_t base) {
              if (first()) ptx::mbarrier_init(base, 2);
              __syncthreads();
              if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(base);
              ptx::mbarrier_wait(base, 0);
              sum += static_cast<int>(__shfl_sync(~0U, static_cast<float>(threadIdx.x), 1));
            }),
            "");
  EXPECT_EQ(sum, 32 * 1 + 32 * 33);
}

TEST(Machine, SeesADeadlock) {
  expect_fault("no thread can go on\n  thread 0 waits: barrier", [](std::uint32_t base) {
    if (first()) ptx::mbarrier_init(base, 1);
    __syncthreads();
    ptx::mbarrier_wait(base, 0);
  });
}

TEST(Machine, SeesAccessesBehindSharedMemory) {
  expect_fault("outside the kernel's shared memory", [](std::uint32_t) {
    if (first()) ptx::store_shared_4(ptx::smem_address(nullptr) + kSmemBytes, 1);
  });
}

TEST(Machine, SeesTooManyArrivals) {
  expect_fault("too many arrivals", [](std::uint32_t base) {
    if (!first()) return;
    ptx::mbarrier_init(base, 1);
    ptx::mbarrier_arrive_expect(base, 16);
    ptx::mbarrier_arrive(base);
  });
}

TEST(Machine, SeesMisalignedAddresses) {
  expect_fault("an access of 16 bytes at", [](std::uint32_t base) {
    if (first()) ptx::store_shared_16(base + 8, {});
  });
}

TEST(Machine, SeesThreadsThatDoNotMeet) {
  expect_fault("meets", [](std::uint32_t) {
    if (first()) {
      __shfl_sync(~0U, 0, 0);
    } else {
      __syncwarp();
    }
  });
  expect_fault("no thread can go on", [](std::uint32_t) {
    if (!first()) __syncwarp();
  });
}

TEST(Machine, SeesProductsThatNobodyWaitsFor) {
  expect_fault("before its products", [](std::uint32_t base) {
    float d[8][4] = {};
    const std::uint64_t tile = ptx::wgmma_descriptor(base);
    ptx::wgmma_ss<ptx::WgmmaType::bf16, 64>(d, tile, tile);
    ptx::wgmma_commit();
  });
}

}  // namespace
}  // namespace machine
