// Progress of a run on stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "core/record.hpp"

namespace rooflash {

// On a terminal one status line, redrawn at most every 100 ms; elsewhere a line at each 10 %,
// at most one a second. Drawn only when a case has ended, so that it never disturbs a measurement
// on its device.
class Progress {
 public:
  Progress(std::size_t total, bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void row_done(const Row& row);

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::string text(const Row* row, Time now) const;

  std::size_t total_;
  std::size_t done_ = 0;
  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  Time start_;
  Time last_drawn_;
};

}  // namespace rooflash
