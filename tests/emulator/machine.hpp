// A machine that runs the device code of the Hopper kernels on the CPU, for logic that can be found
// wrong without a GPU: indices, barriers, roles, masks, scales. Threads of a CTA are fibers, taken
// by turns in an order that a seed draws. Asynchronous work is done when that shows faults best:
// wgmma at each warp's wait for it, or, if asked, when nothing else can go on, so that operands
// given up or touched too soon make the result wrong; a TMA store at the wait for it; a TMA load at
// once or, if asked, when nothing else can go on, in each CTA that it goes to by itself; so too a
// store to another CTA. The CTAs of a cluster run side by side. Shared memory begins as NaN. It
// reports threads of a warp that do not meet, arrivals that are too many, misaligned addresses,
// accesses outside the kernel's shared memory, what reaches a CTA that has ended, and that no
// thread can go on.
//
// What it cannot know: how memory accesses of different kinds are ordered and which fences they
// need, __syncwarp among them (it has one memory, in which all is seen at once), how the tensor
// cores round (it sums in fp32), registers (setmaxnreg does nothing), more than one cluster at a
// time. Encodings of descriptors and tensor maps are as the PTX ISA is read here.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

namespace machine {

// What a kernel did that the machine would not stand.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How launches that follow run.
struct Order {
  unsigned seed = 1;  // of threads and clusters
  // Loads land, and products are done, when nothing else can go on.
  bool late_copies = false;
  bool late_products = false;
  int held_warp = -1;  // goes on when nothing else can, in one CTA of a cluster; -1: none
};
void set_order(const Order& order);

// Runs `kernel` in each thread of a grid, one cluster of `cluster` blocks after another.
void run(unsigned blocks, unsigned cluster, int threads, std::int64_t smem_bytes,
         const std::function<void()>& kernel);

// What CUtensorMap holds here. Innermost dimension first, strides in bytes.
struct TensorMap {
  unsigned char* data;
  std::int64_t size[5], stride[5];
  int box[5];
  int rank;
  int element_bytes;
};

}  // namespace machine
