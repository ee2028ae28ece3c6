// Elements followed on the CPU through shared memory and registers, by the PTX ISA's definitions of
// what TMA, ldmatrix, prmt, stmatrix and wgmma do and the kernels' own indices: P V pairs key with
// key and column with column.
#include "fp8/layout.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "fp8/config.hpp"

namespace rooflash::fp8 {
namespace {

struct Tile {
  int headdim, block_n;
  int row_bytes() const { return row_bytes_of(headdim); }
};
constexpr Tile kTiles[] = {{64, 64},   {64, 96},  {64, 128}, {128, 64}, {128, 96},
                           {128, 128}, {256, 32}, {256, 64}, {256, 96}};

// ---- the machine

// Address bits that a swizzle of rows of `width` bytes exchanges, of an address in a buffer that
// begins at a multiple of 1024: bits 4.. are xored with bits 7.., as many as the width has chunks.
std::uint32_t swizzled(std::uint32_t address, int width) {
  const auto mask = static_cast<std::uint32_t>(width / 16 - 1);
  return address ^ ((address >> 7 & mask) << 4);
}

// An element that can be told from all others of its tensor.
struct Element {
  int row = -1, column = -1;
  bool operator==(const Element&) const = default;
};
using Memory = std::vector<Element>;  // one a byte
using Register = std::array<Element, 4>;
using Lanes = std::array<std::array<Register, 4>, 32>;  // four registers of each lane

// TMA: a box of `rows` rows of `width` elements from `column` on.
void load_box(Memory& memory, std::uint32_t target, int rows, int width, int column) {
  for (int row = 0; row < rows; ++row) {
    for (int byte = 0; byte < width; ++byte) {
      memory.at(swizzled(target + static_cast<std::uint32_t>(row * width + byte), width)) = {
          row, column + byte};
    }
  }
}
Memory loaded(int rows, int headdim, int width) {
  Memory memory(static_cast<std::size_t>(rows * headdim));
  for (int column = 0; column < headdim; column += width) {
    load_box(memory, static_cast<std::uint32_t>(column * rows), rows, width, column);
  }
  return memory;
}

// ldmatrix .x4 .trans of 16-bit elements: lane t gives row t % 8 of matrix t / 8, and gets of each
// matrix rows 2 (t % 4) and the next, column t / 4.
Lanes ldmatrix_trans(const Memory& memory, const std::array<std::uint32_t, 32>& addresses) {
  Lanes lanes;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      for (std::size_t byte = 0; byte < 4; ++byte) {
        const std::size_t row = lane % 4 * 2 + byte / 2;
        lanes[lane][matrix][byte] =
            memory.at(addresses.at(matrix * 8 + row) + lane / 4 * 2 + byte % 2);
      }
    }
  }
  return lanes;
}
Register prmt(const Register& a, const Register& b, unsigned selector) {
  Register result;
  for (unsigned byte = 0; byte < 4; ++byte) {
    const unsigned from = selector >> 4 * byte & 7U;
    result.at(byte) = from < 4 ? a.at(from) : b.at(from - 4);
  }
  return result;
}
// stmatrix .x4: lane t gives row t % 8 of matrix t / 8, and holds of each matrix row t / 4, the
// 16-bit columns 2 (t % 4) and the next.
void stmatrix(Memory& memory, const std::array<std::uint32_t, 32>& addresses, const Lanes& lanes) {
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      for (std::size_t byte = 0; byte < 4; ++byte) {
        memory.at(addresses.at(matrix * 8 + lane / 4) + lane % 4 * 4 + byte) =
            lanes[lane][matrix][byte];
      }
    }
  }
}
// wgmma's K-major operand by descriptor: groups of eight rows lie 8 rows apart.
Element operand(const Memory& memory, std::uint32_t start, int width, int row, int k) {
  const auto address =
      start + static_cast<std::uint32_t>(row / 8 * (8 * width) + row % 8 * width + k);
  return memory.at(swizzled(address, width));
}

bool banks_differ(const std::array<std::uint32_t, 32>& addresses, std::size_t first) {
  std::set<std::uint32_t> banks;
  for (std::size_t i = 0; i < 8; ++i) banks.insert(addresses.at(first + i) % 128 / 16);
  return banks.size() == 8;
}

// ---- the kernels' part

