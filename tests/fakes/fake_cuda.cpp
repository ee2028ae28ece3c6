// A CUDA driver that serves CUDA 11.4 at most: older than any toolkit this can be built with. The
// runtime asks for its version and goes no further.
#include <string_view>

extern "C" {

int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}

static int not_initialised() {
  return 3;
}

int cuGetProcAddress_v2(const char* symbol, void** address, int, unsigned long long, int* found) {
  const std::string_view name = symbol;
  if (name == "cuDriverGetVersion") {
    *address = reinterpret_cast<void*>(cuDriverGetVersion);
  } else if (name == "cuGetProcAddress") {
    *address = reinterpret_cast<void*>(cuGetProcAddress_v2);
  } else {
    *address = reinterpret_cast<void*>(not_initialised);
  }
  if (found != nullptr) *found = 0;
  return 0;
}

}  // extern "C"
