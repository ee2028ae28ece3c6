// The records of the last runs without -o, in XDG_STATE_HOME/rooflash/runs: last.json, then
// last-1.json of the run before it, and so on.
#pragma once

#include <string>

namespace rooflash {

inline constexpr int kMostRunsBack = 9;

// Where the record of the run that is `back` runs before the last one lies, whether it is there or
// not. Throws UsageError where there is no place for runs.
std::string kept_run_path(int back);

// Called before last.json is replaced: what is in it, and in the files after it, moves on by one,
// and the oldest goes. last.json itself stays, so that it is there whatever happens to the new one.
// An incomplete record that `resumed` says is the same run does not move on. Gives what went wrong,
// or "".
std::string keep_previous_run(bool resumed);

}  // namespace rooflash
