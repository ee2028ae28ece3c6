// What device code of the fp8 kernels asks of the machine, on the CPU: the intrinsics, and the
// functions of common/ptx/ under their names, whose headers this one stands in for. See
// machine.cpp.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#undef __global__
#undef __shared__
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

// Shared memory begins at an address that is no multiple of much.
constexpr std::uint32_t kFirstAddress = 0x410;
unsigned char* shared(std::uint32_t address);

[[noreturn]] void fail(const char* format, ...);

// The `threads` threads of the caller's warp or warpgroup meet; the last to come runs `work` on
// what all have brought.
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
std::uint32_t to_e4m3(float value);

}  // namespace machine

using std::max;
using std::min;

inline float __shfl_xor_sync(unsigned, float value, int mask) {
  struct Lane {
    float in, out;
  } mine{value, 0};
  machine::warp("shfl", mine, [&](auto of) {
    for (int lane = 0; lane < 32; ++lane) of(lane).out = of(lane ^ mask).in;
  });
  return mine.out;
}
inline int __any_sync(unsigned, int predicate) {
  struct Lane {
    int in, out;
  } mine{predicate, 0};
  machine::warp("any", mine, [](auto of) {
    int any = 0;
    for (int lane = 0; lane < 32; ++lane) any |= of(lane).in != 0;
    for (int lane = 0; lane < 32; ++lane) of(lane).out = any;
  });
  return mine.out;
}
inline int __all_sync(unsigned mask, int predicate) {
  return !__any_sync(mask, !predicate);
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
    result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
  }
  return result;
}
template <class To, class From>
To same_bits(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __int_as_float(int bits) {
  return same_bits<float>(bits);
}
inline int __float_as_int(float value) {
  return same_bits<int>(value);
}
inline float __log2f(float x) {
  return std::log2(x);
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
void cp_async_16(std::uint32_t, const void*, bool);  // declared alone, as what fp8 does not use
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
  if (address % sizeof(T) != 0) machine::fail("a load of %zu bytes from %x", sizeof(T), address);
  T value;
  std::memcpy(&value, machine::shared(address), sizeof value);
  return value;
}
template <class T>
void store(std::uint32_t address, T value) {
  if (address % sizeof(T) != 0) machine::fail("a store of %zu bytes to %x", sizeof(T), address);
  std::memcpy(machine::shared(address), &value, sizeof value);
}
inline int4 load_shared_int4(std::uint32_t address) {
  return load<int4>(address);
}
inline float4 load_shared_float4(std::uint32_t address) {
  return load<float4>(address);
}
inline std::uint32_t load_shared_4(std::uint32_t address) {
  return load<std::uint32_t>(address);
}
inline void store_shared_16(std::uint32_t address, int4 value) {
  store(address, value);
}
inline void store_shared_float4(std::uint32_t address, float4 value) {
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
      const auto row = [&](int i) {
        const std::uint32_t at = of(matrix * 8 + i).address;
        if (at % 16 != 0) machine::fail("%s of a row at %x", what, at);
        return machine::shared(at);
      };
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

inline std::uint64_t evict_first() {
  return 0;
}
inline std::uint64_t evict_last() {
  return 0;
}
struct Corner {
  int column, head, row, batch;
};
struct GroupCorner {  // declared alone, as what fp8 does not use
  int column, member, group, row, batch;
};
inline void tma_prefetch(const CUtensorMap*) {}
void tma_load(std::uint32_t target, const CUtensorMap* map, Corner at, std::uint32_t barrier,
              std::uint64_t policy);
void tma_store(const CUtensorMap* map, Corner at, std::uint32_t source);
inline void tma_store_commit() {}
void tma_store_wait_read();

// ---- wgmma

enum class WgmmaType { bf16, fp16, tf32, e4m3 };
struct Product {
  float* d;
  const std::uint32_t* a_registers;  // or nullptr
  std::uint64_t a, b;
  int columns;
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

template <int kRowBytes>
std::uint64_t wgmma_descriptor(std::uint32_t address) {
  const std::uint64_t layout = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  return (address & 0x3FFFFU) >> 4 | std::uint64_t{8 * kRowBytes >> 4} << 32 | layout << 62;
}
template <WgmmaType kType, int kN, bool kAccumulate = true>
void wgmma_ss(float (&d)[kN / 8][4], std::uint64_t a, std::uint64_t b) {
  static_assert(kType == WgmmaType::e4m3);
  wgmma_issue({&d[0][0], nullptr, a, b, kN, kAccumulate});
}
template <WgmmaType kType, int kN, bool kTransposed, bool kAccumulate = true>
void wgmma_rs(float (&d)[kN / 8][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  static_assert(kType == WgmmaType::e4m3 && !kTransposed);
  wgmma_issue({&d[0][0], a, 0, b, kN, kAccumulate});
}

}  // namespace rooflash::ptx
