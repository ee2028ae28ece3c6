// A machine that runs the fp8 kernels on the CPU, for logic that can be found wrong without a GPU:
// indices, barriers, roles, masks, scales. Threads of a CTA are fibers, taken by turns in an order
// that EMULATOR_SEED draws. Asynchronous work is done when that shows faults best: wgmma as late as
// it may, at the wait for it, so that operands given up or touched too soon make the result wrong;
// a TMA load at once, or with EMULATOR_LATE at random later, a TMA store at the wait for it. It
// ends the process where threads of a warp do not meet, arrivals are too many, an address is
// misaligned, memory behind the kernel's own is written, or no thread can go on.
//
// It does not know how memory accesses of different kinds are ordered, which fences they need, nor
// how the tensor cores round; encodings of descriptors are as its author read them.
#include "machine.hpp"

#include <ucontext.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fp8/arguments.cuh"

ThreadIndex threadIdx, blockIdx, gridDim;

namespace rooflash::fp8 {
alignas(1024) unsigned char smem_raw[232 << 10];
}

namespace machine {
namespace {

using rooflash::fp8::smem_raw;
using rooflash::ptx::Corner;
using rooflash::ptx::Product;

constexpr unsigned char kUntouched = 0x7F;  // NaN in e4m3
constexpr std::size_t kStackBytes = 128 << 10;

struct Barrier {
  std::uint32_t arrivals, pending;
  std::int64_t bytes = 0;
  unsigned phase = 0;
};
struct Meeting {
  int arrived = 0;
  long times = 0;
  const char* what = "";
  std::vector<void*> brought;
};
struct Copy {
  const CUtensorMap* map;
  Corner corner;
  std::uint32_t address;
  std::uint32_t barrier;
};
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  int thread = 0;
  bool done = false;
  std::string waits_for;
  std::vector<Product> open;
  std::deque<std::vector<Product>> groups;
  std::vector<Copy> stores;
};

std::vector<Fiber> fibers;
Fiber* current = nullptr;
ucontext_t scheduler;
std::function<void()> kernel_of_block;
bool moved;  // some thread got on in this round
std::map<std::uint32_t, Barrier> barriers;
std::map<std::pair<int, int>, Meeting> meetings;  // by threads and number
std::vector<Copy> loads;                          // under way

std::mt19937& random_numbers() {
  static std::mt19937 numbers(std::getenv("EMULATOR_SEED") ? std::atoi(std::getenv("EMULATOR_SEED"))
                                                           : 1);
  return numbers;
}

void yield(const std::string& waits_for) {
  Fiber* const mine = current;
  mine->waits_for = waits_for;
  swapcontext(&mine->context, &scheduler);
}

std::uint32_t swizzled(std::uint32_t address, int width) {
  return address ^ (address >> 7 & static_cast<unsigned>(width / 16 - 1)) << 4;
}

void copy_box(const Copy& copy, bool to_global) {
  const CUtensorMap& map = *copy.map;
  const Corner& at = copy.corner;
  const int width = map.columns * map.element_bytes;
  if (copy.address % (8 * width) != 0) fail("a box of %d bytes at %x", width, copy.address);
  for (int row = 0; row < map.rows; ++row) {
    for (int byte = 0; byte < width; ++byte) {
      const std::int64_t column = at.column + byte / map.element_bytes;
      const bool exists = at.row + row < map.seqlen && column < map.width;
      unsigned char* const element =
          shared(swizzled(copy.address + static_cast<unsigned>(row * width + byte), width));
      unsigned char* const global =
          map.data +
          (((at.batch * map.seqlen + at.row + row) * map.heads + at.head) * map.width + at.column) *
              map.element_bytes +
          byte;
      if (!to_global) *element = exists ? *global : 0;
      if (to_global && exists) *global = *element;
    }
  }
}

Barrier& barrier_at(std::uint32_t address) {
  const auto found = barriers.find(address);
  if (found == barriers.end()) fail("no barrier at %x", address);
  return found->second;
}
void settle(Barrier& barrier) {
  moved = true;
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
}
void land(const Copy& copy) {
  copy_box(copy, false);
  Barrier& barrier = barrier_at(copy.barrier);
  barrier.bytes -= std::int64_t{copy.map->rows} * copy.map->columns * copy.map->element_bytes;
  if (barrier.bytes < 0) fail("more bytes than the barrier at %x expects", copy.barrier);
  settle(barrier);
}

// 32 elements of row `row` of a K-major operand.
std::array<float, 32> operand_row(std::uint64_t descriptor, int row) {
  const auto start = static_cast<std::uint32_t>(descriptor & 0x3FFF) << 4;
  const auto stride = static_cast<std::uint32_t>(descriptor >> 32 & 0x3FFF) << 4;
  const int width = 256 >> (descriptor >> 62);
  std::array<float, 32> result;
  for (unsigned k = 0; k < 32; ++k) {
    const std::uint32_t at = start + row / 8 * stride + static_cast<unsigned>(row % 8 * width) + k;
    result[k] = from_e4m3(*shared(swizzled(at, width)));
  }
  return result;
}

void multiply(const std::array<const Product*, 128>& products) {
  const Product& one = *products[0];
  for (const Product* other : products) {
    if (other->a != one.a || other->b != one.b || other->columns != one.columns ||
        other->accumulate != one.accumulate) {
      fail("the threads of a warpgroup issue different products");
    }
  }
  std::array<std::array<float, 32>, 64> a;
  std::vector<std::array<float, 32>> b;
  for (int row = 0; row < one.columns; ++row) b.push_back(operand_row(one.b, row));
  for (int row = 0; row < 64 && !one.a_registers; ++row) a[row] = operand_row(one.a, row);
  for (int t = 0; t < 128 && one.a_registers; ++t) {
    for (int i = 0; i < 16; ++i) {
      const int reg = i / 4;
      a[t / 32 * 16 + t % 32 / 4 + reg % 2 * 8][reg / 2 * 16 + t % 4 * 4 + i % 4] =
          from_e4m3(products[t]->a_registers[reg] >> i % 4 * 8 & 0xFF);
    }
  }
  for (int t = 0; t < 128; ++t) {
    for (int i = 0; i < one.columns / 2; ++i) {
      const int row = t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8;
      const int column = i / 4 * 8 + t % 4 * 2 + i % 2;
      float sum = one.accumulate ? products[t]->d[i] : 0;
      for (int k = 0; k < 32; ++k) sum += a[row][k] * b[column][k];
      products[t]->d[i] = sum;
    }
  }
}

void run_fiber() {
  kernel_of_block();
  current->done = true;
  moved = true;
}

void run_block(int threads, std::int64_t smem_bytes, const std::function<void()>& kernel) {
  std::fill(std::begin(smem_raw), std::end(smem_raw), kUntouched);
  barriers.clear();
  meetings.clear();
  kernel_of_block = kernel;
  fibers.clear();
  fibers.resize(threads);
  std::vector<Fiber*> order;
  for (Fiber& fiber : fibers) {
    fiber.thread = static_cast<int>(order.size());
    fiber.stack.reset(new char[kStackBytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_fiber, 0);
    order.push_back(&fiber);
  }
  int still = 0;  // rounds in which nothing moved
  for (std::size_t left = fibers.size(), round = 0; left > 0; ++round) {
    moved = false;
    if (round % 4 == 0) std::shuffle(order.begin(), order.end(), random_numbers());
    for (Fiber* fiber : order) {
      if (fiber->done) continue;
      current = fiber;
      threadIdx.x = static_cast<unsigned>(fiber->thread);
      swapcontext(&scheduler, &fiber->context);
      left -= fiber->done;
      if (fiber->done && !fiber->stores.empty()) fail("a thread ends before its stores have");
    }
    for (std::size_t i = 0; i < loads.size();) {
      if (random_numbers()() % 3 != 0) {
        ++i;
        continue;
      }
      const Copy copy = loads[i];
      loads.erase(loads.begin() + static_cast<std::ptrdiff_t>(i));
      land(copy);
    }
    still = moved ? 0 : still + 1;
    if (still > 50) {
      for (const Fiber& fiber : fibers) {
        if (fiber.done || (fiber.thread >= 32 && fiber.thread % 32 != 0)) continue;
        std::fprintf(stderr, "thread %d waits for %s\n", fiber.thread, fiber.waits_for.c_str());
      }
      fail("no thread can go on");
    }
  }
  if (std::any_of(smem_raw + smem_bytes, std::end(smem_raw),
                  [](unsigned char byte) { return byte != kUntouched; })) {
    fail("shared memory behind the kernel's is written");
  }
}

void meet_in(Meeting& meeting, int threads, int place, const char* what, void* brought,
             const std::function<void(void**)>& work) {
  meeting.brought.resize(static_cast<std::size_t>(threads));
  if (meeting.arrived > 0 && std::strcmp(meeting.what, what) != 0) {
    fail("%s meets %s", what, meeting.what);
  }
  meeting.what = what;
  meeting.brought[static_cast<std::size_t>(place)] = brought;
  const long times = meeting.times;
  if (++meeting.arrived == threads) {
    work(meeting.brought.data());
    meeting.arrived = 0;
    ++meeting.times;
    moved = true;
  }
  while (meeting.times == times) yield(what);
}

}  // namespace

unsigned char* shared(std::uint32_t address) {
  return smem_raw + (address - kFirstAddress);
}

void fail(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "emulator: block %u, thread %u: ", blockIdx.x, threadIdx.x);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::abort();
}

