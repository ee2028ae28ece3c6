#include "machine.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device.hpp"

ThreadIndex threadIdx, blockIdx, gridDim;

namespace rooflash {
// Nobody looks into these: addresses of shared memory are numbers, see `shared`.
namespace hopper {
unsigned char smem_raw[1];
}
namespace fp8 {
unsigned char smem_raw[1];
}
}  // namespace rooflash

namespace machine {
namespace {

using rooflash::ptx::Product;
using rooflash::ptx::WgmmaType;

constexpr unsigned char kUntouched = 0xFF;  // NaN in every type
constexpr std::size_t kStackBytes = 128 << 10;
// Shared memory begins at an address that is no multiple of much.
constexpr std::uint32_t kFirstAddress = 0x410;

// Threads wait until `phase` is not of a parity any more.
struct Barrier {
  std::uint32_t arrivals = 0, pending = 0;
  std::int64_t bytes = 0;
  unsigned phase = 0;
};
struct Meeting {
  int arrived = 0;
  unsigned phase = 0;
  const char* what = "";
  std::vector<void*> brought;
};
// A box in shared memory.
struct Copy {
  TensorMap map;
  std::array<int, 5> corner;
  std::uint32_t address;
};
// What has been sent to shared memory, and is counted at a barrier there.
struct Sent {
  int from, to;  // CTAs
  std::function<void()> write;
  std::int64_t bytes;
  std::uint32_t barrier;
};
struct Fiber {
  std::unique_ptr<char[]> stack;
  ucontext_t start;
  jmp_buf context;
  int cta, thread;
  bool started;
  bool done;
  const unsigned* phase;  // that it waits for to change its parity from `parity`; or nullptr
  unsigned parity;
  const char* waits_for;
  std::uint32_t waits_at;
  std::vector<Product> open;
  std::deque<std::vector<Product>> groups;
  std::vector<Copy> stores;

