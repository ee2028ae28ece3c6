// --device: which devices a command uses.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct DeviceChoice {
  std::vector<DeviceInfo> devices;
  std::string note;  // what `auto` took and why; "" where devices were named
};

// `elements` as typed, each a list: "auto", "all", "0,1", "cuda:1", "sim:h200". Throws UsageError
// on an unknown name or an index too high, Error(no_gpu) where a GPU is asked for and there is
// none.
DeviceChoice choose_devices(const std::vector<std::string>& elements);

// Says on stderr which devices run and whether they are simulated.
void announce(const DeviceChoice& choice);

}  // namespace rooflash