// What the transposing warps do to a tile of V.
Memory transposed(const Tile& tile) {
  const Memory raw = loaded(tile.block_n, tile.headdim, tile.row_bytes());
  Memory result(raw.size());
  for (int step = 0; step < tile.block_n / 32; ++step) {
    for (int chunk = 0; chunk < tile.headdim / 16; ++chunk) {
      std::array<std::uint32_t, 32> from{};
      std::array<std::uint32_t, 32> to{};
      for (int lane = 0; lane < 32; ++lane) {
        const auto i = static_cast<std::size_t>(lane);
        from[i] = loaded_offset(tile.row_bytes(), tile.block_n, lane, step, chunk);
        to[i] = transposed_offset(tile.headdim, lane, step, chunk);
      }
      Lanes lanes = ldmatrix_trans(raw, from);
      for (auto& registers : lanes) {
        registers = {prmt(registers[0], registers[1], kEvenChannels),
                     prmt(registers[0], registers[1], kOddChannels),
                     prmt(registers[2], registers[3], kEvenChannels),
                     prmt(registers[2], registers[3], kOddChannels)};
      }
      stmatrix(result, to, lanes);
      for (std::size_t first = 0; first < 32; first += 8) {
        EXPECT_TRUE(banks_differ(from, first)) << "ldmatrix, step " << step << " chunk " << chunk;
        EXPECT_TRUE(banks_differ(to, first)) << "stmatrix, step " << step << " chunk " << chunk;
      }
    }
  }
  return result;
}

TEST(Fp8Layout, KeysOfSixteenAreAllThere) {
  std::set<int> keys;
  std::set<int> channels;
  for (int i = 0; i < 16; ++i) {
    keys.insert(key_at(i));
    channels.insert(channel_of(16 + i) - 16);
  }
  EXPECT_EQ(keys.size(), 16U);
  EXPECT_EQ(channels.size(), 16U);
  EXPECT_EQ(*keys.rbegin(), 15);
  EXPECT_EQ(*channels.rbegin(), 15);
}

TEST(Fp8Layout, ChunksLieWhereTheSwizzleOfTheMachinePutsThem) {
  for (const int width : {32, 64, 128}) {
    for (int row = 0; row < 64; ++row) {
      for (int chunk = 0; chunk < width / 16; ++chunk) {
        EXPECT_EQ(chunk_offset(width, row, chunk),
                  swizzled(static_cast<std::uint32_t>(row * width + chunk * 16), width));
      }
    }
  }
}

// Q and K as operands: step k of 32 bytes within a column, columns one after another.
TEST(Fp8Layout, StepsAlongARowAreStepsOfTheProduct) {
  for (const Tile& tile : kTiles) {
    const int width = tile.row_bytes();
    const Memory memory = loaded(tile.block_n, tile.headdim, width);
    for (int step = 0; step < tile.headdim / 32; ++step) {
      const int column = step * 32 / width;
      const auto start =
          static_cast<std::uint32_t>(column * tile.block_n * width + step * 32 % width);
      for (int row = 0; row < tile.block_n; ++row) {
        for (int k = 0; k < 32; ++k) {
          EXPECT_EQ(operand(memory, start, width, row, k), (Element{row, step * 32 + k}));
        }
      }
    }
  }
}

TEST(Fp8Layout, VIsTransposedWithKeysAndChannelsInTheirOrders) {
  for (const Tile& tile : kTiles) {
    const Memory memory = transposed(tile);
    for (int step = 0; step < tile.block_n / 32; ++step) {
      const auto start = static_cast<std::uint32_t>(step * tile.headdim * kTransposedRowBytes);
      for (int row = 0; row < tile.headdim; ++row) {
        for (int k = 0; k < 32; ++k) {
          const int key = step * 32 + k / 16 * 16 + key_at(k % 16);
          EXPECT_EQ(operand(memory, start, kTransposedRowBytes, row, k),
                    (Element{key, channel_of(row)}))
              << tile.headdim << " x " << tile.block_n << " row " << row << " k " << k;
        }
      }
    }
  }
}

// ldmatrix .x4 or .x2 gives lane t of each matrix row t / 4, bytes 4 (t % 4) ...; mma.sync m16n8k32
// takes of A rows t / 4 and 8 below, then the same 16 bytes on; of B column t / 4, then 16 bytes
// on.
TEST(Fp8Layout, OperandsOfMmaSyncAreRowsOfTheirTiles) {
  for (const Tile& tile : kTiles) {
    const int width = tile.row_bytes();
    for (const int rows : {kWarpgroupRows, tile.block_n}) {
      const Memory memory = loaded(rows, tile.headdim, width);
      for (int step = 0; step < tile.headdim / 32; ++step) {
        for (int lane = 0; lane < 32; ++lane) {
          for (int first = 0; first + 16 <= rows; first += 16) {
            for (int matrix = 0; matrix < 4; ++matrix) {
              const int giver = matrix * 8 + lane / 4;
              const std::uint32_t at = a_offset(width, rows, giver, first, step);
              EXPECT_EQ(memory.at(at + static_cast<unsigned>(lane % 4 * 4)),
                        (Element{first + matrix % 2 * 8 + lane / 4,
                                 step * 32 + matrix / 2 * 16 + lane % 4 * 4}));
            }
          }
          for (int first = 0; first < rows; first += 8) {
            for (int matrix = 0; matrix < 2; ++matrix) {
              const std::uint32_t at = b_offset(width, rows, matrix * 8 + lane / 4, first, step);
              EXPECT_EQ(memory.at(at + static_cast<unsigned>(lane % 4 * 4)),
                        (Element{first + lane / 4, step * 32 + matrix * 16 + lane % 4 * 4}));
            }
          }
        }
      }
    }
  }
}

