#include "model/roofline.hpp"

#include <algorithm>

namespace rooflash {

double roof_tflops(double intensity, double hbm_gbps, double tensor_tflops) {
  return std::min(intensity * hbm_gbps * 1e-3, tensor_tflops);
}

double roof_pct(double tflops, double intensity, double hbm_gbps, double tensor_tflops) {
  return 100 * tflops / roof_tflops(intensity, hbm_gbps, tensor_tflops);
}

}  // namespace rooflash
