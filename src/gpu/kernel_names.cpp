#include "gpu/kernel_names.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

#include "gpu/driver.hpp"

namespace rooflash {
namespace {

// "void rooflash::naive::softmax_kernel<float>(float*)" without its return type and parameters.
std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  if (status != 0) return symbol;
  std::string name = text.get();
  // The parameter list is the last parenthesis at depth zero.
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      name.resize(i);
      break;
    }
  }
  constexpr std::string_view kVoid = "void ";
  if (name.starts_with(kVoid)) name.erase(0, kVoid.size());
  return name;
}

using GetParams = CUresult(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
using FuncGetName = CUresult(const char**, CUfunction);
using KernelGetName = CUresult(const char**, CUkernel);

// The driver's view of a node: the runtime's knows only kernels that it registered itself.
std::string kernel_name(cudaGraphNode_t node) {
  static auto* const get_params = driver_entry<GetParams>("cuGraphKernelNodeGetParams", 12000);
  static auto* const func_name = driver_entry<FuncGetName>("cuFuncGetName", 12030);
  static auto* const kern_name = driver_entry<KernelGetName>("cuKernelGetName", 12030);
  CUDA_KERNEL_NODE_PARAMS params{};
  const char* name = nullptr;
  if (get_params == nullptr || get_params(node, &params) != CUDA_SUCCESS) return {};
  if (params.func != nullptr && func_name != nullptr) {
    if (func_name(&name, params.func) != CUDA_SUCCESS) name = nullptr;
  }
  if (name == nullptr && params.kern != nullptr && kern_name != nullptr) {
    if (kern_name(&name, params.kern) != CUDA_SUCCESS) name = nullptr;
  }
  return name != nullptr ? demangled(name) : std::string();
}

}  // namespace

LaunchedKernels launched_kernels(const Launch& launch, cudaStream_t stream) {
  LaunchedKernels result;
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess) {
    result.missing = std::string("no capture: ") + cudaGetErrorString(cudaGetLastError());
    return result;
  }
  try {
    launch(stream);
  } catch (const std::exception& error) {
    result.missing = error.what();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream, &graph);
  if (status != cudaSuccess || graph == nullptr) {
    (void)cudaGetLastError();
    if (result.missing.empty()) {
      result.missing = std::string("the launch cannot be captured: ") + cudaGetErrorString(status);
    }
    return result;
  }
  std::size_t count = 0;
  (void)cudaGraphGetNodes(graph, nullptr, &count);
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) (void)cudaGraphGetNodes(graph, nodes.data(), &count);
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) continue;
    if (type == cudaGraphNodeTypeMemset) result.names.emplace_back("memset");
    if (type == cudaGraphNodeTypeMemcpy) result.names.emplace_back("memcpy");
    if (type != cudaGraphNodeTypeKernel) continue;  // events and allocations do no work
    std::string name = kernel_name(node);
    if (name.empty()) {
      result.missing = "this driver does not tell the names of captured kernels";
      result.names.clear();
      break;
    }
    result.names.push_back(std::move(name));
  }
  (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
  return result;
}

}  // namespace rooflash
