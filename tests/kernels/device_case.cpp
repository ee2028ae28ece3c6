#include "device_case.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstring>

#include "core/fp8.hpp"
#include "harness.hpp"
#include "registry.hpp"
#include "verify/gpu_verify.hpp"
#include "verify/quantize.hpp"

namespace rooflash {
namespace {

constexpr int kGuardByte = 0xA5;

// On the stream of the tests: a plain cudaMemcpy is not ordered with it.
void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return;
  ROOFLASH_CUDA(cudaMemcpyAsync(to, from, bytes, kind, gpu().stream));
  gpu().stream.synchronize();
}

std::vector<std::byte> download(const void* from, std::size_t bytes) {
  std::vector<std::byte> host(bytes);
  copy(host.data(), from, bytes, cudaMemcpyDeviceToHost);
  return host;
}

void upload(void* to, const std::vector<std::byte>& bytes) {
  copy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
}

template <class T>
std::vector<std::byte> encode_as(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T element(values[i]);
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
  }
  return bytes;
}

template <class T>
std::vector<float> decode_as(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, &bytes[i * sizeof(T)], sizeof(T));
    values[i] = static_cast<float>(element);
  }
  return values;
}

std::int64_t o_bytes(const Problem& p) {
  return o_elements(p) * size_bytes(output_dtype(p));
}

std::int64_t workspace_bytes(const Kernel* kernel, const Problem& p) {
  return kernel != nullptr && kernel->workspace_bytes != nullptr ? kernel->workspace_bytes(p) : 0;
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::int64_t bytes)
    : buffer_(static_cast<std::size_t>(bytes) + 2 * kGuardBytes) {
  ROOFLASH_CUDA(cudaMemsetAsync(buffer_.get(), kGuardByte, buffer_.bytes(), gpu().stream));
}

void GuardedBuffer::fill(int byte) const {
  ROOFLASH_CUDA(cudaMemsetAsync(data(), byte, buffer_.bytes() - 2 * kGuardBytes, gpu().stream));
}

std::vector<std::byte> GuardedBuffer::download() const {
  return rooflash::download(data(), buffer_.bytes() - 2 * kGuardBytes);
}

bool GuardedBuffer::guards_intact() const {
  const std::byte* const begin = buffer_.get<std::byte>();
  for (const std::byte* zone : {begin, begin + buffer_.bytes() - kGuardBytes}) {
    const std::vector<std::byte> bytes = rooflash::download(zone, kGuardBytes);
    if (std::count(bytes.begin(), bytes.end(), std::byte{kGuardByte}) !=
        static_cast<std::ptrdiff_t>(kGuardBytes)) {
      return false;
    }
  }
  return true;
}

DeviceCase::DeviceCase(const Kernel* kernel, const Problem& p, std::optional<int> sm_count)
    : problem_(p),
      inputs_{DeviceBuffer(static_cast<std::size_t>(q_elements(p) * size_bytes(p.dtype))),
              DeviceBuffer(static_cast<std::size_t>(k_elements(p) * size_bytes(p.dtype))),
              DeviceBuffer(static_cast<std::size_t>(v_elements(p) * size_bytes(p.dtype)))},
      scales_(static_cast<std::size_t>(scale_elements(p) * 4)),
      o_(o_bytes(p)),
      lse_(lse_elements(p) * 4),
      workspace_(workspace_bytes(kernel, p)),
      tensors_{inputs_[0].get(),
               inputs_[1].get(),
               inputs_[2].get(),
               o_.data(),
               static_cast<float*>(lse_.data()),
               workspace_.data(),
               place_scales(p, scales_.get<float>())} {
  if (kernel == nullptr) return;
  std::string reason;
  const Variant* const variant = find_variant(*kernel, p, gpu().limits.sm, &reason);
  if (variant == nullptr) throw UsageError(reason);
  DeviceLimits limits = gpu().limits;
  limits.sm_count = sm_count.value_or(limits.sm_count);
  prepared_ = find_prepare(*kernel, *variant)(p, tensors_, limits);
}

