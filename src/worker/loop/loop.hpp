// The worker's side of the protocol (worker/protocol.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "worker/backend.hpp"

namespace rooflash {

// Makes the backend of "cuda:0" or "sim:h200". Throws Error.
using BackendFactory = std::function<std::unique_ptr<Backend>(const std::string& device)>;

// Points stdout at stderr and returns a new descriptor of what was stdout, closed on exec.
int take_stdout();

// Reads requests from `in_fd` and writes replies to `out_fd` until a fatal error or a lost device;
// returns the exit code of the process. The end of the input, also during a case, ends the process
// at once: nobody waits for the result, and a GPU must not stay held. So does an output that nobody
// reads.
int serve(int in_fd, int out_fd, const BackendFactory& make_backend);

// {"type":"error",...} on one line, without the line end.
std::string error_line(const Error& error);

}  // namespace rooflash
