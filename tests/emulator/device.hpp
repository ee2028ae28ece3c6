// What device code of the Hopper kernels asks of the machine, on the CPU: the intrinsics, and the
// functions of common/ptx/ under their names, whose headers this one stands in for. The compiler
// includes it before all else, as nvcc does its own. See machine.hpp.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#undef __global__
#undef __shared__
#undef __grid_constant__
#undef __launch_bounds__
#define __global__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)
#define __CUDA_ARCH_FEAT_SM90_ALL 1

struct ThreadIndex {
  unsigned x;
};
extern ThreadIndex threadIdx, blockIdx, gridDim;

namespace machine {

// `bytes` of shared memory, at a multiple of as many.
unsigned char* shared(std::uint32_t address, std::size_t bytes);

[[noreturn]] void fail(const char* format, ...);

// The `threads` threads of the caller's warp, block or cluster meet; the last to come runs `work`
// on what all have brought.
void meet(int threads, const char* what, void* brought, const std::function<void(void**)>& work);

// The same, `Brought` being what each of a warp's lanes brings.
template <class Brought, class Work>
void warp(const char* what, Brought& brought, const Work& work) {
  meet(32, what, &brought, [&](void** all) {
    const auto of = [&](int lane) -> Brought& { return *static_cast<Brought*>(all[lane]); };
    work(of);
  });
}

float from_e4m3(unsigned byte);
float from_bf16(std::uint16_t bits);
float from_fp16(std::uint16_t bits);
std::uint32_t to_e4m3(float value);

}  // namespace machine

using std::max;
using std::min;

// A value from each lane, to each lane what `work` makes of all.
template <class Result, class Value, class Work>
Result exchange(const char* what, Value value, const Work& work) {
  struct Lane {
    Value in;
    Result out;
  } mine{value, {}};
  machine::warp(what, mine, [&](auto of) {
    for (int lane = 0; lane < 32; ++lane) {
      of(lane).out = work(lane, [&](int other) { return of(other).in; });
    }
  });
  return mine.out;
}
inline float __shfl_xor_sync(unsigned, float value, int mask) {
  return exchange<float>("shfl_xor", value, [&](int lane, auto in) { return in(lane ^ mask); });
}
inline float __shfl_sync(unsigned, float value, int from) {
  return exchange<float>("shfl", value, [&](int, auto in) { return in(from % 32); });
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  return exchange<unsigned>("ballot", predicate, [](int, auto in) {
    unsigned bits = 0;
    for (int lane = 0; lane < 32; ++lane) bits |= (in(lane) != 0 ? 1U : 0U) << lane;
    return bits;
  });
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == 0xFFFFFFFFU;
}
inline void __syncwarp() {
  int nothing = 0;
  machine::warp("syncwarp", nothing, [](auto) {});
}
void __syncthreads();
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = a | static_cast<std::uint64_t>(b) << 32;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << (8 * i);
  }
  return result;
}
template <class To, class From>
To same_bits(From from) {
  To to;
  std::memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}
