#include "core/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace rooflash {

void fill_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const bool closed = fcntl(fd, F_GETFD) == -1 && errno == EBADF;
    // Gives the lowest free number, which is `fd`: those below it are open by now.
    if (closed && open("/dev/null", O_RDWR) != fd) _exit(1);
  }
}

}  // namespace rooflash
