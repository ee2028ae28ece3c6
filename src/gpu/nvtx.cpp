#include "gpu/nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstddef>

namespace rooflash {
namespace {

struct Domain {
  nvtxDomainHandle_t handle = nvtxDomainCreateA("rooflash");
  std::array<nvtxStringHandle_t, 5> phases{
      nvtxDomainRegisterStringA(handle, "setup"), nvtxDomainRegisterStringA(handle, "warmup"),
      nvtxDomainRegisterStringA(handle, "timed"), nvtxDomainRegisterStringA(handle, "counters"),
      nvtxDomainRegisterStringA(handle, "verify")};
};

const Domain& domain() {
  static const Domain instance;
  return instance;
}

nvtxEventAttributes_t attributes() {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return event;
}

}  // namespace

NvtxRange::NvtxRange(NvtxPhase phase) {
  nvtxEventAttributes_t event = attributes();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = domain().phases[static_cast<std::size_t>(phase)];
  (void)nvtxDomainRangePushEx(domain().handle, &event);
}

NvtxRange::NvtxRange(const std::string& label) {
  nvtxEventAttributes_t event = attributes();
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = label.c_str();
  (void)nvtxDomainRangePushEx(domain().handle, &event);
}

NvtxRange::~NvtxRange() {
  (void)nvtxDomainRangePop(domain().handle);
}

}  // namespace rooflash
