// cuDNN's attention forward: one SDPA node, its plan built before anything is timed. What cuDNN
// refuses is `unsupported`, in its own words.
#include <cuda_runtime.h>
#include <cudnn_frontend.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/error.hpp"
#include "core/units.hpp"
#include "library.hpp"
#include "variants.hpp"

// cudnn-frontend calls cuDNN through this handle (NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING).
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace rooflash::cudnn {
namespace {

namespace fe = cudnn_frontend;
using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kLse, kScaleQ, kScaleK, kScalars };

// What cuDNN's FP8 node asks for besides the scales of Q and K, one after another in device memory
// and from kScalars on. O is left in units of V's scale (core/fp8.hpp), so that this is no matter
// to the node. Its weights are at most 1 and become at most 2^8, which e4m3 holds.
constexpr float kWeightScale = 256;
constexpr float kScalarValues[] = {
    1,                 // scale of V
    1 / kWeightScale,  // weights back
    kWeightScale,      // and there
    1,                 // scale of O
    0,                 // largest weight, written
    0,                 // largest of O, written
};
constexpr std::size_t kScalarBytes = 16;  // from one to the next, for their alignment

// What cuDNN said, on one line.
std::string words(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return "cuDNN " + chosen_library().version + ": " + printable(text, 400);
}

// cudnn-frontend has no code of its own for faults of the driver, of memory or of cuDNN itself: its
// message ends with cuDNN's.
bool is_fault(const fe::error_t& answer) {
  if (answer.code == fe::error_code_t::CUDA_API_FAILED) return true;
  for (const char* status : {"CUDNN_STATUS_EXECUTION_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
                             "CUDNN_STATUS_INTERNAL_ERROR"}) {
    if (answer.err_msg.find(status) != std::string::npos) return true;
  }
  return false;
}

void check(const fe::error_t& answer) {
  if (answer.is_good()) return;
  if (is_fault(answer)) throw Error(ExitCode::incomplete, words(answer.err_msg));
  throw UnsupportedError(words(answer.err_msg));
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(ExitCode::incomplete,
              words(std::string(what) + ": " + fe::detail::get_error_string(status)));
}

// Of the device that is current, for the life of the process: a worker has one device.
cudnnHandle_t handle() {
  static const cudnnHandle_t handle = [] {
    const VendorLibrary& library = chosen_library();
    if (!library.missing.empty()) throw UnsupportedError(library.missing);
    // What cudnn-frontend needs of the CUDA runtime it opens by itself, the oldest it finds.
    const std::string runtime = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
    fe::cudnn_dlhandle = open_library(library.folder);
    cudnnHandle_t created = nullptr;
    check(fe::detail::create_handle(&created), "creating a handle");
    return created;
  }();
  return handle;
}

// One tensor [batch, heads, seqlen, width] as it lies in memory, heads inside.
TensorPointer tensor(fe::graph::Graph& graph, Uid uid, const char* name, const Problem& p,
                     std::int64_t heads, std::int64_t seqlen, std::int64_t width) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(uid)
                          .set_dim({p.batch, heads, seqlen, width})
                          .set_stride({seqlen * heads * width, width, heads * width, 1}));
}

void set_mask(fe::graph::SDPA_attributes& sdpa, const Problem& p) {
  if (p.mask.kind == MaskKind::none) return;
  // Of square problems both alignments are the same mask.
  const bool bottom_right = p.mask.align == Align::bottom_right && p.seqlen_q != p.seqlen_kv;
  sdpa.set_diagonal_alignment(bottom_right ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                           : fe::DiagonalAlignment_t::TOP_LEFT);
  const bool causal = p.mask.kind == MaskKind::causal;
  const std::int64_t left = causal ? kUnbounded : p.mask.left;
  const std::int64_t right = causal ? 0 : p.mask.right;
  // A bound that reaches past every key is none. cuDNN's left bound counts the query's own key.
  const std::int64_t reach = p.seqlen_q + p.seqlen_kv;
  if (left >= 0 && left < reach) sdpa.set_diagonal_band_left_bound(static_cast<int>(left + 1));
  if (right >= 0 && right < reach) sdpa.set_diagonal_band_right_bound(static_cast<int>(right));
}

fe::DataType_t data_type(DType dtype) {
  if (dtype == DType::e4m3) return fe::DataType_t::FP8_E4M3;
  return dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
}

