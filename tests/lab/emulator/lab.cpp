// The lab of the fp8 kernels with their device code compiled for the emulated machine.
#include "../fp8_lab.cu"
#include "fp8/arguments.cu"
