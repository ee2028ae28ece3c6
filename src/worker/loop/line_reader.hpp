// Lines from a pipe, read by a thread of its own, so that the end of the input is seen while the
// worker is busy.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace rooflash {

class LineReader {
 public:
  // The end of the input of `fd` ends the process with exit code 0. The thread lives as long as the
  // process.
  explicit LineReader(int fd);

  // The next line, without its end. Throws UsageError where it is too long to be a request.
  std::string next();

 private:
  // Shared with the reading thread, which may outlive this object.
  struct Queue {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::string> lines;
    bool too_long = false;
  };
  static void read(int fd, Queue& queue);

  std::shared_ptr<Queue> queue_;
};

}  // namespace rooflash