// wgmma's accumulators: lane t of warp w holds row 16 w + t / 4 and the one 8 below, at[n][2 r + c]
// being column 8 n + 2 (t % 4) + c. Its A operand of 8-bit elements: registers 0 and 2 hold row t /
// 4, 1 and 3 the one 8 below; 0 and 1 k 4 (t % 4) ..., 2 and 3 k 16 + 4 (t % 4) ...
Element accumulator(int lane, const Accumulator& at) {
  return {lane / 4 + at.i / 2 * 8, at.block * 8 + lane % 4 * 2 + at.i % 2};
}

TEST(Fp8Layout, WeightsAreAnOperandAsTheAccumulatorsHoldThem) {
  for (const int block_n : {32, 64, 96, 128}) {
    for (int step = 0; step < block_n / 32; ++step) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int reg = 0; reg < 4; ++reg) {
          for (int byte = 0; byte < 4; ++byte) {
            const int row = lane / 4 + reg % 2 * 8;
            const int k = reg / 2 * 16 + lane % 4 * 4 + byte;
            const int key = step * 32 + k / 16 * 16 + key_at(k % 16);
            EXPECT_EQ(accumulator(lane, weight_at(step, reg, byte)), (Element{row, key}));
          }
        }
      }
    }
  }
}

// What O's threads put down is what a TMA store of 16 rows, 64 channels of 16 bits a column, takes
// up.
TEST(Fp8Layout, ChannelsOfOComeBackInOrder) {
  for (const int headdim : {64, 128, 256}) {
    Memory memory(static_cast<std::size_t>(16 * headdim * 2));
    for (int lane = 0; lane < 32; ++lane) {
      for (int group = 0; group < headdim / 16; ++group) {
        for (int r = 0; r < 2; ++r) {
          for (int i = 0; i < 4; ++i) {
            const Element held = accumulator(lane, o_at(group, r, i));
            const Element element{held.row, channel_of(held.column)};
            EXPECT_EQ(element, (Element{lane / 4 + 8 * r, 16 * group + 4 * (lane % 4) + i}));
            const std::uint32_t at = staged_offset(lane, r, group) + 2U * static_cast<unsigned>(i);
            EXPECT_EQ(memory.at(at), Element{}) << "written twice";
            memory.at(at) = memory.at(at + 1) = element;
          }
        }
      }
    }
    for (int row = 0; row < 16; ++row) {
      for (int channel = 0; channel < headdim; ++channel) {
        const auto start = static_cast<std::uint32_t>(channel / 64 * 16 * 128);
        const auto at = swizzled(start + static_cast<std::uint32_t>(row * 128 + channel % 64 * 2),
                                 kStagedRowBytes);
        EXPECT_EQ(memory.at(at), (Element{row, channel}));
      }
    }
  }
}

// All of it together, with numbers: O = P V.
TEST(Fp8Layout, WeightsTimesVIsTheirProduct) {
  for (const Tile& tile : kTiles) {
    const auto weight = [](int row, int key) { return (row * 7 + key * 13) % 31 - 15; };
    const auto value = [](int key, int channel) { return (key * 5 + channel * 11) % 29 - 14; };
    const Memory v = transposed(tile);
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < tile.headdim; ++column) {
        int sum = 0;
        int expected = 0;
        for (int step = 0; step < tile.block_n / 32; ++step) {
          for (int k = 0; k < 32; ++k) {
            // The lane, register and byte that wgmma reads A's element (row, k) from.
            const int lane = row % 8 * 4 + k % 16 / 4;
            const Element p = accumulator(lane, weight_at(step, k / 16 * 2 + row / 8, k % 4));
            const Element b =
                operand(v, static_cast<std::uint32_t>(step * tile.headdim * kTransposedRowBytes),
                        kTransposedRowBytes, column, k);
            sum += weight(p.row, p.column) * value(b.row, b.column);
          }
        }
        for (int key = 0; key < tile.block_n; ++key) {
          expected += weight(row, key) * value(key, channel_of(column));
        }
        EXPECT_EQ(sum, expected) << tile.headdim << " x " << tile.block_n;
      }
    }
  }
}

}  // namespace
}  // namespace rooflash::fp8