  bool ready() const { return !done && (phase == nullptr || *phase % 2 != parity); }
};

// Of the cluster that runs.
struct Cta {
  unsigned block;
  int running;                        // threads that have not ended
  std::vector<unsigned char> memory;  // shared
  std::map<std::uint32_t, Barrier> barriers;
};

Order order;
std::mt19937 numbers;
std::vector<Cta> ctas;
Cta* here;                  // whose shared memory is meant
std::vector<Fiber> fibers;  // of the CTAs, one after another
Fiber* current = nullptr;
jmp_buf scheduler;
const std::function<void()>* kernel_of_block;
std::string fault;                                // of the fiber that ran last
std::map<std::pair<int, int>, Meeting> meetings;  // by threads and number
std::vector<Sent> sent;                           // and under way

// Products that a warp of the cluster waits for.
struct Due {
  int warp, pending;
};
std::vector<Due> due;
std::array<unsigned, 64> products_phase;  // of each warp: waits that have ended

// ---- threads

int block_threads() {
  return static_cast<int>(fibers.size() / ctas.size());
}
// Of the current thread in the cluster.
int number() {
  return current->cta * block_threads() + current->thread;
}

// Until the destructor `here` is CTA `rank`.
class Visit {
 public:
  explicit Visit(int rank) : from_(here) {
    here = &ctas.at(static_cast<std::size_t>(rank));
    if (here->running == 0) {
      here = from_;
      fail("CTA %d of the cluster is reached after its end", rank);
    }
  }
  ~Visit() { here = from_; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Cta* from_;
};

void leave() {
  _longjmp(scheduler, 1);
}
// Functions that return twice, setjmp and getcontext, are called in frames with little else in
// them.
[[gnu::noinline]] void wait_while(const unsigned* phase, unsigned parity, const char* what,
                                  std::uint32_t address) {
  if (*phase % 2 != parity) return;
  current->phase = phase;
  current->parity = parity;
  current->waits_for = what;
  current->waits_at = address;
  if (_setjmp(current->context) == 0) leave();
}
void run_fiber() {
  try {
    (*kernel_of_block)();
    if (!current->stores.empty()) fail("a thread ends before its stores have");
    if (!current->groups.empty() || !current->open.empty()) {
      fail("a thread ends before its products have");
    }
  } catch (const std::exception& error) {
    fault = error.what();
  }
  current->done = true;
  --here->running;
  leave();
}
// Not swapcontext, which asks the kernel for the signal mask each time.
[[gnu::noinline]] void go_on(Fiber& fiber) {
  current = &fiber;
  here = &ctas[static_cast<std::size_t>(fiber.cta)];
  threadIdx.x = static_cast<unsigned>(fiber.thread);
  blockIdx.x = here->block;
  fiber.phase = nullptr;
  if (_setjmp(scheduler) == 0) {
    if (fiber.started) _longjmp(fiber.context, 1);
    fiber.started = true;
    setcontext(&fiber.start);
  }
  if (!fault.empty()) throw Fault(fault);
}

[[gnu::noinline]] void begin(Fiber& fiber, int cta, int thread) {
  if (!fiber.stack) fiber.stack.reset(new char[kStackBytes]);
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, run_fiber, 0);
  fiber.cta = cta;
  fiber.thread = thread;
  fiber.started = fiber.done = false;
  fiber.phase = nullptr;
  fiber.open.clear();
  fiber.groups.clear();
  fiber.stores.clear();
}

std::string who_waits() {
  std::string text;
  for (const Fiber& fiber : fibers) {
    if (fiber.done || fiber.thread % 32 != 0) continue;
    std::array<char, 100> line;
    std::snprintf(line.data(), line.size(), "\n  thread %d waits: %s %x", fiber.thread,
                  fiber.waits_for, fiber.waits_at);
    text += line.data();
    if (fiber.cta > 0) text += ", CTA " + std::to_string(fiber.cta);
  }
  return text;
}

// ---- shared memory

Barrier& barrier_at(std::uint32_t address) {
  const auto found = here->barriers.find(address);
  if (found == here->barriers.end()) fail("no barrier at %x", address);
  return found->second;
}
void settle(Barrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
}

// Chunks of 16 bytes change places by the bits above: with rows of `width` bytes, by the row.
std::uint32_t swizzled(std::uint32_t address, int width) {
  return address ^ (address >> 7 & static_cast<unsigned>(width / 16 - 1)) << 4;
}

void copy_box(const Copy& copy, bool to_global) {
  const TensorMap& map = copy.map;
  const int width = map.box[0] * map.element_bytes;
  if (copy.address % (8 * static_cast<unsigned>(width)) != 0) {
    fail("a box of rows of %d bytes at %x", width, copy.address);
  }
  if (copy.corner[0] < 0) fail("a box from column %d on", copy.corner[0]);
  const std::int64_t columns_left = (map.size[0] - copy.corner[0]) * map.element_bytes;
  std::array<int, 5> at{};  // in the box
  for (std::uint32_t row = 0;; ++row) {
    bool exists = true;
    std::int64_t offset = copy.corner[0] * map.stride[0];
    for (int i = 1; i < map.rank; ++i) {
      const std::int64_t place = copy.corner[i] + at[i];
      exists = exists && place >= 0 && place < map.size[i];
      offset += place * map.stride[i];
    }
    for (int byte = 0; byte < width; byte += 16) {
      unsigned char* const chunk = shared(
          swizzled(copy.address + row * static_cast<unsigned>(width) + static_cast<unsigned>(byte),
                   width),
          16);
      const auto bytes = static_cast<std::size_t>(
          exists ? std::clamp<std::int64_t>(columns_left - byte, 0, 16) : 0);
      if (to_global) {
        if (bytes > 0) std::memcpy(map.data + offset + byte, chunk, bytes);
      } else {
        if (bytes > 0) std::memcpy(chunk, map.data + offset + byte, bytes);
        std::memset(chunk + bytes, 0, 16 - bytes);
      }
    }
    int i = 1;
    while (i < map.rank && ++at[i] == map.box[i]) at[i++] = 0;
    if (i == map.rank) return;
  }
}
void land(std::size_t which) {
  const Sent now = sent[which];
  sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(which));
  const Visit visit(now.to);
  now.write();
  Barrier& barrier = barrier_at(now.barrier);
  barrier.bytes -= now.bytes;
  // Another CTA's may come before they are expected, but not after the last arrival.
  if (barrier.bytes < 0 && (now.from == now.to || barrier.pending == 0)) {
    fail("more bytes than the barrier at %x expects", now.barrier);
  }
  settle(barrier);
}
void send(const Sent& what) {
  sent.push_back(what);
  if (!order.late_copies) land(sent.size() - 1);
}

TensorMap read_map(const CUtensorMap* map, int rank) {
  TensorMap result;
  std::memcpy(&result, map, sizeof result);
  if (result.rank != rank) fail("a tensor of %d dimensions with %d places", result.rank, rank);
  return result;
}

// ---- products

// The elements of 16 bytes; how many.
int decode(WgmmaType type, const unsigned char* chunk, float* elements) {
  if (type == WgmmaType::e4m3) {
    for (int i = 0; i < 16; ++i) elements[i] = from_e4m3(chunk[i]);
    return 16;
  }
  for (int i = 0; i < 8; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, chunk + 2 * i, 2);
    elements[i] = type == WgmmaType::bf16 ? from_bf16(bits) : from_fp16(bits);
  }
  return 8;
}

