// wgmma: matrix products of a warpgroup (128 threads) with fp32 accumulators in registers and B, or
// A and B, in shared memory; asynchronous (sm_90a). PTX ISA, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions".
//
// D is 64 rows of kN columns. Thread t of the warpgroup holds row 16 (t / 32) + (t % 32) / 4 and
// the one 8 below it: d[n][2 r + c] is column 8 n + 2 (t % 4) + c of row r of the two, as
// mma.sync's accumulators of a warp. So two neighbouring blocks of D are, rounded, the A operand of
// 16 columns of a next product.
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// Orders the warpgroup's register and shared-memory accesses before its next wgmma.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

// Waits until at most `kPending` committed groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

// Keeps the compiler from moving what uses the registers across this point: it takes a wgmma's
// results for ready where the instruction stands, not where they were waited for.
template <int kBlocks>
__device__ __forceinline__ void pin(float (&d)[kBlocks][4]) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
    asm volatile("" : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])::"memory");
  }
}

// Orders ordinary stores to shared memory before the asynchronous units' reads.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// Descriptors of tiles whose rows are 128, 64 or 32 bytes, with the swizzle of that width: groups
// of eight rows lie one after another. Tiles begin at multiples of eight rows.
//
// K-major, the product runs along the row: a step of 32 bytes along it is added to `address`.
template <int kRowBytes = 128>
__device__ __forceinline__ std::uint64_t wgmma_descriptor(std::uint32_t address) {
  static_assert(kRowBytes == 128 || kRowBytes == 64 || kRowBytes == 32);
  constexpr std::uint64_t kGroupStride = 8 * kRowBytes >> 4;
  constexpr std::uint64_t kSwizzle = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  return static_cast<std::uint64_t>((address & 0x3FFFFU) >> 4) | kGroupStride << 32 |
         kSwizzle << 62;
}
// MN-major, the product runs across rows: the next 64 columns lie `columns_bytes` further on.
__device__ __forceinline__ std::uint64_t wgmma_descriptor_transposed(std::uint32_t address,
                                                                     std::uint32_t columns_bytes) {
  return wgmma_descriptor(address) | static_cast<std::uint64_t>(columns_bytes >> 4) << 16;
}

// The inputs that wgmma multiplies; 32 bytes of each row of A and B in one instruction.
enum class WgmmaType { bf16, fp16, tf32, e4m3 };

// The accumulators as operands, eight at a time.
#define ROOFLASH_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define ROOFLASH_R1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define ROOFLASH_R2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define ROOFLASH_R3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define ROOFLASH_R4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define ROOFLASH_R5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define ROOFLASH_R6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define ROOFLASH_R7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define ROOFLASH_R8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define ROOFLASH_R9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define ROOFLASH_R10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define ROOFLASH_R11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define ROOFLASH_R12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define ROOFLASH_R13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define ROOFLASH_R14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define ROOFLASH_R15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define ROOFLASH_R32 ROOFLASH_R0 ", " ROOFLASH_R1 ", " ROOFLASH_R2 ", " ROOFLASH_R3
#define ROOFLASH_R48 ROOFLASH_R32 ", " ROOFLASH_R4 ", " ROOFLASH_R5
#define ROOFLASH_R64 ROOFLASH_R48 ", " ROOFLASH_R6 ", " ROOFLASH_R7
#define ROOFLASH_R96 \
  ROOFLASH_R64 ", " ROOFLASH_R8 ", " ROOFLASH_R9 ", " ROOFLASH_R10 ", " ROOFLASH_R11
#define ROOFLASH_R128 \
  ROOFLASH_R96 ", " ROOFLASH_R12 ", " ROOFLASH_R13 ", " ROOFLASH_R14 ", " ROOFLASH_R15
