// What a fake library is told to do: entries of an environment variable, separated by ';'.
//
//   FUNCTION=CODE     every call returns CODE (and does nothing)
//   FUNCTION@2=CODE   the second call alone
//   FUNCTION=hang     never returns;  FUNCTION=crash  ends the process by SIGSEGV
//   KEY=VALUE         read by the fake itself
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace fake {

class Script {
 public:
  explicit Script(const char* variable) : variable_(variable) {}

  // The value of `key` in the variable as it is now; the first entry wins.
  std::optional<std::string> value(std::string_view key) const {
    const char* text = std::getenv(variable_);
    std::string_view rest = text != nullptr ? text : "";
    while (!rest.empty()) {
      const std::string_view entry = rest.substr(0, rest.find(';'));
      rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
      const std::size_t equals = entry.find('=');
      if (equals != std::string_view::npos && entry.substr(0, equals) == key) {
        return std::string(entry.substr(equals + 1));
      }
    }
    return std::nullopt;
  }
  double number(std::string_view key, double otherwise) const {
    const auto text = value(key);
    return text ? std::strtod(text->c_str(), nullptr) : otherwise;
  }
  std::size_t count(std::string_view key, std::size_t otherwise) const {
    return static_cast<std::size_t>(number(key, static_cast<double>(otherwise)));
  }

  // Notes a call, and gives what it is to return; 0 where the script says nothing of it.
  int call(const std::string& function) {
    int nth = 0;
    {
      const std::lock_guard lock(mutex_);
      nth = ++calls_[function];
    }
    auto code = value(function + "@" + std::to_string(nth));
    if (!code) code = value(function);
    if (!code) return 0;
    if (*code == "hang") {
      while (true) pause();
    }
    if (*code == "crash") std::raise(SIGSEGV);
    return std::atoi(code->c_str());
  }
  int calls(const std::string& function) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(function);
    return found != calls_.end() ? found->second : 0;
  }
  void reset() {
    const std::lock_guard lock(mutex_);
    calls_.clear();
  }

 private:
  const char* variable_;
  mutable std::mutex mutex_;
  std::map<std::string, int> calls_;
};

}  // namespace fake