constexpr int kMostColumns = 256;
using OperandRow = std::array<float, 32>;

std::uint32_t start_of(std::uint64_t descriptor) {
  return static_cast<std::uint32_t>(descriptor & 0x3FFF) << 4;
}
std::uint32_t leading_of(std::uint64_t descriptor) {
  return static_cast<std::uint32_t>(descriptor >> 16 & 0x3FFF) << 4;
}
std::uint32_t stride_of(std::uint64_t descriptor) {
  return static_cast<std::uint32_t>(descriptor >> 32 & 0x3FFF) << 4;
}
int width_of(std::uint64_t descriptor) {
  return 256 >> (descriptor >> 62);
}

// 32 bytes of row `row` of a K-major operand.
OperandRow k_major_row(WgmmaType type, std::uint64_t descriptor, int row) {
  const int width = width_of(descriptor);
  const std::uint32_t at = start_of(descriptor) +
                           static_cast<unsigned>(row / 8) * stride_of(descriptor) +
                           static_cast<unsigned>(row % 8 * width);
  OperandRow result;
  const int half = decode(type, shared(swizzled(at, width), 16), result.data());
  decode(type, shared(swizzled(at + 16, width), 16), result.data() + half);
  return result;
}

// A warp's quarter of a product, 16 rows.
void multiply(const std::array<const Product*, 32>& products, int quarter) {
  const Product& one = *products[0];
  for (const Product* other : products) {
    if (other->a != one.a || other->b != one.b || other->columns != one.columns) {
      fail("the threads of a warp issue different products");
    }
  }
  const int depth = one.type == WgmmaType::e4m3 ? 32 : 16;
  std::array<OperandRow, 16> a;
  for (int row = 0; row < 16 && one.a_registers == nullptr; ++row) {
    a[static_cast<std::size_t>(row)] = k_major_row(one.type, one.a, quarter * 16 + row);
  }
  for (int lane = 0; lane < 32 && one.a_registers != nullptr; ++lane) {
    std::array<float, 16> own;
    std::array<unsigned char, 16> bytes;
    std::memcpy(bytes.data(), products[static_cast<std::size_t>(lane)]->a_registers, 16);
    const int in_register = decode(one.type, bytes.data(), own.data()) / 4;
    for (int reg = 0; reg < 4; ++reg) {
      for (int i = 0; i < in_register; ++i) {
        a[static_cast<std::size_t>(lane / 4 + reg % 2 * 8)]
         [static_cast<std::size_t>(reg / 2 * depth / 2 + lane % 4 * in_register + i)] =
             own[static_cast<std::size_t>(reg * in_register + i)];
      }
    }
  }
  static float b[32][kMostColumns];
  for (int column = 0; column < one.columns && !one.transposed; ++column) {
    const OperandRow row = k_major_row(one.type, one.b, column);
    for (int k = 0; k < depth; ++k) b[k][column] = row[static_cast<std::size_t>(k)];
  }
  for (int k = 0; k < depth && one.transposed; ++k) {
    for (int column = 0; column < one.columns; column += 8) {
      const std::uint32_t at = start_of(one.b) +
                               static_cast<unsigned>(column / 64) * leading_of(one.b) +
                               static_cast<unsigned>(k / 8) * stride_of(one.b) +
                               static_cast<unsigned>(k % 8 * 128 + column % 64 * 2);
      decode(one.type, shared(swizzled(at, 128), 16), &b[k][column]);
    }
  }
  for (int row = 0; row < 16; ++row) {
    float sums[kMostColumns];
    const auto each = [&](auto visit) {
      for (int column = 0; column < one.columns; column += 2) {
        float* const d = products[static_cast<std::size_t>(row % 8 * 4 + column % 8 / 2)]->d +
                         column / 8 * 4 + row / 8 * 2;
        visit(d[0], sums[column]);
        visit(d[1], sums[column + 1]);
      }
    };
    each([&](float d, float& sum) { sum = one.accumulate ? d : 0; });
    for (int k = 0; k < depth; ++k) {
      const float factor = a[static_cast<std::size_t>(row)][static_cast<std::size_t>(k)];
      for (int column = 0; column < one.columns; ++column) sums[column] += factor * b[k][column];
    }
    each([](float& d, float sum) { d = sum; });
  }
}

