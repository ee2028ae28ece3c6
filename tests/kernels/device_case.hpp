// A problem in device memory that shows what a kernel must not do: write outside its outputs, write
// to its inputs, leave outputs unwritten.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/problem.hpp"
#include "gpu/check.hpp"
#include "kernel.hpp"
#include "verify/reference.hpp"

namespace rooflash {

// Device memory between two guard zones. Sizes in bytes.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::int64_t bytes);
  void* data() const { return buffer_.get<std::byte>() + kGuardBytes; }
  void fill(int byte) const;
  std::vector<std::byte> download() const;
  // False once anything but `data()` was written to.
  bool guards_intact() const;

 private:
  static constexpr std::size_t kGuardBytes = 256 << 10;  // 128 rows of 8 heads of 128, 2 bytes each
  DeviceBuffer buffer_;
};

// A problem on the device, ready for its kernel. Inputs have no guard zones, so that memcheck sees
// every read past their end.
class DeviceCase {
 public:
  // `kernel` null: the tensors alone. With `sm_count` the kernel is prepared as for a GPU of so
  // many SMs.
  DeviceCase(const Kernel* kernel, const Problem& problem, std::optional<int> sm_count = {});
  DeviceCase(const DeviceCase&) = delete;
  DeviceCase& operator=(const DeviceCase&) = delete;

  void upload_inputs(const HostCase& host);
  void upload_outputs(const HostCase& host);
  void make_inputs(std::uint64_t seed);  // on the GPU

  // One launch onto outputs and workspace filled with `poison`. Fails the test where the kernel
  // wrote to an input or outside its outputs and workspace.
  void run(int poison = 0xFF);

  void download_outputs(HostCase& host) const;
  std::vector<std::byte> output_bytes() const;  // O, then LSE
  // Q, K, V, and the scales of e4m3, as place_scales() has them.
  const std::array<std::vector<std::byte>, 4>& inputs() const { return snapshot_; }
  std::int64_t input_bytes() const;
  const Tensors& tensors() const { return tensors_; }
  const Launch& launch() const { return prepared_.launch; }

 private:
  std::array<std::vector<std::byte>, 4> download_inputs() const;

  Problem problem_;
  std::array<DeviceBuffer, 3> inputs_;
  DeviceBuffer scales_;
  GuardedBuffer o_, lse_, workspace_;
  Tensors tensors_;
  Prepared prepared_;
  std::array<std::vector<std::byte>, 4> snapshot_;
};

// Changes Q and K of inputs that make_host_case() made. e4m3's are changed before they are
// quantised, and quantised again.
void edit_inputs(const Problem& problem, HostCase& host,
                 const std::function<void(std::vector<float>& q, std::vector<float>& k)>& edit);

// The scales of e4m3, as place_scales() has them.
std::vector<float> scales_of(const HostCase& host);

// `values` as they lie in memory in `dtype`, and back.
std::vector<std::byte> encode(DType dtype, const std::vector<float>& values);
std::vector<float> decode(DType dtype, const std::vector<std::byte>& bytes);

}  // namespace rooflash