inline float __int_as_float(int bits) {
  return same_bits<float>(bits);
}
inline int __float_as_int(float value) {
  return same_bits<int>(value);
}
inline float __uint_as_float(unsigned bits) {
  return same_bits<float>(bits);
}
inline float __log2f(float x) {
  return std::log2(x);
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline unsigned atomicAdd(unsigned* address, unsigned value) {
  const unsigned before = *address;
  *address += value;
  return before;
}

namespace rooflash::ptx {

std::uint32_t smem_address(const void* pointer);
void cp_async_16(std::uint32_t, const void*, bool);  // declared alone: no Hopper kernel uses it
template <class T>
void mma_m16n8k16(float (&)[4], const std::uint32_t (&)[4], std::uint32_t, std::uint32_t);

template <int>
void give_up_registers_above() {}
template <int>
void take_registers_up_to() {}

inline int fresh(int value) {
  return value;
}
inline int uniform(int value) {
  machine::warp("uniform", value, [](auto of) {
    for (int lane = 0; lane < 32; ++lane) {
      if (of(lane) != of(0)) machine::fail("a uniform value differs in a warp");
    }
  });
  return value;
}
inline float ex2(float x) {
  return std::exp2(x);
}
inline std::uint32_t pack_e4m3(float a, float b, float c, float d) {
  using machine::to_e4m3;
  return to_e4m3(a) | to_e4m3(b) << 8 | to_e4m3(c) << 16 | to_e4m3(d) << 24;
}

// ---- shared memory

template <class T>
T load(std::uint32_t address) {
  T value;
  std::memcpy(&value, machine::shared(address, sizeof value), sizeof value);
  return value;
}
template <class T>
void store(std::uint32_t address, T value) {
  std::memcpy(machine::shared(address, sizeof value), &value, sizeof value);
}
inline uint4 load_shared_16(std::uint32_t address) {
  return load<uint4>(address);
}
inline int4 load_shared_int4(std::uint32_t address) {
  return load<int4>(address);
}
inline std::uint32_t load_shared_4(std::uint32_t address) {
  return load<std::uint32_t>(address);
}
inline void store_shared_16(std::uint32_t address, int4 value) {
  store(address, value);
}
inline void store_shared_uint4(std::uint32_t address, uint4 value) {
  store(address, value);
}
inline void store_shared_8(std::uint32_t address, uint2 value) {
  store(address, value);
}
inline void store_shared_4(std::uint32_t address, std::uint32_t value) {
  store(address, value);
}

struct MatrixLane {
  std::uint32_t address;
  std::uint32_t* registers;
};
template <int kMatrices, class Move>
void move_matrices(const char* what, std::uint32_t address, std::uint32_t* registers,
                   const Move& move) {
  MatrixLane mine{address, registers};
  machine::warp(what, mine, [&](auto of) {
    for (int matrix = 0; matrix < kMatrices; ++matrix) {
      const auto row = [&](int i) { return machine::shared(of(matrix * 8 + i).address, 16); };
      for (int lane = 0; lane < 32; ++lane) {
        move(row, lane, reinterpret_cast<unsigned char*>(of(lane).registers + matrix));
      }
    }
  });
}
inline void load_row(auto row, int lane, unsigned char* bytes) {
  std::memcpy(bytes, row(lane / 4) + lane % 4 * 4, 4);
}
inline void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  move_matrices<4>("ldmatrix x4", address, r, [](auto... x) { load_row(x...); });
}
inline void ldmatrix_x2(std::uint32_t (&r)[2], std::uint32_t address) {
  move_matrices<2>("ldmatrix x2", address, r, [](auto... x) { load_row(x...); });
}
inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t address) {
  move_matrices<4>("ldmatrix trans", address, r, [](auto row, int lane, unsigned char* bytes) {
    for (int i = 0; i < 2; ++i) {
      std::memcpy(bytes + 2 * i, row(lane % 4 * 2 + i) + lane / 4 * 2, 2);
    }
  });
}
inline void stmatrix_x4(std::uint32_t address, const std::uint32_t (&r)[4]) {
  move_matrices<4>("stmatrix", address, const_cast<std::uint32_t*>(r),
                   [](auto row, int lane, unsigned char* bytes) {
                     std::memcpy(row(lane / 4) + lane % 4 * 4, bytes, 4);
                   });
}
void mma_m16n8k32_e4m3(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1);

// ---- barriers and the copy engine

void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals);
inline void mbarrier_init_fence() {}
void mbarrier_arrive(std::uint32_t barrier);
void mbarrier_arrive_expect(std::uint32_t barrier, std::uint32_t bytes);
void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity);

// ---- clusters

int cluster_rank();
void cluster_sync();
inline void cluster_sync_relaxed() {
  cluster_sync();
}
void mbarrier_arrive_at(std::uint32_t barrier, unsigned rank);
void store_async(std::uint32_t address, std::uint32_t value, std::uint32_t barrier, unsigned rank);

