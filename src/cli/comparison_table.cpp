#include "cli/comparison_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/units.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kReasonIndent = 6;

using Cases = std::vector<const CaseComparison*>;

std::string title_of(const CaseComparison& one) {
  Group group;
  group.problem = &one.problem;
  return fmt::format("{}  [{}]", group_title(group), printable(one.device_class));
}

// By title; inside a title by shape, then kernel.
std::map<std::string, Cases> grouped(const Comparison& comparison, bool all) {
  std::map<std::string, Cases> groups;
  for (const CaseComparison& one : comparison.cases) {
    if (all || one.verdict != Verdict::same) groups[title_of(one)].push_back(&one);
  }
  const auto key = [](const CaseComparison* one) {
    const Problem& p = one->problem;
    return std::tie(p.seqlen_kv, p.seqlen_q, p.batch, one->kernel);
  };
  for (auto& [title, cases] : groups) {
    std::stable_sort(
        cases.begin(), cases.end(),
        [&](const CaseComparison* a, const CaseComparison* b) { return key(a) < key(b); });
  }
  return groups;
}

const char* color_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
    case Verdict::wrong:
    case Verdict::failed:
    case Verdict::gone:
      return "31";
    case Verdict::unsure:
    case Verdict::not_comparable:
      return "33";
    case Verdict::faster:
      return "32";
    case Verdict::same:
    case Verdict::fresh:
      break;
  }
  return "0";
}