void meet(int threads, const char* what, void* brought, const std::function<void(void**)>& work) {
  const int thread = current->thread;
  meet_in(meetings[{threads, thread / threads}], threads, thread % threads, what, brought, work);
}

float from_e4m3(unsigned byte) {
  const int exponent = static_cast<int>(byte >> 3 & 15);
  const int mantissa = static_cast<int>(byte & 7);
  float value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  if (exponent == 15 && mantissa == 7) value = NAN;
  return byte & 128 ? -value : value;
}

std::uint32_t to_e4m3(float value) {
  if (std::isnan(value)) return 0x7F;
  const std::uint32_t sign = std::signbit(value) ? 0x80 : 0;
  const float size = std::min(std::fabs(value), 448.0F);
  int exponent = -6;
  if (size >= 0x1p-6F) exponent = std::ilogb(size);
  // In steps of the last bit; one too many carries into the exponent by itself.
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 3 - exponent)));
  return sign | (static_cast<std::uint32_t>(exponent + 6) * 8 + steps);
}

}  // namespace machine

void __syncthreads() {
  const int threads = static_cast<int>(machine::fibers.size());
  machine::meet(threads, "syncthreads", nullptr, [](void**) {});
}
extern "C" cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 2;
  return cudaSuccess;
}

namespace rooflash::ptx {

using namespace machine;  // NOLINT

std::uint32_t smem_address(const void* pointer) {
  return static_cast<std::uint32_t>(static_cast<const unsigned char*>(pointer) - smem_raw) +
         kFirstAddress;
}
void mma_m16n8k32_e4m3(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1) {
  struct Lane {
    float* c;
    const std::uint32_t* a;
    std::uint32_t b[2];
  } mine{c, a, {b0, b1}};
  machine::warp("mma", mine, [](auto of) {
    const auto element = [](std::uint32_t word, int byte) {
      return from_e4m3(word >> 8 * byte & 0xFF);
    };
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 32; ++k) {
          const int quarter = k % 16 / 4;
          of(lane).c[i] += element(of(lane / 4 * 4 + quarter).a[k / 16 * 2 + i / 2], k % 4) *
                           element(of(column * 4 + quarter).b[k / 16], k % 4);
        }
      }
    }
  });
}

