// Ctrl-C and SIGTERM. The first asks the run to stop in good order; the second ends the driver at
// once (its workers die with it).
#pragma once

namespace rooflash {

// Installs the handlers for SIGINT, SIGTERM and SIGHUP, except for those that the caller ignores
// (nohup), and ignores SIGPIPE: a worker that is gone shows as a failed write. Call once.
void install_signal_handlers();

// The signal that asked to stop, or 0.
int stop_signal();

// A descriptor that becomes readable when a signal asks to stop; for poll().
int stop_fd();

}  // namespace rooflash
