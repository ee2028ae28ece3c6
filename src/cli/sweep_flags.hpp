// The flags that select cases, shared by run, verify and `list cases`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.hpp"
#include "sweep/axes.hpp"
#include "sweep/filter.hpp"
#include "sweep/plan.hpp"

namespace CLI {
class App;
}

namespace rooflash {

// As typed.
struct SweepFlags {
  std::string suite;
  std::map<std::string, std::string> axes;  // by axis name; those given
  std::vector<std::string> filters;
  std::vector<std::string> devices;
  bool fwd = false;
  bool bwd = false;
  std::string seed = "1";
  std::string order = "shuffle";
  std::string rounds = "1";
};

// `defaults`, by axis name, are what the help gives where a command has its own. Without `rounds`
// there is no --rounds: the command has one of its own.
void add_sweep_flags(CLI::App& app, SweepFlags& flags,
                     const std::map<std::string, std::string>& defaults = {}, bool rounds = true);

struct Sweep {
  std::string suite;  // its name; "flags" where the axes came from flags alone
  std::vector<Axes> grids;
  std::vector<std::string> devices;  // as typed, else the suite's; empty: the command's default
  Filter filter;
  std::uint64_t seed = 1;
  Order order = Order::shuffle;
  int rounds = 1;

  // At least one case: throws Error(nothing_ran) where there is none, with the reason.
  std::vector<Case> plan(const std::vector<PlanDevice>& on) const;
};

// The suite with each axis that has a flag replaced in all its grids; with no suite, `defaults`
// takes that place. Throws UsageError.
Sweep resolve_sweep(const SweepFlags& flags, const Axes& defaults = {});

// Prints the cases of the sweep on stdout, one a line. Throws Error(nothing_ran) where there is
// none.
void print_plan(const Sweep& sweep, const std::vector<PlanDevice>& on);

// The devices as the plan sees them.
std::vector<PlanDevice> plan_devices(const std::vector<DeviceInfo>& devices);

// A whole number of at least 0. Throws UsageError naming `flag`.
std::uint64_t parse_seed(std::string_view text, std::string_view flag);

// `text` if it is one of `choices`. Throws UsageError naming `flag`.
const std::string& require_choice(const std::string& text, std::string_view flag,
                                  const std::vector<std::string>& choices);

}  // namespace rooflash