// Does all of a warp's groups of products but the last `pending`.
void finish(std::size_t which) {
  const Due now = due[which];
  due.erase(due.begin() + static_cast<std::ptrdiff_t>(which));
  const Visit visit(fibers[static_cast<std::size_t>(now.warp * 32)].cta);
  const auto groups = [&](int lane) -> auto& {
    return fibers[static_cast<std::size_t>(now.warp * 32 + lane)].groups;
  };
  while (static_cast<int>(groups(0).size()) > now.pending) {
    const std::size_t size = groups(0).front().size();
    for (std::size_t i = 0; i < size; ++i) {
      std::array<const Product*, 32> products;
      for (int lane = 0; lane < 32; ++lane) {
        if (groups(lane).empty() || groups(lane).front().size() != size) {
          fail("groups of wgmma differ");
        }
        products[static_cast<std::size_t>(lane)] = &groups(lane).front()[i];
      }
      multiply(products, now.warp % 4);
    }
    for (int lane = 0; lane < 32; ++lane) groups(lane).pop_front();
  }
  ++products_phase[static_cast<std::size_t>(now.warp)];
}

// ---- clusters

bool run_ready(const std::vector<Fiber*>& some) {
  bool any = false;
  for (Fiber* fiber : some) {
    if (!fiber->ready()) continue;
    go_on(*fiber);
    any = true;
  }
  return any;
}

void run_cluster(unsigned first_block, int threads, std::int64_t smem_bytes) {
  for (Cta& cta : ctas) {
    cta.block = first_block++;
    cta.running = threads;
    cta.memory.assign(static_cast<std::size_t>(smem_bytes), kUntouched);
    cta.barriers.clear();
  }
  meetings.clear();
  sent.clear();
  due.clear();
  products_phase.fill(0);
  fault.clear();
  fibers.resize(ctas.size() * static_cast<std::size_t>(threads));
  for (std::size_t i = 0; i < fibers.size(); ++i) {
    begin(fibers[i], static_cast<int>(i) / threads, static_cast<int>(i) % threads);
  }
  const int held_cta = static_cast<int>(order.seed % ctas.size());
  std::vector<Fiber*> held;
  std::vector<Fiber*> others;
  for (Fiber& fiber : fibers) {
    const bool is_held = fiber.thread / 32 == order.held_warp && fiber.cta == held_cta;
    (is_held ? held : others).push_back(&fiber);
  }
  for (int round = 0;; ++round) {
    if (round % 4 == 0) std::shuffle(others.begin(), others.end(), numbers);
    if (run_ready(others)) continue;
    if (!sent.empty()) {
      land(numbers() % sent.size());
      continue;
    }
    if (!due.empty()) {
      finish(numbers() % due.size());
      continue;
    }
    if (run_ready(held)) continue;
    if (std::all_of(fibers.begin(), fibers.end(), [](const Fiber& f) { return f.done; })) return;
    fail("no thread can go on%s", who_waits().c_str());
  }
}

}  // namespace

