#include "common/code_size.hpp"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace rooflash {
namespace {

// The object of type T at byte `at`; empty where the text ends before.
template <class T>
std::optional<T> read_at(std::string_view text, std::uint64_t at) {
  if (at > text.size() || text.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, text.data() + at, sizeof(T));
  return value;
}

// Where the architecture stands depends on the version of the cubin's format: from CUDA 13 on
// (version 8) in the second byte of the flags, before in the first.
int architecture(const Elf64_Ehdr& header) {
  const bool second_byte = header.e_ident[EI_ABIVERSION] >= 8;
  return static_cast<int>((second_byte ? header.e_flags >> 8 : header.e_flags) & 0xff);
}

void add_sizes(std::string_view cubin, const Elf64_Ehdr& header, CodeSizes& sizes) {
  constexpr std::string_view kPrefix = ".text.";
  const auto section = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(cubin, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto names = section(header.e_shstrndx);
  if (!names || names->sh_offset > cubin.size()) return;
  const std::string_view strings = cubin.substr(names->sh_offset, names->sh_size);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto one = section(i);
    if (!one || one->sh_name >= strings.size()) continue;
    const std::string_view rest = strings.substr(one->sh_name);
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (!name.starts_with(kPrefix)) continue;
    sizes[{architecture(header), std::string(name.substr(kPrefix.size()))}] =
        static_cast<std::int64_t>(one->sh_size);
  }
}

CodeSizes read_own_code_sizes() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(kSelf, error);
  if (error) return {};
  std::string image(bytes, '\0');
  std::ifstream(kSelf, std::ios::binary).read(image.data(), static_cast<std::streamsize>(bytes));
  return code_sizes(image);
}

}  // namespace

CodeSizes code_sizes(std::string_view image) {
  CodeSizes sizes;
  for (std::size_t at = image.find(ELFMAG); at != std::string_view::npos;
       at = image.find(ELFMAG, at + SELFMAG)) {
    const std::string_view cubin = image.substr(at);
    const auto header = read_at<Elf64_Ehdr>(cubin, 0);
    const bool is_cubin = header && header->e_ident[EI_CLASS] == ELFCLASS64 &&
                          header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_machine == EM_CUDA &&
                          header->e_shentsize == sizeof(Elf64_Shdr);
    if (is_cubin) add_sizes(cubin, *header, sizes);
  }
  return sizes;
}

const CodeSizes& own_code_sizes() {
  static const CodeSizes sizes = read_own_code_sizes();
  return sizes;
}

std::optional<std::int64_t> own_code_bytes(const std::string& symbol, int sm) {
  const CodeSizes& sizes = own_code_sizes();
  const auto found = sizes.find({sm, symbol});
  if (found == sizes.end()) return std::nullopt;
  return found->second;
}

}  // namespace rooflash
