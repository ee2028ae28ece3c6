// rooflash: the driver. Parses, dispatches, and is the only place that catches.
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/terminal.hpp"
#include "core/descriptors.hpp"
#include "core/error.hpp"
#include "worker/driver/interrupt.hpp"

int main(int argc, char** argv) {
  using namespace rooflash;
  fill_standard_descriptors();
  try {
    ignore_broken_pipes();
    return run_command_line(std::vector<std::string>(argv, argv + argc));
  } catch (const Error& error) {
    print_error(error.what(), error.hint());
    if (error.code() == ExitCode::interrupted && stop_signal() != 0) return 128 + stop_signal();
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    print_error(error.what(), "This is a fault of rooflash; please report it with the command.");
    return static_cast<int>(ExitCode::incomplete);
  }
}