std::string styled(std::string_view text, const char* code, const TableOptions& options) {
  return options.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

// "[+5.4%, +7.1%]"; "exact" on simulated rows; "1 + 1 rounds" where they are too few.
std::string interval_text(const TimeShift& time) {
  if (!time.shift.ci95) {
    return fmt::format("{} + {} rounds", time.base_us.size(), time.candidate_us.size());
  }
  if (!time.shift.p) return "exact";
  return fmt::format("[{}, {}]", percent_change(time.shift.ci95->low),
                     percent_change(time.shift.ci95->high));
}

std::string q_text(OptDouble q) {
  if (!q) return "";
  return *q < 0.001 ? "<0.001" : fmt::format("{:.3f}", *q);
}

std::string figures_of(const std::optional<TimeShift>& time) {
  if (!time) return fmt::format("{:>9} {:>9} {:>8}  {:<17} {:>6}", "--", "--", "", "", "");
  return fmt::format("{:>9} {:>9} {:>8}  {:<17} {:>6}", format_time_us(time->base_median_us),
                     format_time_us(time->candidate_median_us), percent_change(time->shift.ratio),
                     interval_text(*time), q_text(time->q));
}

// `text`, the verdict, and the reason behind or below it.
std::string ruled_line(std::string text, const Ruling& ruling, const std::optional<TimeShift>& time,
                       const TableOptions& options) {
  const std::string verdict(to_string(ruling.verdict));
  const bool told = ruling.reason.empty() || (time && ruling.reason == time->reason &&
                                              !time->shift.ci95);  // by the interval's column
  const std::string reason = told ? "" : fmt::format("({})", printable(ruling.reason));
  const bool fits =
      text.size() + verdict.size() + 1 + reason.size() <= static_cast<std::size_t>(options.width);
  text += styled(verdict, color_of(ruling.verdict), options);
  if (!reason.empty()) text += (fits ? " " : "\n" + std::string(kReasonIndent, ' ')) + reason;
  return text + "\n";
}

// Below the line of the case, in its columns.
std::string quantize_lines(const QuantizeComparison& quantize, std::size_t kernel_width,
                           const TableOptions& options) {
  const std::size_t label_width = kernel_width + 12;
  std::string text = ruled_line(
      fmt::format("    {:<{}} {}  ", "quantising", label_width, figures_of(quantize.time)),
      ruling_of(quantize), quantize.time, options);
  if (quantize.with_attention) {
    std::string both = fmt::format("    {:<{}} {}", "with quantising", label_width,
                                   figures_of(quantize.with_attention));
    both.resize(both.find_last_not_of(' ') + 1);
    text += both + "\n";
  }
  return text;
}

std::string case_line(const CaseComparison& one, std::size_t kernel_width,
                      const TableOptions& options) {
  const Line line{&one.problem, false, {}};
  std::string text =
      fmt::format("  {:<{}}  {:<8}{:>4} {}  ", printable(one.kernel), kernel_width,
                  line_label(line), format_count(one.problem.batch), figures_of(one.time));
  Ruling ruling{one.verdict, one.reason};
  if (!one.quantize) return ruled_line(std::move(text), ruling, one.time, options);
  // The lines below tell of quantising.
  const Ruling attention = judge_attention(one);
  ruling.reason = attention.verdict == one.verdict ? attention.reason : "by quantising";
  return ruled_line(std::move(text), ruling, one.time, options) +
         quantize_lines(*one.quantize, kernel_width, options);
}

// "family fa2, 12 cases: +1.8% [+1.2%, +2.3%] slower"
std::string family_line(const FamilyShift& one, const TableOptions& options) {
  std::string text =
      fmt::format("family {}, {}: {}", printable(family_name(one)),
                  counted(std::ssize(one.case_ids), "case"), percent_change(one.shift.ratio));
  if (one.shift.ci95 && one.shift.p) {
    text += fmt::format(" [{}, {}]", percent_change(one.shift.ci95->low),
                        percent_change(one.shift.ci95->high));
  }
  const Verdict verdict = verdict_of(one.direction);
  text += " " + styled(to_string(verdict), color_of(verdict), options);
  return text + (one.reason.empty() ? "\n" : fmt::format(" ({})\n", printable(one.reason)));
}

std::string values_text(const ByRound& rounds) {
  const std::vector<double> values_us = values_of(rounds);
  std::vector<std::string> texts;
  for (const double value : values_us) texts.push_back(fmt::format("{:.4g}", value));
  return fmt::format("{} us in {}: {}", fmt::format("{:.4g}", median(values_us)),
                     counted(std::ssize(values_us), "round"), fmt::join(texts, ", "));
}

std::string explain_time(std::string_view name, const TimeShift& time) {
  std::string text = fmt::format("{:<10} base {}\n           new  {}\n", name,
                                 values_text(time.base_us), values_text(time.candidate_us));
  text += fmt::format("           change {}, 95% interval {}", percent_change(time.shift.ratio),
                      time.shift.ci95 ? interval_text(time) : "unknown: " + time.reason);
  if (time.shift.p) text += fmt::format(", p {:.2g}, q {:.2g}", *time.shift.p, time.q.value_or(1));
  text += fmt::format("\n           matters from {}", percent_change(1 + time.threshold));
  if (const OptDouble found = detectable_change(time).change) {
    text += fmt::format("; 9 of 10 such comparisons find {}", percent_change(1 + *found));
  }
  if (time.cycles_ratio) {
    text += fmt::format("; change in cycles {}", percent_change(*time.cycles_ratio));
  }
  return text + "\n           unit: one round. Samples of one round are not independent.\n";
}

std::string explain_quantizing(const QuantizeComparison& quantize) {
  const Ruling ruling = ruling_of(quantize);
  std::string text = fmt::format("quantising {}{}\n", to_string(ruling.verdict),
                                 ruling.reason.empty() ? "" : ": " + printable(ruling.reason));
  if (quantize.time) text += explain_time("", *quantize.time);
  if (quantize.with_attention) {
    text += fmt::format("with it    {}, 95% interval {}\n", change_text(*quantize.with_attention),
                        interval_text(*quantize.with_attention));
  }
  return text;
}

}  // namespace

