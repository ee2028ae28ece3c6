// Feeds every file of the folders named to the target: the corpus as a test, without libFuzzer.
#include <cstdio>
#include <filesystem>

#include "fuzz/target.hpp"
#include "record/reader.hpp"

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const std::string text = rooflash::read_text(entry.path().string());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++files;
    }
  }
  std::printf("%d inputs\n", files);
  return files > 0 ? 0 : 1;
}
