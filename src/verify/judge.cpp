#include "verify/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooflash {
namespace {

// Unit roundoff: the largest relative error of one rounding to `dtype`.
double unit_roundoff(DType dtype) {
  return epsilon(dtype) / 2;
}

// Of a score, relative to the largest: FP8 tensor cores keep 13 bits behind the leading one of each
// sum of 32 products, and a score takes up to eight of these.
double score_epsilon(DType dtype) {
  return dtype == DType::e4m3 ? std::ldexp(1.0, -10) : epsilon(DType::fp32);
}

// What such sums may lose of an output, relative to its scale, even where they go to fp32 every few
// hundred keys: the loss grows with the number of keys summed up in a row.
double sum_loss(DType dtype) {
  return dtype == DType::e4m3 ? std::ldexp(1.0, -7) : 0.0;
}

// A non-finite value; the sign of a NaN means nothing.
std::string text_of(float value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string place(const SampledRow& row) {
  return fmt::format("batch {} head {} row {}", row.batch, row.head, row.row);
}

// The larger one; NaN once either is.
double larger(double a, double b) {
  return b > a || std::isnan(b) ? b : a;
}

double rms(double sum_squares, std::int64_t count) {
  return std::sqrt(sum_squares / static_cast<double>(std::max<std::int64_t>(1, count)));
}

}  // namespace

Judge::Judge(const Problem& problem) : problem_(problem) {}

void Judge::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

void Judge::Errors::add(double value, double reference, double emulated, const SampledRow& row,
                        std::int64_t col) {
  const double error = std::fabs(value - reference);
  const double emulated_error = std::fabs(emulated - reference);
  if (error > max || worst.empty()) {
    const std::string column = col < 0 ? std::string() : fmt::format(" col {}", col);
    worst = fmt::format("{}{}: {:.6g}, reference {:.6g}", place(row), column, value, reference);
  }
  max = larger(max, error);
  emulated_max = larger(emulated_max, emulated_error);
  scale = std::max(scale, std::fabs(reference));
  sum_squares += error * error;
  emulated_sum_squares += emulated_error * emulated_error;
  reference_sum_squares += reference * reference;
  ++count;
}

void Judge::add_row(const SampledRow& row, std::span<const float> o, std::span<const double> ref_o,
                    std::span<const float> emul_o, float lse, double ref_lse, float emul_lse) {
  ++rows_;
  if (std::isinf(ref_lse)) {
    // No visible key: exact, so it takes no part in the tolerances.
    if (!(std::isinf(lse) && lse < 0)) {
      fail(fmt::format("{}: no visible key, LSE is {:.6g}, not -inf", place(row), lse));
    }
    for (std::size_t c = 0; c < o.size(); ++c) {
      if (!(o[c] == 0.0F)) {
        fail(fmt::format("{} col {}: no visible key, O is {:.6g}, not 0", place(row), c, o[c]));
      }
    }
    return;
  }
  for (std::size_t c = 0; c < o.size(); ++c) {
    if (std::isfinite(o[c])) {
      o_.add(o[c], ref_o[c], emul_o[c], row, static_cast<std::int64_t>(c));
    } else {
      finite_ = false;
      fail(fmt::format("{} col {}: O is {}, reference {:.6g}", place(row), c, text_of(o[c]),
                       ref_o[c]));
    }
  }
  if (std::isfinite(lse)) {
    lse_.add(lse, ref_lse, emul_lse, row, -1);
  } else {
    fail(fmt::format("{}: LSE is {}, reference {:.6g}", place(row), text_of(lse), ref_lse));
  }
}

void Judge::add_unquantized_row(std::span<const float> o, std::span<const double> ref_o) {
  for (std::size_t c = 0; c < o.size(); ++c) {
    if (std::isfinite(o[c])) unquantized_.add(o[c], ref_o[c], 0, {}, static_cast<std::int64_t>(c));
  }
}

void Judge::add_nonfinite(std::int64_t count, std::string where) {
  if (count == 0) return;
  finite_ = false;
  fail(fmt::format("{} non-finite values in {}", count, where));
}

VerifyResult Judge::result(const RowSample& sample) const {
  const double unit = unit_roundoff(output_dtype(problem_));
  const double loss = sum_loss(problem_.dtype);
  const double rms_err = rms(o_.sum_squares, o_.count);
  const double ref_rms = rms(o_.reference_sum_squares, o_.count);
  const double tolerance_max = 2.0 * o_.emulated_max + (unit + loss) * o_.scale;
  const double tolerance_rms =
      1.5 * rms(o_.emulated_sum_squares, o_.count) + (unit / std::sqrt(3.0) + loss) * ref_rms;
  // LSE is the sum of two rounded terms, the maximum and a logarithm: a rounding unit for each.
  const double tolerance_lse =
      2.0 * lse_.emulated_max + score_epsilon(problem_.dtype) * std::max(1.0, lse_.scale);

  VerifyResult result;
  // The elements that are finite do not speak for an O that is not.
  if (finite_ && o_.count > 0) {
    result.max_abs_err = o_.max;
    result.rms_err = rms_err;
    result.rel_err = ref_rms > 0 ? rms_err / ref_rms : rms_err;
    result.tolerance_max = tolerance_max;
    result.tolerance_rms = tolerance_rms;
  }
  if (finite_ && unquantized_.count > 0) {
    const double real_rms = rms(unquantized_.reference_sum_squares, unquantized_.count);
    const double error = rms(unquantized_.sum_squares, unquantized_.count);
    result.unquantized_rms_err = error;
    result.unquantized_rel_err = real_rms > 0 ? error / real_rms : error;
  }
  result.rows_checked = sample.description;
  result.worst = o_.worst;

  std::string failure = failure_;
  const auto check = [&failure](double error, double tolerance, const char* what,
                                const std::string& worst) {
    // Written so that NaN on either side fails.
    if (!(error <= tolerance) && failure.empty()) {
      failure = fmt::format("{} {:.3g} is over the tolerance {:.3g}; worst at {}", what, error,
                            tolerance, worst);
    }
  };
  if (failure.empty() && (rows_ == 0 || rows_ != static_cast<std::int64_t>(sample.rows.size()))) {
    failure = fmt::format("{} of {} rows were compared", rows_, sample.rows.size());
  }
  check(o_.max, tolerance_max, "O: largest error", o_.worst);
  check(rms_err, tolerance_rms, "O: rms error", o_.worst);
  check(lse_.max, tolerance_lse, "LSE: largest error", lse_.worst);
  result.status = failure.empty() ? "passed" : "failed";
  if (!failure.empty()) result.worst = failure;
  return result;
}

}  // namespace rooflash