inline std::uint64_t evict_first() {
  return 0;
}
inline std::uint64_t evict_last() {
  return 0;
}
struct Corner {
  int column, head, row, batch;
  static constexpr int kRank = 4;
  std::array<int, 5> places() const { return {column, head, row, batch}; }
};
struct GroupCorner {
  GroupCorner(int of_column, int of_member, int of_group, int of_row, int of_batch)
      : column(of_column), member(of_member), group(of_group), row(of_row), batch(of_batch) {}
  int column, member, group, row, batch;
  static constexpr int kRank = 5;
  std::array<int, 5> places() const { return {column, member, group, row, batch}; }
};
// To the CTAs of the cluster that bits of `ctas` name.
void start_load(std::uint32_t target, const CUtensorMap* map, int rank,
                const std::array<int, 5>& corner, std::uint32_t barrier, unsigned ctas);
void start_store(const CUtensorMap* map, int rank, const std::array<int, 5>& corner,
                 std::uint32_t source);
void check_rank(const CUtensorMap* map, int rank);

inline void tma_prefetch(const CUtensorMap*) {}
template <class AnyCorner = Corner>
void tma_prefetch_l2(const CUtensorMap* map, AnyCorner) {
  check_rank(map, AnyCorner::kRank);
}
template <class AnyCorner = Corner>
void tma_load(std::uint32_t target, const CUtensorMap* map, AnyCorner at, std::uint32_t barrier,
              std::uint64_t) {
  start_load(target, map, AnyCorner::kRank, at.places(), barrier, 1U << cluster_rank());
}
inline void tma_load_multicast(std::uint32_t target, const CUtensorMap* map, Corner at,
                               std::uint32_t barrier, std::uint16_t ctas, std::uint64_t) {
  start_load(target, map, Corner::kRank, at.places(), barrier, ctas);
}
template <class AnyCorner = Corner>
void tma_store(const CUtensorMap* map, AnyCorner at, std::uint32_t source) {
  start_store(map, AnyCorner::kRank, at.places(), source);
}
inline void tma_store_commit() {}
void tma_store_wait_read();

// ---- wgmma

enum class WgmmaType { bf16, fp16, tf32, e4m3 };
struct Product {
  float* d;
  const std::uint32_t* a_registers;  // or nullptr
  std::uint64_t a, b;
  int columns;
  WgmmaType type;
  bool transposed;  // B
  bool accumulate;
};
void wgmma_issue(const Product& product);
void wgmma_commit();
void wgmma_wait_for(int pending);
template <int kPending>
void wgmma_wait() {
  wgmma_wait_for(kPending);
}
inline void wgmma_fence() {}
inline void fence_proxy_async() {}
template <int kBlocks>
void pin(float (&)[kBlocks][4]) {}

template <int kRowBytes = 128>
std::uint64_t wgmma_descriptor(std::uint32_t address) {
  const std::uint64_t layout = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  return (address & 0x3FFFFU) >> 4 | std::uint64_t{8 * kRowBytes >> 4} << 32 | layout << 62;
}
inline std::uint64_t wgmma_descriptor_transposed(std::uint32_t address,
                                                 std::uint32_t columns_bytes) {
  return wgmma_descriptor(address) | std::uint64_t{columns_bytes >> 4} << 16;
}
template <WgmmaType kType, int kN, bool kAccumulate = true>
void wgmma_ss(float (&d)[kN / 8][4], std::uint64_t a, std::uint64_t b) {
  static_assert(kType != WgmmaType::tf32);
  wgmma_issue({&d[0][0], nullptr, a, b, kN, kType, false, kAccumulate});
}
template <WgmmaType kType, int kN, bool kTransposed, bool kAccumulate = true>
void wgmma_rs(float (&d)[kN / 8][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  static_assert(kType != WgmmaType::tf32 && !(kType == WgmmaType::e4m3 && kTransposed));
  wgmma_issue({&d[0][0], a, 0, b, kN, kType, kTransposed, kAccumulate});
}

}  // namespace rooflash::ptx
