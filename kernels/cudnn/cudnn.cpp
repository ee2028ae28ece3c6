// cuDNN's attention forward: one SDPA node, its plan built before anything is timed. What cuDNN
// refuses is `unsupported`, in its own words.
#include <cuda_runtime.h>
#include <cudnn_frontend.h>

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

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kLse };

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
std::shared_ptr<fe::graph::Tensor_attributes> tensor(fe::graph::Graph& graph, Uid uid,
                                                     const char* name, const Problem& p,
                                                     std::int64_t heads, std::int64_t seqlen,
                                                     std::int64_t width) {
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

std::shared_ptr<fe::graph::Graph> make_graph(const Problem& p, int sm) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(p.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(sm);
  const auto q = tensor(*graph, kQ, "q", p, p.heads_q, p.seqlen_q, p.headdim);
  const auto k = tensor(*graph, kK, "k", p, p.heads_kv, p.seqlen_kv, p.headdim);
  const auto v = tensor(*graph, kV, "v", p, p.heads_kv, p.seqlen_kv, p.headdim_v);
  fe::graph::SDPA_attributes sdpa;
  sdpa.set_name("sdpa").set_generate_stats(true).set_attn_scale(
      static_cast<float>(softmax_scale(p)));
  set_mask(sdpa, p);
  const auto [o, lse] = graph->sdpa(q, k, v, sdpa);
  o->set_output(true)
      .set_uid(kO)
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
    throw Error(ExitCode::incomplete,
                "no memory for cuDNN's workspace of " + std::to_string(bytes) + " bytes");
  }
  return {memory, [](void* p) { (void)cudaFree(p); }};
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
  Prepared prepared;
  prepared.launch = [on, graph, workspace, pointers](CUstream_st* stream) mutable {
    check(fe::detail::set_stream(on, stream), "setting the stream");
    const fe::error_t answer = graph->execute(on, pointers, workspace.get());
    if (answer.is_bad()) throw Error(ExitCode::incomplete, words(answer.err_msg));
  };
  prepared.resources.plan_ms = took.count();
  prepared.workspace_bytes = workspace_bytes;
  return prepared;
}

constexpr PrepareFn kPrepareTable[] = {prepare, prepare};
static_assert(std::size(kPrepareTable) == std::size(kVariants));

}  // namespace

extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::cudnn