void set_order(const Order& new_order) {
  order = new_order;
}

void run(unsigned blocks, unsigned cluster, int threads, std::int64_t smem_bytes,
         const std::function<void()>& kernel) {
  if (smem_bytes > 227 << 10)
    fail("%lld bytes of shared memory", static_cast<long long>(smem_bytes));
  numbers.seed(order.seed);
  kernel_of_block = &kernel;
  gridDim.x = blocks;
  ctas.resize(cluster);
  std::vector<unsigned> turn(blocks / cluster);
  for (unsigned i = 0; i < turn.size(); ++i) turn[i] = i;
  std::shuffle(turn.begin(), turn.end(), numbers);
  for (const unsigned i : turn) run_cluster(i * cluster, threads, smem_bytes);
}

unsigned char* shared(std::uint32_t address, std::size_t bytes) {
  if (address % bytes != 0) fail("an access of %zu bytes at %x", bytes, address);
  if (address < kFirstAddress || address + bytes > kFirstAddress + here->memory.size()) {
    fail("an access at %x, outside the kernel's shared memory", address);
  }
  return here->memory.data() + (address - kFirstAddress);
}

void fail(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::array<char, 2000> text;
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  throw Fault("block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(threadIdx.x) +
              ": " + text.data());
}

void meet(int threads, const char* what, void* brought, const std::function<void(void**)>& work) {
  const int thread = number();
  Meeting& meeting = meetings[{threads, thread / threads}];
  meeting.brought.resize(static_cast<std::size_t>(threads));
  if (meeting.arrived > 0 && std::strcmp(meeting.what, what) != 0) {
    fail("%s meets %s", what, meeting.what);
  }
  meeting.what = what;
  meeting.brought[static_cast<std::size_t>(thread % threads)] = brought;
  const unsigned parity = meeting.phase % 2;
  if (++meeting.arrived == threads) {
    work(meeting.brought.data());
    meeting.arrived = 0;
    ++meeting.phase;
  }
  wait_while(&meeting.phase, parity, what, 0);
}

float from_e4m3(unsigned byte) {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> result;
    for (int i = 0; i < 256; ++i) {
      const int exponent = i >> 3 & 15;
      const int mantissa = i & 7;
      float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                  : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
      if (exponent == 15 && mantissa == 7) value = NAN;
      result[static_cast<std::size_t>(i)] = (i & 128) != 0 ? -value : value;
    }
    return result;
  }();
  return values[byte];
}
float from_bf16(std::uint16_t bits) {
  return same_bits<float>(static_cast<std::uint32_t>(bits) << 16);
}
float from_fp16(std::uint16_t bits) {
  return static_cast<float>(same_bits<__half>(bits));
}

std::uint32_t to_e4m3(float value) {
  if (std::isnan(value)) return 0x7F;
  const std::uint32_t sign = std::signbit(value) ? 0x80 : 0;
  const float size = std::min(std::fabs(value), 448.0F);
  const int exponent = size >= 0x1p-6F ? std::ilogb(size) : -6;
  // In steps of the last bit; one too many carries into the exponent by itself.
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));
  return sign | static_cast<std::uint32_t>((exponent + 6) * 8 + steps);
}

}  // namespace machine