#define ROOFLASH_D(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define ROOFLASH_D4(n) ROOFLASH_D(n), ROOFLASH_D((n) + 1), ROOFLASH_D((n) + 2), ROOFLASH_D((n) + 3)
#define ROOFLASH_D32 ROOFLASH_D4(0), ROOFLASH_D4(4)
#define ROOFLASH_D48 ROOFLASH_D32, ROOFLASH_D4(8)
#define ROOFLASH_D64 ROOFLASH_D48, ROOFLASH_D4(12)
#define ROOFLASH_D96 ROOFLASH_D64, ROOFLASH_D4(16), ROOFLASH_D4(20)
#define ROOFLASH_D128 ROOFLASH_D96, ROOFLASH_D4(24), ROOFLASH_D4(28)

// One instruction. `at`, `at1` ... are the numbers of the operands behind the accumulators; the
// last says whether D is added to.
#define ROOFLASH_WGMMA_SS(shape, flags, regs, at, at1, at2)       \
  asm volatile(                                                   \
      "{.reg .pred accumulate;\n"                                 \
      "setp.ne.b32 accumulate, %" #at2                            \
      ", 0;\n"                                                    \
      "wgmma.mma_async.sync.aligned." shape " {" ROOFLASH_R##regs \
      "}, %" #at ", %" #at1 ", accumulate, 1, 1" flags ";}\n"     \
      : ROOFLASH_D##regs                                          \
      : "l"(a), "l"(b), "n"(kAccumulate))
#define ROOFLASH_WGMMA_RS(shape, flags, regs, a0, a1, a2, a3, at, at1)                       \
  asm volatile(                                                                              \
      "{.reg .pred accumulate;\n"                                                            \
      "setp.ne.b32 accumulate, %" #at1                                                       \
      ", 0;\n"                                                                               \
      "wgmma.mma_async.sync.aligned." shape " {" ROOFLASH_R##regs                            \
      "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #at ", accumulate, 1, 1" flags ";}\n" \
      : ROOFLASH_D##regs                                                                     \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kAccumulate))
