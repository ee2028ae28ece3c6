#include "common/code_size.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace rooflash {
namespace {

template <class T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// A cubin of sections that hold nothing: header, names, section headers.
std::string cubin(int abi_version, std::uint32_t flags,
                  const std::vector<std::pair<std::string, std::uint64_t>>& sections) {
  std::string names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);  // the first is the names' own
  for (const auto& [name, bytes] : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_size = bytes;
    headers.push_back(header);
    names += name + '\0';
  }
  headers[0].sh_offset = sizeof(Elf64_Ehdr);
  headers[0].sh_size = names.size();

  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_ident[EI_ABIVERSION] = static_cast<unsigned char>(abi_version);
  elf.e_machine = EM_CUDA;
  elf.e_flags = flags;
  elf.e_shoff = sizeof(Elf64_Ehdr) + names.size();
  elf.e_shentsize = sizeof(Elf64_Shdr);
  elf.e_shnum = static_cast<Elf64_Half>(headers.size());
  std::string text;
  append(text, elf);
  text += names;
  for (const Elf64_Shdr& header : headers) append(text, header);
  return text;
}

const std::string kHopper =
    cubin(8, 0x0a005a04, {{".text.one", 35584}, {".nv.info.one", 96}, {".text.two", 128}});

TEST(CodeSizes, AreThoseOfTheTextSectionsByArchitecture) {
  const std::string image =
      "other bytes" + cubin(7, 0x00500550, {{".text.one", 256}}) + "between" + kHopper;
  EXPECT_EQ(code_sizes(image),
            (CodeSizes{{{80, "one"}, 256}, {{90, "one"}, 35584}, {{90, "two"}, 128}}));
}

TEST(CodeSizes, OtherElfFilesHaveNone) {
  std::string host = kHopper;
  host[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
  EXPECT_TRUE(code_sizes(host).empty());
  EXPECT_FALSE(own_code_bytes("main", 90));  // this test carries no device code
}

// No byte of it may send the reader past its end.
TEST(CodeSizes, DamagedCubinsAreNotReadPastTheirEnd) {
  for (std::size_t length = 0; length < kHopper.size(); ++length) {
    EXPECT_LT(code_sizes(kHopper.substr(0, length)).size(), 2U);
  }
  for (std::size_t i = SELFMAG; i < kHopper.size(); ++i) {
    std::string damaged = kHopper;
    damaged[i] = '\xff';
    EXPECT_LE(code_sizes(damaged).size(), 3U) << i;
  }
}

}  // namespace
}  // namespace rooflash