namespace rooflash::ptx {

using namespace machine;  // NOLINT

std::uint32_t smem_address(const void*) {
  return kFirstAddress;
}

// Both shapes: a register holds two or four elements of a row.
template <int kInRegister, class Lane, class Element>
void multiply_in_warp(Lane& mine, const Element& element) {
  machine::warp("mma", mine, [&](auto of) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int column = lane % 4 * 2 + i % 2;
        float& sum = of(lane).c[i];
        for (int k = 0; k < 8 * kInRegister; ++k) {
          const int part = k / (4 * kInRegister);
          const int quarter = k / kInRegister % 4;
          const int place = k % kInRegister;
          sum += element(of(lane / 4 * 4 + quarter).a[part * 2 + i / 2], place) *
                 element(of(column * 4 + quarter).b[part], place);
        }
      }
    }
  });
}
namespace {
struct MmaLane {
  float* c;
  const std::uint32_t* a;
  std::uint32_t b[2];
};
}  // namespace
void mma_m16n8k32_e4m3(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1) {
  MmaLane mine{c, a, {b0, b1}};
  multiply_in_warp<4>(
      mine, [](std::uint32_t word, int place) { return from_e4m3(word >> 8 * place & 0xFF); });
}
template <>
void mma_m16n8k16<__nv_bfloat16>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                 std::uint32_t b1) {
  MmaLane mine{c, a, {b0, b1}};
  multiply_in_warp<2>(mine, [](std::uint32_t word, int place) {
    return from_bf16(static_cast<std::uint16_t>(word >> 16 * place));
  });
}
template <>
void mma_m16n8k16<__half>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                          std::uint32_t b1) {
  MmaLane mine{c, a, {b0, b1}};
  multiply_in_warp<2>(mine, [](std::uint32_t word, int place) {
    return from_fp16(static_cast<std::uint16_t>(word >> 16 * place));
  });
}

void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  shared(barrier, 8);
  if (!here->barriers.insert({barrier, {arrivals, arrivals}}).second)
    fail("a barrier at %x", barrier);
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
  wait_while(&barrier_at(barrier).phase, parity, "barrier", barrier);
}

int cluster_rank() {
  return current->cta;
}
void cluster_sync() {
  meet(static_cast<int>(fibers.size()), "cluster_sync", nullptr, [](void**) {});
}
void mbarrier_arrive_at(std::uint32_t barrier, unsigned rank) {
  const Visit visit(static_cast<int>(rank));
  mbarrier_arrive(barrier);
}
void store_async(std::uint32_t address, std::uint32_t value, std::uint32_t barrier, unsigned rank) {
  send({current->cta, static_cast<int>(rank), [=] { store(address, value); }, sizeof value,
        barrier});
}

void start_load(std::uint32_t target, const CUtensorMap* map, int rank,
                const std::array<int, 5>& corner, std::uint32_t barrier, unsigned to) {
  const Copy copy{read_map(map, rank), corner, target};
  std::int64_t bytes = copy.map.element_bytes;
  for (int i = 0; i < rank; ++i) bytes *= copy.map.box[i];
  for (int cta = 0; cta < static_cast<int>(ctas.size()); ++cta) {
    if ((to >> cta & 1U) == 0) continue;
    send({current->cta, cta, [=] { copy_box(copy, false); }, bytes, barrier});
  }
}
void start_store(const CUtensorMap* map, int rank, const std::array<int, 5>& corner,
                 std::uint32_t source) {
  current->stores.push_back({read_map(map, rank), corner, source});
}
void check_rank(const CUtensorMap* map, int rank) {
  read_map(map, rank);
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
  const int warp = number() / 32;
  const unsigned& phase = products_phase[static_cast<std::size_t>(warp)];
  const unsigned parity = phase % 2;
  meet(32, pending == 0 ? "wgmma_wait<0>" : "wgmma_wait<1>", nullptr, [&](void**) {
    due.push_back({warp, pending});
    if (!order.late_products) finish(due.size() - 1);
  });
  wait_while(&phase, parity, "products", 0);
}

}  // namespace rooflash::ptx

void __syncthreads() {
  machine::meet(machine::block_threads(), "syncthreads", nullptr, [](void**) {});
}
