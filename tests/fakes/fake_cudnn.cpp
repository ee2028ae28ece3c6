// A cuDNN of version FAKE_CUDNN_VERSION (0: one that does not tell) that makes handles as
// FAKE_CUDNN says (script.hpp), and has nothing else.
#include <cstddef>
#include <cstdio>

#include "fakes/script.hpp"

namespace {
fake::Script script("FAKE_CUDNN");
}

extern "C" {

#if FAKE_CUDNN_VERSION > 0
std::size_t cudnnGetVersion() {
  return FAKE_CUDNN_VERSION;
}
#endif
int cudnnCreate(void** handle) {
  *handle = &script;
  return script.call(__func__);
}
const char* cudnnGetErrorString(int code) {
  return code == 1001 ? "CUDNN_STATUS_NOT_INITIALIZED" : "CUDNN_STATUS_FAKE";
}
void cudnnGetLastErrorString(char* text, std::size_t size) {
  std::snprintf(text, size, "%s", "as the script says");
}

}  // extern "C"
