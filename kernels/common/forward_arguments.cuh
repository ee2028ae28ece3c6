// What a forward kernel is given, and the addresses of one head in it.
#pragma once

#include <cstdint>
#include <numbers>

#include "common/mask.hpp"
#include "kernel.hpp"

namespace rooflash {

struct ForwardArguments {
  Tensors tensors;
  int heads_q, heads_kv, seqlen_q, seqlen_kv, headdim, headdim_v;
  Band band;
  float scale_log2;  // softmax scale for exp2
};

inline ForwardArguments forward_arguments(const Problem& p, const Tensors& tensors) {
  return {.tensors = tensors,
          .heads_q = static_cast<int>(p.heads_q),
          .heads_kv = static_cast<int>(p.heads_kv),
          .seqlen_q = static_cast<int>(p.seqlen_q),
          .seqlen_kv = static_cast<int>(p.seqlen_kv),
          .headdim = static_cast<int>(p.headdim),
          .headdim_v = static_cast<int>(p.headdim_v),
          .band = band_of(p),
          .scale_log2 = static_cast<float>(softmax_scale(p) * std::numbers::log2e)};
}

// Row 0 of one query head of one batch item, of the KV head it reads, and the distances of two rows
// in elements.
template <class T>
struct Head {
  const T* q;
  const T* k;
  const T* v;
  T* o;
  float* lse;
  std::int64_t q_stride, k_stride, v_stride, o_stride;
};

template <class T>
__device__ __forceinline__ Head<T> head_of(const ForwardArguments& args, std::int64_t batch,
                                           std::int64_t head) {
  const std::int64_t head_kv = head / (args.heads_q / args.heads_kv);
  Head<T> result;
  result.q_stride = static_cast<std::int64_t>(args.heads_q) * args.headdim;
  result.k_stride = static_cast<std::int64_t>(args.heads_kv) * args.headdim;
  result.v_stride = static_cast<std::int64_t>(args.heads_kv) * args.headdim_v;
  result.o_stride = static_cast<std::int64_t>(args.heads_q) * args.headdim_v;
  result.q = static_cast<const T*>(args.tensors.q) + batch * args.seqlen_q * result.q_stride +
             head * args.headdim;
  result.k = static_cast<const T*>(args.tensors.k) + batch * args.seqlen_kv * result.k_stride +
             head_kv * args.headdim;
  result.v = static_cast<const T*>(args.tensors.v) + batch * args.seqlen_kv * result.v_stride +
             head_kv * args.headdim_v;
  result.o = static_cast<T*>(args.tensors.o) + batch * args.seqlen_q * result.o_stride +
             head * args.headdim_v;
  result.lse = args.tensors.lse + (batch * args.heads_q + head) * args.seqlen_q;
  return result;
}

// `index` counts query heads over the whole batch.
template <class T>
__device__ __forceinline__ Head<T> head_of(const ForwardArguments& args, int index) {
  Head<T> result = head_of<T>(args, index / args.heads_q, index % args.heads_q);
  // The same address, for less work.
  result.lse = args.tensors.lse + static_cast<std::int64_t>(index) * args.seqlen_q;
  return result;
}

}  // namespace rooflash
