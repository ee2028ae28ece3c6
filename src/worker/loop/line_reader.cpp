#include "worker/loop/line_reader.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <thread>

#include "core/error.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxLineBytes = 1 << 20;  // a request is below 2 KiB

}  // namespace

LineReader::LineReader(int fd) : queue_(std::make_shared<Queue>()) {
  std::thread([fd, queue = queue_] { read(fd, *queue); }).detach();
}

void LineReader::read(int fd, Queue& queue) {
  std::string pending;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    // _exit: destructors could wait for the case that is running.
    if (count <= 0) _exit(0);
    std::string_view chunk(buffer, static_cast<std::size_t>(count));
    const std::lock_guard lock(queue.mutex);
    for (std::size_t end = 0; (end = chunk.find('\n')) != std::string_view::npos;) {
      pending += chunk.substr(0, end);
      chunk.remove_prefix(end + 1);
      queue.lines.push_back(std::move(pending));
      pending.clear();
    }
    pending += chunk;
    if (pending.size() > kMaxLineBytes) {
      queue.too_long = true;
      pending.clear();
    }
    queue.filled.notify_one();
  }
}

std::string LineReader::next() {
  std::unique_lock lock(queue_->mutex);
  queue_->filled.wait(lock, [&] { return queue_->too_long || !queue_->lines.empty(); });
  if (queue_->lines.empty()) {
    throw UsageError("a request is longer than " + std::to_string(kMaxLineBytes) + " bytes",
                     "send one JSON object a line");
  }
  std::string line = std::move(queue_->lines.front());
  queue_->lines.pop_front();
  return line;
}

}  // namespace rooflash
