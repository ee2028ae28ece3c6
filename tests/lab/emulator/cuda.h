// In place of the driver's header: a tensor map that the emulated copy engine reads.
#pragma once

#include <cstdint>

struct alignas(64) CUtensorMap {
  unsigned char* data;
  std::int64_t width, heads, seqlen, batch;
  int element_bytes, columns, rows;
};
