// Hardware counters of one launch, through CUPTI's range profiler (user range, user replay).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/record.hpp"
#include "measure/metrics.hpp"

namespace rooflash {

// One per CUDA context, made once and reused. Collection is switched on only inside `measure`, so
// that times taken outside are not touched.
class CounterSession {
 public:
  // Device `ordinal` must be current. Never throws: what does not work is told by `measure`.
  explicit CounterSession(int ordinal);
  ~CounterSession();
  CounterSession(const CounterSession&) = delete;
  CounterSession& operator=(const CounterSession&) = delete;

  // Counts what `launch` queues. `prepare` puts the caches and accumulators in the state wanted
  // before each pass; what it does is not counted. Both run with the device idle. Status and reason
  // tell a failure of counting; an exception is the launch's own.
  Counters measure(DType dtype, const std::function<void()>& prepare,
                   const std::function<void()>& launch, const CounterExpectation& expected);

  // "<path>, API <version>", or why there is no library.
  std::string library() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rooflash