#define ROOFLASH_WGMMA_SS_OF(n, regs, at, at1, at2)                                 \
  if constexpr (kType == WgmmaType::bf16) {                                         \
    ROOFLASH_WGMMA_SS("m64n" #n "k16.f32.bf16.bf16", ", 0, 0", regs, at, at1, at2); \
  } else if constexpr (kType == WgmmaType::fp16) {                                  \
    ROOFLASH_WGMMA_SS("m64n" #n "k16.f32.f16.f16", ", 0, 0", regs, at, at1, at2);   \
  } else if constexpr (kType == WgmmaType::tf32) {                                  \
    ROOFLASH_WGMMA_SS("m64n" #n "k8.f32.tf32.tf32", "", regs, at, at1, at2);        \
  } else {                                                                          \
    ROOFLASH_WGMMA_SS("m64n" #n "k32.f32.e4m3.e4m3", "", regs, at, at1, at2);       \
  }
#define ROOFLASH_WGMMA_RS_OF(n, regs, a0, a1, a2, a3, at, at1)                              \
  if constexpr (kType == WgmmaType::bf16 && kTransposed) {                                  \
    ROOFLASH_WGMMA_RS("m64n" #n "k16.f32.bf16.bf16", ", 1", regs, a0, a1, a2, a3, at, at1); \
  } else if constexpr (kType == WgmmaType::bf16) {                                          \
    ROOFLASH_WGMMA_RS("m64n" #n "k16.f32.bf16.bf16", ", 0", regs, a0, a1, a2, a3, at, at1); \
  } else if constexpr (kType == WgmmaType::e4m3) {                                          \
    static_assert(!kTransposed);                                                            \
    ROOFLASH_WGMMA_RS("m64n" #n "k32.f32.e4m3.e4m3", "", regs, a0, a1, a2, a3, at, at1);    \
  } else if constexpr (kTransposed) {                                                       \
    static_assert(kType == WgmmaType::fp16);                                                \
    ROOFLASH_WGMMA_RS("m64n" #n "k16.f32.f16.f16", ", 1", regs, a0, a1, a2, a3, at, at1);   \
  } else {                                                                                  \
    static_assert(kType == WgmmaType::fp16);                                                \
    ROOFLASH_WGMMA_RS("m64n" #n "k16.f32.f16.f16", ", 0", regs, a0, a1, a2, a3, at, at1);   \
  }

// D = A B, or D += A B with kAccumulate: A and B both K-major in shared memory by descriptor.
template <WgmmaType kType, int kN, bool kAccumulate = true>
__device__ __forceinline__ void wgmma_ss(float (&d)[kN / 8][4], std::uint64_t a, std::uint64_t b) {
  if constexpr (kN == 64) {
    ROOFLASH_WGMMA_SS_OF(64, 32, 32, 33, 34)
  } else if constexpr (kN == 96) {
    ROOFLASH_WGMMA_SS_OF(96, 48, 48, 49, 50)
  } else if constexpr (kN == 128) {
    ROOFLASH_WGMMA_SS_OF(128, 64, 64, 65, 66)
  } else if constexpr (kN == 256) {
    ROOFLASH_WGMMA_SS_OF(256, 128, 128, 129, 130)
  } else {
    static_assert(kN == 0, "no such shape here");
  }
}

// D = A B, or D += A B: 32 bytes of each row of A in registers, B in shared memory by descriptor,
// K-major or, of 16 bits, transposed, that is MN-major. Of e4m3 a[0] is row (t % 32) / 4 of the
// warp's, columns 4 (t % 4) to 4 (t % 4) + 3, a[1] the row 8 below, a[2] and a[3] the same rows 16
// columns on.
template <WgmmaType kType, int kN, bool kTransposed, bool kAccumulate = true>
__device__ __forceinline__ void wgmma_rs(float (&d)[kN / 8][4], const std::uint32_t (&a)[4],
                                         std::uint64_t b) {
  if constexpr (kN == 64) {
    ROOFLASH_WGMMA_RS_OF(64, 32, 32, 33, 34, 35, 36, 37)
  } else if constexpr (kN == 96) {
    ROOFLASH_WGMMA_RS_OF(96, 48, 48, 49, 50, 51, 52, 53)
  } else if constexpr (kN == 128) {
    ROOFLASH_WGMMA_RS_OF(128, 64, 64, 65, 66, 67, 68, 69)
  } else if constexpr (kN == 192) {
    ROOFLASH_WGMMA_RS_OF(192, 96, 96, 97, 98, 99, 100, 101)
  } else if constexpr (kN == 256) {
    ROOFLASH_WGMMA_RS_OF(256, 128, 128, 129, 130, 131, 132, 133)
  } else {
    static_assert(kN == 0, "no such shape here");
  }
}

#undef ROOFLASH_R0
#undef ROOFLASH_R1
#undef ROOFLASH_R2
#undef ROOFLASH_R3
#undef ROOFLASH_R4
#undef ROOFLASH_R5
#undef ROOFLASH_R6
#undef ROOFLASH_R7
#undef ROOFLASH_R8
#undef ROOFLASH_R9
#undef ROOFLASH_R10
#undef ROOFLASH_R11
#undef ROOFLASH_R12
#undef ROOFLASH_R13
#undef ROOFLASH_R14
#undef ROOFLASH_R15
#undef ROOFLASH_R32
#undef ROOFLASH_R48
#undef ROOFLASH_R64
#undef ROOFLASH_R96
#undef ROOFLASH_R128
#undef ROOFLASH_D
#undef ROOFLASH_D4
#undef ROOFLASH_D32
#undef ROOFLASH_D48
#undef ROOFLASH_D64
#undef ROOFLASH_D96
#undef ROOFLASH_D128
#undef ROOFLASH_WGMMA_SS
#undef ROOFLASH_WGMMA_RS
#undef ROOFLASH_WGMMA_SS_OF
#undef ROOFLASH_WGMMA_RS_OF

}  // namespace rooflash::ptx
