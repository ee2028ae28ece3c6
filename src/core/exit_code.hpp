// Exit codes of the command line. Stable: scripts and CI jobs depend on them.
#pragma once

namespace rooflash {

enum class ExitCode : int {
  ok = 0,
  slower = 1,          // gate: a slow-down was confirmed
  usage = 2,           // bad flag, suite, record or output path; nothing was run
  wrong = 3,           // a kernel's result is wrong; beats every other verdict
  not_comparable = 4,  // other GPU model, other case definition, missing baseline
  unsure = 5,          // only where it was asked for
  incomplete = 6,      // a case crashed, timed out, failed or ran out of memory unexpectedly
  nothing_ran = 7,
  not_fit = 8,        // doctor: not fit to measure
  no_gpu = 77,        // a GPU was asked for and there is none, or no driver
  interrupted = 130,  // 128 + the signal: 129 hung up, 130 interrupted, 143 terminated
};

}  // namespace rooflash
