// Ctrl-C and SIGTERM. Once a worker was started, the first asks the run to stop in good order, and
// the second ends the driver at once (its workers die with it). Before that, and in commands that
// start none, the first ends it.
#pragma once

namespace rooflash {

// Ignores SIGPIPE: a reader or worker that is gone shows as a failed write.
void ignore_broken_pipes();

// Installs the handlers for SIGINT, SIGTERM and SIGHUP, except for those that the caller ignores
// (nohup); once, however often it is called.
void catch_stop_signals();

// The signal that asked to stop, or 0.
int stop_signal();

// A descriptor that becomes readable when a signal asks to stop; for poll().
int stop_fd();

}  // namespace rooflash