void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  if (barrier % 8 != 0 || !barriers.insert({barrier, {arrivals, arrivals}}).second) {
    fail("a barrier at %x", barrier);
  }
}
void mbarrier_arrive(std::uint32_t barrier) {
  Barrier& at = barrier_at(barrier);
  if (at.pending == 0) fail("too many arrivals at %x", barrier);
  --at.pending;
  settle(at);
}
void mbarrier_arrive_expect(std::uint32_t barrier, std::uint32_t bytes) {
  barrier_at(barrier).bytes += bytes;
  mbarrier_arrive(barrier);
}
void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  while (barrier_at(barrier).phase % 2 == parity) yield("barrier " + std::to_string(barrier));
}

void tma_load(std::uint32_t target, const CUtensorMap* map, Corner at, std::uint32_t barrier,
              std::uint64_t) {
  static const bool late = std::getenv("EMULATOR_LATE") != nullptr;
  loads.push_back({map, at, target, barrier});
  moved = true;
  if (late) return;
  loads.pop_back();
  land({map, at, target, barrier});
}
void tma_store(const CUtensorMap* map, Corner at, std::uint32_t source) {
  current->stores.push_back({map, at, source, 0});
}
void tma_store_wait_read() {
  for (const Copy& copy : current->stores) copy_box(copy, true);
  current->stores.clear();
}

void wgmma_issue(const Product& product) {
  current->open.push_back(product);
}
void wgmma_commit() {
  current->groups.push_back(std::move(current->open));
  current->open.clear();
}
void wgmma_wait_for(int pending) {
  meet(128, pending == 0 ? "wgmma_wait<0>" : "wgmma_wait<1>", current, [&](void** all) {
    const auto groups = [&](int t) -> auto& {
      return static_cast<Fiber*>(all[t])->groups;
    };
    while (static_cast<int>(groups(0).size()) > pending) {
      const std::size_t size = groups(0).front().size();
      for (std::size_t i = 0; i < size; ++i) {
        std::array<const Product*, 128> products;
        for (int t = 0; t < 128; ++t) {
          if (groups(t).empty() || groups(t).front().size() != size) fail("groups of wgmma differ");
          products[static_cast<std::size_t>(t)] = &groups(t).front()[i];
        }
        multiply(products);
      }
      for (int t = 0; t < 128; ++t) groups(t).pop_front();
    }
  });
}

}  // namespace rooflash::ptx

namespace rooflash::hopper {

CUtensorMap rows_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                     std::int64_t heads, std::int64_t width, int box_rows, int box_columns) {
  auto* const bytes = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  return {bytes, width, heads, seqlen, batch, dtype == DType::e4m3 ? 1 : 2, box_columns, box_rows};
}
std::shared_ptr<Counters> make_counters() {
  return std::make_shared<Counters>();
}
Prepared prepare_persistent(const void* kernel, int threads, int smem_bytes, int tiles,
                            const DeviceLimits& device, std::shared_ptr<void> args,
                            std::shared_ptr<Counters> counters) {
  const int grid = std::min(tiles, device.sm_count);
  return {.launch = [=](CUstream_st*) {
    gridDim.x = static_cast<unsigned>(grid);
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
      machine::run_block(threads, smem_bytes, [&] {
        reinterpret_cast<void (*)(fp8::Arguments)>(const_cast<void*>(kernel))(
            *static_cast<fp8::Arguments*>(args.get()));
      });
    }
    if (counters->taken != 0 || counters->done != 0) machine::fail("counters are left");
  }};
}

}  // namespace rooflash::hopper
