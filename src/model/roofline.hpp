// The roofline: the throughput that memory rate and arithmetic rate allow at an intensity.
#pragma once

namespace rooflash {

// TFLOPS at `intensity` FLOP per HBM byte: min(intensity x rate, peak).
double roof_tflops(double intensity, double hbm_gbps, double tensor_tflops);

// `tflops` in per cent of that roof.
double roof_pct(double tflops, double intensity, double hbm_gbps, double tensor_tflops);

}  // namespace rooflash
