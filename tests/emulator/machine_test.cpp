// That the machine sees faults, and that they fail a test with their message.
#include "machine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>

#include "device.hpp"

namespace machine {
namespace {

using namespace rooflash;  // NOLINT

constexpr int kSmemBytes = 2048;

// What the machine says of a kernel of two warps; its argument is the address of its shared memory,
// a multiple of 1024.
using Kernel = std::function<void(std::uint32_t)>;
std::string fault_of(const Kernel& kernel, unsigned cluster = 1) {
  try {
    const std::uint32_t base = (ptx::smem_address(nullptr) + 1023) / 1024 * 1024;
    run(cluster, cluster, 64, kSmemBytes, [&] { kernel(base); });
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}
void expect_fault(const std::string& message, const Kernel& kernel, unsigned cluster = 1) {
  const std::string fault = fault_of(kernel, cluster);
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

// ---- clusters of two

// Of 4 rows of 128 bytes.
CUtensorMap map_of(std::array<std::uint16_t, 4 * 64>& rows) {
  TensorMap map{};
  map.data = reinterpret_cast<unsigned char*>(rows.data());
  map.rank = 4;
  map.element_bytes = 2;
  const int sizes[] = {64, 1, 4, 1};
  const std::int64_t strides[] = {2, 128, 128, 512};
  for (int i = 0; i < 4; ++i) {
    map.size[i] = map.box[i] = sizes[i];
    map.stride[i] = strides[i];
  }
  CUtensorMap result;
  std::memcpy(&result, &map, sizeof map);
  return result;
}

TEST(MachineCluster, RunsSideBySide) {
  std::array<std::uint16_t, 4 * 64> rows;
  rows.fill(7);
  const CUtensorMap map = map_of(rows);
  for (const bool late : {false, true}) {
    set_order({.seed = 3, .late_copies = late});
    int sum = 0;
    const std::string fault = fault_of(
        [&](std::uint32_t base) {
          const auto rank = static_cast<unsigned>(ptx::cluster_rank());
          const std::uint32_t met = base - 32;
          const std::uint32_t handed = base - 24;
          const std::uint32_t loaded = base - 16;
          const std::uint32_t number = base - 8;
          if (first()) {
            for (const std::uint32_t barrier : {met, handed, loaded})
              ptx::mbarrier_init(barrier, 1);
          }
          ptx::cluster_sync();
          if (first()) {
            ptx::mbarrier_arrive_at(met, 1 - rank);
            ptx::mbarrier_wait(met, 0);
            ptx::mbarrier_arrive_expect(handed, 4);
            // In rank 1 the box may be there before it is expected.
            if (rank == 1) ptx::mbarrier_wait(handed, 0);
            ptx::mbarrier_arrive_expect(loaded, 512);
            if (rank == 0) ptx::tma_load_multicast(base, &map, {0, 0, 0, 0}, loaded, 0b11, 0);
            ptx::store_async(number, 10 + rank, handed, 1 - rank);
          }
          ptx::mbarrier_wait(handed, 0);
          ptx::mbarrier_wait(loaded, 0);
          sum +=
              static_cast<int>(ptx::load_shared_4(number) + ptx::load<std::uint16_t>(base + 510));
          ptx::cluster_sync();
        },
        2);
    EXPECT_EQ(fault, "");
    EXPECT_EQ(sum, 64 * (10 + 11 + 2 * 7));
  }
  set_order({});
}

TEST(MachineCluster, SeesArrivalsBeforeBarriersAreThere) {
  expect_fault(
      "no barrier at",
      [](std::uint32_t base) {
        if (ptx::cluster_rank() == 0) {
          if (first()) ptx::mbarrier_arrive_at(base, 1);
        }
        ptx::cluster_sync();
        if (first()) ptx::mbarrier_init(base, 1);
      },
      2);
}

TEST(MachineCluster, SeesArrivalsAtACtaThatHasEnded) {
  expect_fault(
      "CTA 1 of the cluster is reached after its end",
      [](std::uint32_t base) {
        if (first()) {
          ptx::mbarrier_init(base, 1);
          ptx::mbarrier_init(base + 8, 64);
        }
        ptx::cluster_sync();
        if (ptx::cluster_rank() == 1) {
          ptx::mbarrier_arrive_at(base + 8, 0);
        } else {
          ptx::mbarrier_wait(base + 8, 0);
          if (first()) ptx::mbarrier_arrive_at(base, 1);
        }
      },
      2);
}

TEST(MachineCluster, SeesWhatLandsInACtaThatHasEnded) {
  set_order({.late_copies = true});
  expect_fault(
      "is reached after its end",
      [](std::uint32_t base) {
        if (first()) ptx::mbarrier_init(base, 1);
        ptx::cluster_sync();
        if (first() && ptx::cluster_rank() == 0) ptx::store_async(base + 8, 1, base, 1);
      },
      2);
  set_order({});
}

}  // namespace
}  // namespace machine
