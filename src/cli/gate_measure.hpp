// What a gate measures itself: rounds of two executables in turns, each run a fresh process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/folder_lock.hpp"
#include "cli/gate_executable.hpp"
#include "core/record.hpp"

namespace rooflash {

struct GateSweep {
  std::vector<std::string> cases;      // words for `rooflash run` that choose the cases
  std::vector<std::string> measuring;  // words that say how they are measured
  std::vector<std::string> devices;    // resolved: "cuda:0"
  std::uint64_t seed = 1;
};

// Rounds of a gate, kept as records in FOLDER/rounds while it runs, so that nothing measured is
// lost when it is interrupted: with `resume` what is there is used.
class GateSession {
 public:
  // Throws UsageError where `folder` cannot be used, is used by another gate now, or holds the
  // rounds of another gate that `resume` would go on with. Rounds of an unfinished gate are moved
  // to FOLDER/rounds.old.
  GateSession(std::string folder, const GateSweep& sweep, std::vector<Executable> executables,
              bool resume, bool quiet);

  // Asks each executable to plan the sweep, so that bad flags are refused before any work. Throws
  // Error with its message.
  void check_plans() const;

  // `rounds` rounds of every executable in turn, the order of the turns alternating, with a fresh
  // order of the cases in each round: a record for each executable, its rounds counted from
  // `first_round`. `only`: the cases of the sweep to measure, empty for all. Throws
  // Error(interrupted), and Error where a run gives no record.
  std::vector<Record> measure(const std::string& stage, int rounds, int first_round,
                              const std::vector<const Row*>& only);

  // All rounds are measured: a later gate may replace them. Writes each executable's record to
  // FOLDER/LABEL.json and gives the paths.
  std::vector<std::string> finish(const std::vector<Record>& records) const;

 private:
  Record measure_once(const Executable& executable, const std::vector<std::string>& words,
                      const std::string& path) const;
  std::vector<std::string> stage_words(const std::string& stage,
                                       const std::vector<const Row*>& only) const;

  std::string folder_;
  FolderLock lock_;
  GateSweep sweep_;
  std::vector<Executable> executables_;
  bool quiet_;
};

}  // namespace rooflash
