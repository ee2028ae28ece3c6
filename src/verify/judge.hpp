// The one rule that says whether an output is right. Errors are measured against the fp64 reference
// and judged by what the eager code's rounding points (the emulation) lose on the same rows:
//
//   max error <= 2 x the emulation's + unit,   rms error <= 1.5 x the emulation's + unit
//
// where unit is one rounding of O's dtype at the reference's scale: half its spacing, relative to
// the largest magnitude for max, and the rms of such a rounding (unit / sqrt 3) relative to the rms
// for rms. LSE is held to the max rule, with fp32's spacing; with that of the tensor cores' sums
// where these keep fewer bits (e4m3), and both units grow by 2^-7 of O's scale then, for what sums
// of some hundred keys lose: a kernel that sums up thousands that way fails on V whose mean is not
// 0. A row with no visible key must give exactly O = 0 and LSE = -inf. Any other NaN or infinity
// fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/problem.hpp"
#include "core/record.hpp"
#include "verify/sampling.hpp"

namespace rooflash {

class Judge {
 public:
  explicit Judge(const Problem& problem);

  // One output row. The spans hold headdim_v values: what the kernel wrote, the fp64 reference and
  // the emulation. The reference of a row with no visible key has `ref_lse` = -inf.
  void add_row(const SampledRow& row, std::span<const float> o, std::span<const double> ref_o,
               std::span<const float> emul_o, float lse, double ref_lse, float emul_lse);

  // What the kernel wrote of a row that sees keys, and the fp64 reference on the inputs before they
  // were quantised. Stated, not judged.
  void add_unquantized_row(std::span<const float> o, std::span<const double> ref_o);

  // Non-finite values found outside the sampled rows, for example in all of O.
  void add_nonfinite(std::int64_t count, std::string where);

  // `sample` says which rows ought to have been added; missing ones fail. Errors and tolerances are
  // of the rows that see a key; they are empty where there is none, or where O is not finite.
  VerifyResult result(const RowSample& sample) const;

 private:
  // Largest error of one output with its place; sums for rms and relative error.
  struct Errors {
    double max = 0;
    double emulated_max = 0;
    double scale = 0;  // largest |reference|
    double sum_squares = 0;
    double emulated_sum_squares = 0;
    double reference_sum_squares = 0;
    std::int64_t count = 0;
    std::string worst;
    void add(double value, double reference, double emulated, const SampledRow& row,
             std::int64_t col);
  };
  void fail(const std::string& why);

  Problem problem_;
  std::int64_t rows_ = 0;
  bool finite_ = true;   // all of O that was looked at
  std::string failure_;  // first fault that no tolerance covers
  Errors o_;
  Errors lse_;
  Errors unquantized_;
};

}  // namespace rooflash
