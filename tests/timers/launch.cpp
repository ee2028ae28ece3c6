// A family's launch behind a C interface, so that other programs' timers can be held against ours
// on the same kernel.
#include <cstdio>
#include <exception>
#include <string>

#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/device_stream.hpp"
#include "registry.hpp"
#include "verify/gpu_verify.hpp"

namespace {

using namespace rooflash;

struct Case {
  DeviceBuffer q, k, v, o, lse, workspace;
  Prepared prepared;
};

DeviceBuffer buffer(std::int64_t elements, std::int64_t element_bytes) {
  return DeviceBuffer(static_cast<std::size_t>(elements * element_bytes));
}

}  // namespace

// A forward case in bf16 with random inputs on device 0, or null with the reason on stderr.
extern "C" void* rooflash_prepare(const char* name, long batch, long heads, long seqlen,
                                  long headdim, int causal) {
  try {
    Problem p;
    p.dtype = DType::bf16;
    p.batch = batch;
    p.heads_q = p.heads_kv = heads;
    p.seqlen_q = p.seqlen_kv = seqlen;
    p.headdim = p.headdim_v = headdim;
    if (causal != 0) p.mask.kind = MaskKind::causal;
    const Kernel* kernel = find_kernel(name);
    if (kernel == nullptr) throw Error(ExitCode::usage, std::string("no kernel ") + name);
    const DeviceLimits limits = device_limits(0);
    std::string reason;
    const Variant* variant = find_variant(*kernel, p, limits.sm, &reason);
    if (variant == nullptr) throw Error(ExitCode::usage, reason);
    auto* result = new Case;
    result->q = buffer(q_elements(p), 2);
    result->k = buffer(k_elements(p), 2);
    result->v = buffer(v_elements(p), 2);
    result->o = buffer(o_elements(p), 2);
    result->lse = buffer(lse_elements(p), 4);
    if (kernel->workspace_bytes != nullptr) {
      result->workspace = buffer(kernel->workspace_bytes(p), 1);
    }
    DeviceStream stream(0);
    const Tensors tensors{result->q.get(), result->k.get(),          result->v.get(),
                          result->o.get(), result->lse.get<float>(), result->workspace.get()};
    fill_inputs(p, 1, tensors, stream);
    stream.synchronize();
    result->prepared = find_prepare(*kernel, *variant)(p, tensors, limits);
    return result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rooflash_prepare: %s\n", error.what());
    return nullptr;
  }
}

// Queues one launch on `stream`; 0 where it could.
extern "C" int rooflash_launch(void* prepared, void* stream) {
  try {
    static_cast<Case*>(prepared)->prepared.launch(static_cast<CUstream_st*>(stream));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rooflash_launch: %s\n", error.what());
    return 1;
  }
}

extern "C" void rooflash_release(void* prepared) {
  delete static_cast<Case*>(prepared);
}
