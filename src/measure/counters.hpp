// Hardware counters of one launch, through CUPTI's range profiler (user range, user replay).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/outer_tool.hpp"
#include "core/record.hpp"
#include "measure/counter_failure.hpp"
#include "measure/metrics.hpp"
#include "profile/counted.hpp"

struct CUctx_st;  // a CUcontext points to one

namespace rooflash {

// Where a session counts. Plain values, so that it can be driven where there is no GPU.
struct CounterTarget {
  int ordinal = 0;
  CUctx_st* context = nullptr;        // of that device
  std::function<void()> synchronize;  // until the device is idle; throws the errors of its work
};

// Device `ordinal`, which must be current. Its context is null where none can be found.
CounterTarget counter_target(int ordinal);

// One per CUDA context, made once and reused. The counters run only inside `measure` and `count`;
// times taken between them are not touched. They stay this process's own until the session ends.
class CounterSession {
 public:
  // Stands down where a `tool` is named: it owns the counters. Never throws: what does not work is
  // told by `measure`.
  explicit CounterSession(CounterTarget target, const std::string& tool = outer_tool());
  ~CounterSession();
  CounterSession(const CounterSession&) = delete;
  CounterSession& operator=(const CounterSession&) = delete;

  // Counts what `launch` queues. `prepare` puts the caches and accumulators in the state wanted
  // before each pass; what it does is not counted. Both run with the device idle. Status and reason
  // tell a failure of counting; an exception is the launch's own.
  Counters measure(DType dtype, const std::function<void()>& prepare,
                   const std::function<void()>& launch, const CounterExpectation& expected);

  // The same for any list of metrics of the chip, with no expectation of their values. `launch`
  // runs once for each pass. One unknown name fails the whole list.
  CountedGroup count(const std::vector<std::string>& metrics, const std::function<void()>& prepare,
                     const std::function<void()>& launch);

  // "<path>, API <version>", or why there is no library.
  std::string library() const;
  const CuptiApi& api() const;
  // CUPTI's name of the device's chip ("GH100"), "" where it did not come to that.
  std::string chip() const;
  // Why nothing can be counted; its status is "" while counting may work.
  CounterFailure failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rooflash
