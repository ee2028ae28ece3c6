#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "cli/terminal.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

std::string clock_text(double seconds) {
  const auto whole = std::llround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::size_t total, bool enabled)
    : total_(total),
      enabled_(enabled),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      last_drawn_(start_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

std::string Progress::text(const Row* row, Time now) const {
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  const std::size_t digits = fmt::formatted_size("{}", total_);
  std::string line = fmt::format("[{:>{}}/{}] ", done_, digits, total_);
  if (row != nullptr) {
    line += printable(row->case_id) + "  ";
    line += row->derived.tflops ? format_rate(*row->derived.tflops, "TFLOPS")
                                : std::string(to_string(row->status));
  } else {
    line += clock_text(elapsed) + " elapsed";
  }
  return line + (row != nullptr ? "  ETA " : ", ETA ") + clock_text(left);
}

void Progress::row_done(const Row& row) {
  ++done_;
  if (!enabled_) return;
  const Time now = std::chrono::steady_clock::now();
  if (!terminal_) {
    const bool due = done_ * 10 / total_ != (done_ - 1) * 10 / total_;
    if (!due || now - last_drawn_ < std::chrono::seconds(1)) return;
    print_message(text(nullptr, now));
    last_drawn_ = now;
    return;
  }
  if (drawn_ && now - last_drawn_ < std::chrono::milliseconds(100)) return;
  const auto width = static_cast<std::size_t>(terminal_width(STDERR_FILENO)) - 1;
  std::fputs(("\r\x1b[K" + text(&row, now).substr(0, width)).c_str(), stderr);
  drawn_ = true;
  last_drawn_ = now;
}

}  // namespace rooflash