std::string render_comparison(const Comparison& comparison, bool all, const TableOptions& options) {
  std::size_t kernel_width = 6;
  for (const CaseComparison& one : comparison.cases) {
    kernel_width = std::max(kernel_width, printable(one.kernel).size());
  }
  std::string text;
  for (const auto& [title, cases] : grouped(comparison, all)) {
    text += styled(title, "1", options) + "\n";
    text += fmt::format("  {:<{}}  {:<8}{:>4} {:>9} {:>9} {:>8}  {:<17} {:>6}  {}\n", "kernel",
                        kernel_width, "seqlen", "b", "base", "new", "vs base", "95% CI", "q",
                        "verdict");
    for (const CaseComparison* one : cases) text += case_line(*one, kernel_width, options);
    text += "\n";
  }
  for (const auto& [measure, name] :
       {std::pair(Measure::time_us, "time"), std::pair(Measure::quantize_us, "quantising")}) {
    if (const auto mean = geomean_ratio(comparison, measure)) {
      text += fmt::format("geomean of {}, {}: {}\n", name, counted(mean->cases, "case"),
                          percent_change(mean->ratio));
    }
  }
  for (const FamilyShift& one : comparison.families) {
    if (all || one.direction != Direction::same) text += family_line(one, options);
  }
  if (comparison.without_result > 0) {
    text += fmt::format("{} without a result in both records (unsupported or out of memory)\n",
                        counted(comparison.without_result, "case"));
  }
  if (comparison.left_out > 0) {
    text += fmt::format("{} left out by the rules\n", counted(comparison.left_out, "case"));
  }
  if (const int same = count(comparison, Verdict::same); same > 0 && !all) {
    text += fmt::format("not listed: {} same (--all)\n", same);
  }
  return text;
}

std::string render_calibration(const std::vector<CaseNoise>& cases, double most,
                               const TableOptions& options) {
  std::size_t width = 4;
  for (const CaseNoise& one : cases) width = std::max(width, printable(one.case_id).size());
  const std::string found =
      fmt::format("found in {}/{}", kScreenRounds, kScreenRounds + kConfirmRounds);
  std::string text = styled(fmt::format("{:<{}}  {:>6}  {:>7}  {:>7}  {:>15}  threshold\n", "case",
                                        width, "rounds", "noise", "shift", found),
                            "1", options);
  std::string noisy;
  for (const CaseNoise& one : cases) {
    if (!one.threshold) {
      noisy +=
          fmt::format("  {}  needs {:.1f}%\n", printable(one.case_id), one.detectable_few * 100);
    }
    text += fmt::format(
        "{:<{}}  {:>6}  {:>6.2f}%  {:>7}  {:>15}  {}\n", printable(one.case_id), width, one.pairs,
        one.noise * 100, percent_change(one.shift),
        fmt::format("{:.1f}%/{:.1f}%", one.detectable_few * 100, one.detectable_many * 100),
        one.threshold ? fmt::format("{:.6g}%", *one.threshold * 100) : "too noisy to gate");
  }
  text +=
      "\nnoise: standard deviation from one pair of rounds to the next. found: the change that 9 "
      "of "
      "10 gates\nof so many rounds would tell from none.\n";
  if (!noisy.empty()) {
    text += fmt::format("Too noisy to gate at {:.6g}%, the largest threshold considered:\n{}",
                        most * 100, noisy);
  }
  return text;
}

std::string explain_case(const CaseComparison& found) {
  std::string text =
      fmt::format("case       {}\ndevice     {}\nverdict    {}{}\n", printable(found.case_id),
                  printable(found.device_class), to_string(found.verdict),
                  found.reason.empty() ? "" : ": " + printable(found.reason));
  for (const FigureChange& figure : found.figures) {
    text += fmt::format("figure     {} {} -> {}, may grow by {}: {}\n", figure.name,
                        significant(figure.base, 4), significant(figure.candidate, 4),
                        significant(figure.allowed),
                        figure.is_worse()    ? "worse"
                        : figure.is_better() ? "better"
                                             : "same");
  }
  if (found.time) text += explain_time("time", *found.time);
  if (found.quantize) text += explain_quantizing(*found.quantize);
  if (!found.rules.empty()) text += fmt::format("rules      {}\n", printable(found.rules));
  if (!found.repro.empty()) text += fmt::format("run it     {}\n", printable(found.repro, 2000));
  return text;
}

}  // namespace rooflash