void DeviceCase::upload_inputs(const HostCase& host) {
  snapshot_ = {encode(problem_.dtype, host.q), encode(problem_.dtype, host.k),
               encode(problem_.dtype, host.v), encode(DType::fp32, scales_of(host))};
  for (std::size_t i = 0; i < inputs_.size(); ++i) upload(inputs_[i].get(), snapshot_[i]);
  upload(scales_.get(), snapshot_[3]);
}

void DeviceCase::upload_outputs(const HostCase& host) {
  upload(tensors_.o, encode(output_dtype(problem_), host.o));
  upload(tensors_.lse, encode(DType::fp32, host.lse));
}

void DeviceCase::make_inputs(std::uint64_t seed) {
  fill_inputs(problem_, seed, tensors_, gpu().stream);
  snapshot_ = download_inputs();
}

void DeviceCase::run(int poison) {
  o_.fill(poison);
  lse_.fill(poison);
  workspace_.fill(poison);
  prepared_.launch(gpu().stream);
  gpu().stream.synchronize();
  EXPECT_TRUE(o_.guards_intact()) << "the kernel wrote outside O";
  EXPECT_TRUE(lse_.guards_intact()) << "the kernel wrote outside LSE";
  EXPECT_TRUE(workspace_.guards_intact()) << "the kernel wrote outside its workspace";
  EXPECT_TRUE(download_inputs() == snapshot_) << "the kernel wrote to an input";
}

void DeviceCase::download_outputs(HostCase& host) const {
  host.o = decode(output_dtype(problem_), o_.download());
  host.lse = decode(DType::fp32, lse_.download());
}

std::vector<std::byte> DeviceCase::output_bytes() const {
  std::vector<std::byte> bytes = o_.download();
  const std::vector<std::byte> lse = lse_.download();
  bytes.insert(bytes.end(), lse.begin(), lse.end());
  return bytes;
}

std::int64_t DeviceCase::input_bytes() const {
  std::size_t sum = 0;
  for (const DeviceBuffer& input : inputs_) sum += input.bytes();
  sum += scales_.bytes();
  return static_cast<std::int64_t>(sum);
}

std::array<std::vector<std::byte>, 4> DeviceCase::download_inputs() const {
  std::array<std::vector<std::byte>, 4> bytes;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    bytes[i] = download(inputs_[i].get(), inputs_[i].bytes());
  }
  bytes[3] = download(scales_.get(), scales_.bytes());
  return bytes;
}

void edit_inputs(const Problem& p, HostCase& host,
                 const std::function<void(std::vector<float>& q, std::vector<float>& k)>& edit) {
  if (p.dtype != DType::e4m3) return edit(host.q, host.k);
  edit(host.real_q, host.real_k);
  quantize_case(p, host);
}

std::vector<float> scales_of(const HostCase& host) {
  std::vector<float> scales;
  for (const auto* part :
       {&host.v_mean, &host.q_scale, &host.k_scale, &host.v_log2, &host.v_scale}) {
    scales.insert(scales.end(), part->begin(), part->end());
  }
  return scales;
}

std::vector<std::byte> encode(DType dtype, const std::vector<float>& values) {
  switch (dtype) {
    case DType::fp32:
      return encode_as<float>(values);
    case DType::fp16:
      return encode_as<__half>(values);
    case DType::bf16:
      return encode_as<__nv_bfloat16>(values);
    case DType::e4m3:
      return encode_as<__nv_fp8_e4m3>(values);
  }
  return {};
}

std::vector<float> decode(DType dtype, const std::vector<std::byte>& bytes) {
  switch (dtype) {
    case DType::fp32:
      return decode_as<float>(bytes);
    case DType::fp16:
      return decode_as<__half>(bytes);
    case DType::bf16:
      return decode_as<__nv_bfloat16>(bytes);
    case DType::e4m3:
      return decode_as<__nv_fp8_e4m3>(bytes);
  }
  return {};
}

}  // namespace rooflash
