#include "cli/gate_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/comparison.hpp"
#include "core/units.hpp"
#include "gate/calibrate.hpp"
#include "record/environment.hpp"
#include "record/json.hpp"
#include "report/escape.hpp"
#include "report/junit.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

Json number(OptDouble value) {
  return value ? Json(*value) : Json(nullptr);
}

Json interval(const std::optional<Interval>& ci95) {
  return ci95 ? Json{ci95->low, ci95->high} : Json(nullptr);
}

Json time_json(const std::optional<TimeShift>& found) {
  if (!found) return nullptr;
  const TimeShift& time = *found;
  return {{"base_us", values_of(time.base_us)},
          {"new_us", values_of(time.candidate_us)},
          {"base_median_us", time.base_median_us},
          {"new_median_us", time.candidate_median_us},
          {"ratio", time.shift.ratio},
          {"ci95", interval(time.shift.ci95)},
          {"p", number(time.shift.p)},
          {"q", number(time.q)},
          {"cycles_ratio", number(time.cycles_ratio)},
          {"detectable", number(detectable_change(time).change)},
          {"threshold", time.threshold},
          {"paired", time.pairing == Pairing::paired}};
}

Json quantize_json(const QuantizeComparison& quantize) {
  const Ruling ruling = ruling_of(quantize);
  return {{"verdict", to_string(ruling.verdict)},
          {"reason", ruling.reason},
          {"time", time_json(quantize.time)},
          {"time_with_quantize", time_json(quantize.with_attention)}};
}

Json case_json(const CaseComparison& one) {
  Json figures = Json::array();
  for (const FigureChange& figure : one.figures) {
    figures.push_back({{"name", figure.name},
                       {"base", figure.base},
                       {"new", figure.candidate},
                       {"allowed", figure.allowed}});
  }
  return {{"case", one.case_id},
          {"device", one.device_class},
          {"kernel", one.kernel},
          {"verdict", to_string(one.verdict)},
          {"reason", one.reason},
          {"rules", one.rules},
          {"figures", std::move(figures)},
          {"time", time_json(one.time)},
          {"quantize", one.quantize ? quantize_json(*one.quantize) : Json(nullptr)},
          {"repro", one.repro}};
}

Json family_json(const FamilyShift& one) {
  return {{"kernel", one.kernel},
          {"measure", to_string(one.measure)},
          {"device", one.device_class},
          {"cases", one.case_ids.size()},
          {"verdict", to_string(verdict_of(one.direction))},
          {"reason", one.reason},
          {"ratio", one.shift.ratio},
          {"ci95", interval(one.shift.ci95)},
          {"p", number(one.shift.p)},
          {"cycles_ratio", number(one.cycles_ratio)},
          {"threshold", one.threshold}};
}

JunitCase junit_case(const CaseComparison& one) {
  JunitCase test;
  test.classname = one.kernel;
  test.name = one.case_id;
  if (one.time) test.time_s = one.time->candidate_median_us * 1e-6;
  test.type = to_string(one.verdict);
  test.message = case_message(one);
  switch (one.verdict) {
    case Verdict::slower:
    case Verdict::wrong:
      test.result = JunitCase::Result::failed;
      break;
    case Verdict::failed:
    case Verdict::gone:
    case Verdict::not_comparable:
      test.result = JunitCase::Result::errored;
      break;
    case Verdict::unsure:
    case Verdict::fresh:
      test.text = test.message;
      return test;
    case Verdict::faster:
    case Verdict::same:
      return test;
  }
  // GitLab shows the text alone.
  test.text = fmt::format("{}\n{}\n{}", one.case_id, test.message, one.repro);
  return test;
}

JunitCase junit_case(const FamilyShift& one) {
  JunitCase test;
  test.classname = one.kernel;
  test.name = fmt::format("{}, geometric mean of {}", family_name(one),
                          counted(std::ssize(one.case_ids), "case"));
  test.message =
      fmt::format("{}: {}{}", to_string(verdict_of(one.direction)), percent_change(one.shift.ratio),
                  one.reason.empty() ? "" : "; " + one.reason);
  if (one.direction == Direction::slower) {
    test.result = JunitCase::Result::failed;
    test.type = "slower";
  } else if (one.direction == Direction::unsure) {
    test.text = test.message;
  }
  return test;
}

// A gate that fails for no case's fault must not look green: nothing compared, unsure asked for.
JunitCase junit_case(const GateResult& result) {
  JunitCase test;
  test.classname = "gate";
  test.name = "gate";
  test.message = gate_sentence(result);
  if (result.code != ExitCode::ok) {
    test.result = JunitCase::Result::failed;
    test.type = gate_headline(result.code);
  }
  return test;
}

std::string markdown_line(const CaseComparison& one) {
  std::string change;
  std::string interval_cell;
  if (one.time) {
    change = percent_change(one.time->shift.ratio);
    if (one.time->shift.ci95 && one.time->shift.p) {
      interval_cell = fmt::format("{} to {}", percent_change(one.time->shift.ci95->low),
                                  percent_change(one.time->shift.ci95->high));
    }
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", to_string(one.verdict),
                     escape_markdown(one.case_id),
                     one.time ? format_time_us(one.time->base_median_us) : "",
                     one.time ? format_time_us(one.time->candidate_median_us) : "", change,
                     interval_cell, escape_markdown(one.reason));
}

}  // namespace

std::string case_message(const CaseComparison& one) {
  std::string text(to_string(one.verdict));
  if (one.time) text += ": " + change_text(*one.time);
  if (!one.reason.empty()) text += fmt::format("{}{}", one.time ? "; " : ": ", one.reason);
  return text;
}

