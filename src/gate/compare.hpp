// Two records compared, case by case, and what a gate makes of it. Sees records only: no GPU.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/exit_code.hpp"
#include "core/record.hpp"
#include "gate/family.hpp"
#include "gate/figures.hpp"
#include "gate/quantize.hpp"
#include "gate/time_shift.hpp"
#include "gate/verdict.hpp"

namespace rooflash {

struct CaseRules {
  TimeRules time;
  bool use_resources = true;  // the static tier
  bool use_counters = true;
  bool use_time = true;
  bool use_quantize = true;  // beside time
  FigureLimits figures;
  std::string source;  // the exceptions that apply: "rules.json:4, rules.json:7"
};

struct CompareRules : CaseRules {
  // Changes the rules for the case of `row`; empty: they hold for all cases.
  std::function<void(const Row& row, CaseRules& rules)> exceptions;
  bool across_devices = false;  // two models of GPU may be compared
};

struct CaseComparison {
  std::string case_id;
  std::string device_class;
  std::string kernel;
  Problem problem;
  Verdict verdict = Verdict::unsure;
  std::string reason;                 // "" where the verdict needs none
  std::vector<FigureChange> figures;  // static, then counters
  std::optional<TimeShift> time;
  std::optional<QuantizeComparison> quantize;  // where a side has a time of it
  std::string rules;                           // CaseRules::source
  std::string repro;                           // command that runs the case
};

struct Comparison {
  std::vector<CaseComparison> cases;     // by case id and device class
  std::vector<FamilyShift> families;     // of the cases with a time, then of quantising
  int without_result = 0;                // unsupported or out of memory on both sides
  int left_out = 0;                      // by rules that leave nothing to judge
  std::vector<std::string> differences;  // of the environments
};

Comparison compare(const Record& base, const Record& candidate, const CompareRules& rules);

// The time of one measure; nullptr where a side has none.
const TimeShift* time_of(const CaseComparison& found, Measure measure);

// The verdict of the tiers in order: figures first, then time. A confirmed gain in time outweighs
// figures that grew: faster never fails. Quantising is left aside.
Ruling judge_attention(const CaseComparison& found);
// That and quantising.
Ruling judge_tiers(const CaseComparison& found);
// Whether the case is slower by that measure; by its figures is by time.
bool is_slower(const CaseComparison& found, Measure measure);

int count(const Comparison& comparison, Verdict verdict);
int count(const Comparison& comparison, Direction direction);  // of families
// Cases on which the evidence was enough to say something: slower, faster, same, or unsure with an
// interval. None: nothing was compared.
int judged_cases(const Comparison& comparison);

// Geometric mean of candidate / base over the cases with both times; empty where none.
struct Geomean {
  double ratio = 1;
  int cases = 0;
};
std::optional<Geomean> geomean_ratio(const Comparison& comparison,
                                     Measure measure = Measure::time_us);

struct GatePolicy {
  bool fail_on_missing = true;
  bool fail_on_unsure = false;
};
// wrong, then incomplete (failed or gone), slower, not comparable, nothing compared, unsure.
ExitCode gate_exit_code(const Comparison& comparison, const GatePolicy& policy);

}  // namespace rooflash
