// From axes to the cases of a run, in the order they run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "kernel.hpp"
#include "sweep/axes.hpp"
#include "sweep/filter.hpp"

namespace rooflash {

struct PlanDevice {
  std::string name;  // "cuda:0", "sim:h200"
  int sm = 0;        // compute capability, 90 for 9.0; 0 where unknown: any GPU's variants count
};

enum class Order { shuffle, grid };

struct Case {
  std::string kernel;
  Problem problem;
  std::string device;
  int round = 0;
  std::string unsupported_reason;  // not empty: the row is `unsupported`, nothing runs
};

struct Selection {
  std::vector<const Kernel*> kernels;
  bool named = false;  // the user wrote names, so what they do not support is a row, not a silence
};

// The families that `elements` of --kernel pick. Hidden ones only by name. Throws UsageError.
Selection select_kernels(const std::vector<std::string>& elements);

// Refuses those of `asked`'s options that no kernel of the grids has, and those of e4m3 where no
// grid has that type. Throws UsageError.
void check_options(const Axes& asked, std::span<const Axes> grids);

// All cases of all rounds. In `shuffle` order the problems of a round are shuffled and the kernels
// of one problem stand side by side in random order; the same seed gives the same plan on every
// platform. Every device gets every case. A kernel that does not support a problem gives a case
// with the reason where it was named, and none where kernels were defaulted. May be empty.
std::vector<Case> make_plan(std::span<const Axes> grids, const Filter& filter,
                            std::span<const PlanDevice> devices, int rounds, std::uint64_t seed,
                            Order order);

}  // namespace rooflash