std::string_view gate_headline(ExitCode code) {
  switch (code) {
    case ExitCode::ok:
      return "GATE PASSED";
    case ExitCode::incomplete:
      return "GATE FAILED, INCOMPLETE";
    case ExitCode::not_comparable:
      return "GATE FAILED, NOT COMPARABLE";
    case ExitCode::unsure:
      return "GATE FAILED, UNSURE";
    case ExitCode::nothing_ran:
      return "GATE COMPARED NOTHING";
    default:
      return "GATE FAILED";
  }
}

std::string gate_sentence(const GateResult& result) {
  // A slow family that no case of it stands for.
  std::string families;
  for (const FamilyShift& one : result.comparison.families) {
    const bool told = std::any_of(
        result.comparison.cases.begin(), result.comparison.cases.end(), [&](const auto& other) {
          return other.kernel == one.kernel && is_slower(other, one.measure);
        });
    if (one.direction != Direction::slower || told) continue;
    families += fmt::format("; {} as a family slower: {}", printable(family_name(one)),
                            percent_change(one.shift.ratio));
  }
  return fmt::format("{}: {}{} (exit {})", gate_headline(result.code),
                     verdict_counts(result.comparison), families, static_cast<int>(result.code));
}

std::vector<const CaseComparison*> by_weight(const Comparison& comparison) {
  static constexpr Verdict kOrder[] = {Verdict::wrong,  Verdict::failed,         Verdict::gone,
                                       Verdict::slower, Verdict::not_comparable, Verdict::unsure,
                                       Verdict::faster, Verdict::fresh,          Verdict::same};
  std::vector<const CaseComparison*> cases;
  for (const Verdict verdict : kOrder) {
    for (const CaseComparison& one : comparison.cases) {
      if (one.verdict == verdict) cases.push_back(&one);
    }
  }
  return cases;
}

std::string verdict_json(const GateResult& result) {
  const Tool tool = tool_info();
  Json json = {{"schema", 1},
               {"tool", {{"version", tool.version}, {"commit", tool.commit}}},
               {"date", utc_date()},
               {"mode", result.mode},
               {"base", without_folders(result.base)},
               {"new", without_folders(result.candidate)},
               {"passed", result.code == ExitCode::ok},
               {"exit_code", static_cast<int>(result.code)},
               {"summary", gate_sentence(result)}};
  json["counts"] = Json::object();
  for (const Verdict verdict :
       {Verdict::slower, Verdict::faster, Verdict::same, Verdict::unsure, Verdict::fresh,
        Verdict::gone, Verdict::wrong, Verdict::failed, Verdict::not_comparable}) {
    json["counts"][to_string(verdict)] = count(result.comparison, verdict);
  }
  json["without_result"] = result.comparison.without_result;
  json["left_out"] = result.comparison.left_out;
  json["differences"] = result.comparison.differences;
  json["families"] = Json::array();
  for (const FamilyShift& one : result.comparison.families) {
    json["families"].push_back(family_json(one));
  }
  json["cases"] = Json::array();
  for (const CaseComparison& one : result.comparison.cases) {
    json["cases"].push_back(case_json(one));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string verdict_junit(const GateResult& result) {
  std::map<std::string, JunitSuite> suites;
  const auto suite = [&](const std::string& device) -> JunitSuite& {
    JunitSuite& one = suites[device];
    one.name = device;
    return one;
  };
  for (const CaseComparison& one : result.comparison.cases) {
    suite(one.device_class).cases.push_back(junit_case(one));
  }
  for (const FamilyShift& one : result.comparison.families) {
    suite(one.device_class).cases.push_back(junit_case(one));
  }
  std::vector<JunitSuite> all{{"gate", {junit_case(result)}}};
  for (auto& [device, one] : suites) all.push_back(std::move(one));
  return render_junit("rooflash gate", all);
}

std::string verdict_markdown(const GateResult& result, std::size_t max_bytes) {
  constexpr std::size_t kTail = 200;  // room for the line that counts what is left out
  std::string text = fmt::format("### {}\n\n{} against {}\n\n", gate_sentence(result),
                                 escape_markdown(result.candidate), escape_markdown(result.base));
  for (const std::string& difference : result.comparison.differences) {
    text += fmt::format("- WARN {}\n", escape_markdown(difference));
  }
  for (const FamilyShift& one : result.comparison.families) {
    text +=
        fmt::format("- family {} on {}, {}: {} ({})\n", escape_markdown(family_name(one)),
                    escape_markdown(one.device_class), counted(std::ssize(one.case_ids), "case"),
                    to_string(verdict_of(one.direction)), percent_change(one.shift.ratio));
  }
  text +=
      "\n| verdict | case | base | new | change | 95% interval | reason |\n"
      "|---|---|---:|---:|---:|---|---|\n";
  std::size_t left_out = 0;
  for (const CaseComparison* one : by_weight(result.comparison)) {
    const std::string line = one->verdict == Verdict::same ? "" : markdown_line(*one);
    const bool fits = text.size() + line.size() + kTail <= max_bytes;
    if (!line.empty() && fits) text += line;
    if (!line.empty() && !fits) ++left_out;
  }
  if (left_out > 0) text += fmt::format("\n{} more changed; see the log\n", left_out);
  if (const int same = count(result.comparison, Verdict::same); same > 0) {
    text += fmt::format("\n{} same, not listed\n", counted(same, "case"));
  }
  return text;
}

}  // namespace rooflash
