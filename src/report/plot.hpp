// The roofline as text, for the terminal.
#pragma once

#include <string>

#include "core/record.hpp"
#include "report/table.hpp"

namespace rooflash {

// Range of a roofline's axes: x in FLOP per HBM byte, y in TFLOPS.
struct RoofFrame {
  double x_low = 1;
  double x_high = 1;
  double y_low = 1;
  double y_high = 1;
};

// From the roofs alone, so that plots of one GPU can be laid side by side; the HTML report has the
// same (reports/js/roofline.js).
RoofFrame roof_frame(double hbm_gbps, double tensor_tflops);

// One log-log plot a device and dtype, with the roofs, a letter a kernel and a legend. Points
// beyond the frame widen it by decades. Roofs are drawn in Braille dots, or in ASCII. Ends with a
// newline.
std::string render_plot(const Record& record, const TableOptions& options);

}  // namespace rooflash
