#include "cli/gate_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "model/strict_json.hpp"
#include "model/suggest.hpp"
#include "record/reader.hpp"
#include "sweep/filter.hpp"

namespace rooflash {
namespace {

// What a rule sets; the rest stays as it is.
struct Settings {
  OptDouble threshold;
  OptDouble floor_us;
  std::optional<bool> resources;
  std::optional<bool> counters;
  std::optional<bool> time;
  std::optional<bool> quantize;
  FigureLimits figures;
};

struct Exception {
  Filter filter;
  Settings settings;
  std::string place;  // "rules.json:4"
};

std::string place_of(const JsonNode& node) {
  return fmt::format("{}:{}", printable(node.file), node.line);
}

std::string flag_of(const JsonNode& node, std::string_view key) {
  return fmt::format("{}: {}", place_of(node), key);
}

bool parse_switch(const JsonNode& node) {
  const std::string& text = node.as_string();
  if (text != "on" && text != "off") {
    node.fail(fmt::format("'{}' is not one of on, off", printable(text)));
  }
  return text == "on";
}

FigureLimits parse_figures(const JsonNode& node) {
  const std::vector<std::string> names = figure_names();
  node.allow_keys(names);
  FigureLimits limits;
  for (const auto& [key, value] : node.as_object()) {
    limits[key] = value.as_string() == "off"
                      ? OptDouble()
                      : OptDouble(parse_percent(value.as_string(), flag_of(value, key)));
  }
  return limits;
}

Settings parse_settings(const JsonNode& node) {
  Settings settings;
  for (const auto& [key, value] : node.as_object()) {
    if (key == "threshold") {
      settings.threshold = parse_threshold(value.as_string(), flag_of(value, key));
    } else if (key == "abs") {
      settings.floor_us = parse_seconds(value.as_string(), flag_of(value, key)) * 1e6;
    } else if (key == "static") {
      settings.resources = parse_switch(value);
    } else if (key == "counters") {
      settings.counters = parse_switch(value);
    } else if (key == "time") {
      settings.time = parse_switch(value);
    } else if (key == "quantize") {
      settings.quantize = parse_switch(value);
    } else if (key == "figures") {
      settings.figures = parse_figures(value);
    }
  }
  return settings;
}

// `allowed`: as the command has them. A tier that it leaves out stays out.
void apply(const Settings& settings, const CaseRules& allowed, CaseRules& rules) {
  if (settings.threshold) rules.time.threshold = settings.threshold;
  if (settings.floor_us) rules.time.floor_us = *settings.floor_us;
  if (settings.resources) rules.use_resources = allowed.use_resources && *settings.resources;
  if (settings.counters) rules.use_counters = allowed.use_counters && *settings.counters;
  if (settings.time) rules.use_time = allowed.use_time && *settings.time;
  if (settings.quantize) rules.use_quantize = *settings.quantize;
  for (const auto& [name, limit] : settings.figures) rules.figures[name] = limit;
}

Exception parse_rule(const JsonNode& node) {
  node.allow_keys(
      {"filter", "threshold", "abs", "static", "counters", "time", "quantize", "figures"});
  const JsonNode& text = node.at("filter");
  Exception rule;
  try {
    rule.filter = Filter::parse(text.as_string(), Filter::Names::any);
  } catch (const UsageError& error) {
    text.fail(error.what(), error.hint());
  }
  rule.settings = parse_settings(node);
  rule.place = place_of(node);
  if (node.members.size() < 2) node.fail("a rule that sets nothing", "add \"threshold\": \"5%\"");
  return rule;
}

}  // namespace

double parse_threshold(std::string_view text, std::string_view flag) {
  const double threshold = parse_percent(text, flag);
  if (threshold > 0 && threshold <= 1) return threshold;
  throw UsageError(fmt::format("{}: '{}' is not above 0% and at most 100%", flag, printable(text)),
                   "write a percentage, such as 2%");
}

void parse_gate_rules(std::string_view text, std::string_view file, CompareRules& rules) {
  const JsonNode root = parse_strict_json(text, file);
  root.allow_keys({"defaults", "rules"});
  const CaseRules allowed = rules;
  if (const JsonNode* defaults = root.find("defaults")) {
    defaults->allow_keys({"threshold", "abs", "static", "counters", "time", "quantize", "figures"});
    apply(parse_settings(*defaults), allowed, rules);
  }
  std::vector<Exception> exceptions;
  if (const JsonNode* list = root.find("rules")) {
    for (const JsonNode& node : list->as_array()) exceptions.push_back(parse_rule(node));
  }
  rules.exceptions = [allowed, exceptions = std::move(exceptions)](const Row& row, CaseRules& own) {
    for (const Exception& rule : exceptions) {
      if (!rule.filter.matches(row.kernel, row.problem, row.device)) continue;
      apply(rule.settings, allowed, own);
      own.source += (own.source.empty() ? "" : ", ") + rule.place;
    }
  };
}

void load_gate_rules(const std::string& path, CompareRules& rules) {
  parse_gate_rules(read_text(path), path, rules);
}

std::string rules_text(double standard, const std::vector<ProposedRule>& proposed) {
  nlohmann::ordered_json json;
  json["defaults"]["threshold"] = fmt::format("{:.6g}%", standard * 100);
  json["rules"] = nlohmann::ordered_json::array();
  for (const ProposedRule& rule : proposed) {
    json["rules"].push_back({{"filter", rule.filter}, {rule.key, rule.value}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace rooflash
