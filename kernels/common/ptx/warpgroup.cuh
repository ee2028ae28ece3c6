// Registers handed between the warpgroups of a block (sm_90a).
// PTX ISA, "Miscellaneous Instructions: setmaxnreg".
#pragma once

namespace rooflash::ptx {

// By all warps of a warpgroup. Multiples of 8; the kernel needs a launch bound of one block an SM.
template <int kRegisters>
__device__ __forceinline__ void give_up_registers_above() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers_up_to() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

}  // namespace rooflash::ptx