void make_scalar(fe::graph::Tensor_attributes& tensor, std::int64_t uid) {
  tensor.set_uid(uid)
      .set_dim({1, 1, 1, 1})
      .set_stride({1, 1, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

// O and LSE.
std::array<TensorPointer, 2> add_sdpa(fe::graph::Graph& graph, const Problem& p,
                                      const TensorPointer& q, const TensorPointer& k,
                                      const TensorPointer& v) {
  fe::graph::SDPA_attributes sdpa;
  sdpa.set_name("sdpa").set_generate_stats(true).set_attn_scale(
      static_cast<float>(softmax_scale(p)));
  set_mask(sdpa, p);
  if (p.dtype != DType::e4m3) return graph.sdpa(q, k, v, sdpa);
  const auto scalar = [&](const char* name, std::int64_t uid) {
    fe::graph::Tensor_attributes tensor;
    make_scalar(tensor.set_name(name), uid);
    return graph.tensor(tensor);
  };
  const auto [o, lse, largest_weight, largest_o] =
      graph.sdpa_fp8(q, k, v, scalar("scale_q", kScaleQ), scalar("scale_k", kScaleK),
                     scalar("scale_v", kScalars), scalar("weights_back", kScalars + 1),
                     scalar("weights", kScalars + 2), scalar("scale_o", kScalars + 3), sdpa);
  make_scalar(largest_weight->set_output(true), kScalars + 4);
  make_scalar(largest_o->set_output(true), kScalars + 5);
  return {o, lse};
}

std::shared_ptr<fe::graph::Graph> make_graph(const Problem& p, int sm) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(data_type(p.dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(sm);
  const auto q = tensor(*graph, kQ, "q", p, p.heads_q, p.seqlen_q, p.headdim);
  const auto k = tensor(*graph, kK, "k", p, p.heads_kv, p.seqlen_kv, p.headdim);
  const auto v = tensor(*graph, kV, "v", p, p.heads_kv, p.seqlen_kv, p.headdim_v);
  const auto [o, lse] = add_sdpa(*graph, p, q, k, v);
  o->set_output(true)
      .set_uid(kO)
      .set_data_type(data_type(output_dtype(p)))
      .set_dim({p.batch, p.heads_q, p.seqlen_q, p.headdim_v})
      .set_stride({p.seqlen_q * p.heads_q * p.headdim_v, p.headdim_v, p.heads_q * p.headdim_v, 1});
  lse->set_output(true)
      .set_uid(kLse)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim({p.batch, p.heads_q, p.seqlen_q, 1})
      .set_stride({p.heads_q * p.seqlen_q, p.seqlen_q, 1, 1});
  return graph;
}

std::shared_ptr<fe::graph::Graph> make_plan(cudnnHandle_t on, const Problem& p, int sm) {
  try {
    auto graph = make_graph(p, sm);
    check(graph->validate());
    check(graph->build_operation_graph(on));
    check(graph->create_execution_plans({fe::HeurMode_t::A}));
    check(graph->check_support());
    check(graph->build_plans());
    return graph;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // also for a function that the library lacks
    throw UnsupportedError(words(error.what()));
  }
}

std::shared_ptr<void> device_memory(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    (void)cudaGetLastError();
    throw Error(ExitCode::incomplete, "no memory for " + std::to_string(bytes) +
                                          " bytes of cuDNN's workspace or scalars");
  }
  return {memory, [](void* p) { (void)cudaFree(p); }};
}

// kScalarValues on the device.
std::shared_ptr<void> device_scalars() {
  constexpr std::size_t kCount = std::size(kScalarValues);
  const auto memory = device_memory(kCount * kScalarBytes);
  if (cudaMemcpy2D(memory.get(), kScalarBytes, kScalarValues, sizeof(float), sizeof(float), kCount,
                   cudaMemcpyHostToDevice) != cudaSuccess) {
    (void)cudaGetLastError();
    throw Error(ExitCode::incomplete, "cuDNN's scalars could not be copied to the device");
  }
  return memory;
}

Prepared prepare(const Problem& p, const Tensors& t, const DeviceLimits& device) {
  cudnnHandle_t const on = handle();  // opening the library is no part of the plan's time
  const auto start = std::chrono::steady_clock::now();
  const auto graph = make_plan(on, p, device.sm);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;

  std::int64_t workspace_bytes = 0;
  check(graph->get_workspace_size(workspace_bytes));
  const auto workspace = device_memory(workspace_bytes);
  std::unordered_map<std::int64_t, void*> pointers = {{kQ, const_cast<void*>(t.q)},
                                                      {kK, const_cast<void*>(t.k)},
                                                      {kV, const_cast<void*>(t.v)},
                                                      {kO, t.o},
                                                      {kLse, t.lse}};
  std::shared_ptr<void> scalars;
  if (p.dtype == DType::e4m3) {
    scalars = device_scalars();
    // One scale a tensor: the first is all.
    pointers[kScaleQ] = const_cast<float*>(t.scales.q);
    pointers[kScaleK] = const_cast<float*>(t.scales.k);
    for (std::size_t i = 0; i < std::size(kScalarValues); ++i) {
      pointers[kScalars + static_cast<std::int64_t>(i)] =
          static_cast<char*>(scalars.get()) + i * kScalarBytes;
    }
  }
  Prepared prepared;
  prepared.launch = [on, graph, workspace, scalars, pointers](CUstream_st* stream) mutable {
    check(fe::detail::set_stream(on, stream), "setting the stream");
    const fe::error_t answer = graph->execute(on, pointers, workspace.get());
    if (answer.is_bad()) throw Error(ExitCode::incomplete, words(answer.err_msg));
  };
  prepared.resources.plan_ms = took.count();
  prepared.workspace_bytes =
      workspace_bytes +
      (scalars != nullptr ? static_cast<std::int64_t>(std::size(kScalarValues) * kScalarBytes) : 0);
  return prepared;
}

constexpr PrepareFn kPrepareTable[] = {prepare, prepare, prepare};
static_assert(std::size(kPrepareTable) == std::size(kVariants));

}  // namespace

extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::cudnn
