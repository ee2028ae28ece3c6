// Which cuDNN is taken where there are several, and what is said where none can be.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "cudnn/library.hpp"
#include "registry.hpp"

namespace rooflash::cudnn {
namespace {

namespace fs = std::filesystem;

const std::string kFakes = ROOFLASH_FAKES;
const std::string kNew = kFakes + "/cudnn";          // 9.19.1
const std::string kOld = kFakes + "/cudnn_old";      // 9.10.2
const std::string kSilent = kFakes + "/cudnn_mute";  // without cudnnGetVersion

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "no '" << words << "' in: " << text;
}

class Environment : public testing::Test {
 protected:
  void SetUp() override { use("ROOFLASH_CUDNN", ""); }
  void TearDown() override {
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  void use(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace(name, old != nullptr ? old : "");
    ASSERT_EQ(setenv(name.c_str(), value.c_str(), 1), 0);
  }

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(Environment, TheNewestIsTaken) {
  for (const auto& folders : {std::vector{kOld, kNew}, {kNew, kOld}, {kSilent, kNew}}) {
    const VendorLibrary library = choose_library(folders);
    EXPECT_EQ(library.missing, "");
    EXPECT_EQ(library.version, "9.19.1");
    EXPECT_EQ(library.folder, kNew);
    EXPECT_EQ(library.hash.size(), 16U);
  }
}

TEST_F(Environment, WhatCannotBeUsedSaysWhy) {
  expect_words(choose_library({}).missing, "no cuDNN was found");
  expect_words(choose_library({kOld}).missing, "cuDNN 9.10.2 is older than 9.19");
  expect_words(choose_library({kSilent}).missing, "no cudnnGetVersion");
  expect_words(choose_library({"/nowhere"}).missing, "cannot be opened");
  for (const std::string& folder : {std::string("/nowhere"), kOld, kSilent}) {
    const VendorLibrary library = choose_library({folder});
    EXPECT_EQ(library.version + library.hash + library.folder, "");
  }
}

TEST_F(Environment, BuildsOfOneVersionDiffer) {
  const fs::path other = fs::path(testing::TempDir()) / "cudnn_other";
  fs::create_directories(other);
  fs::copy(kNew + "/libcudnn.so.9", other, fs::copy_options::overwrite_existing);
  const std::string same = choose_library({other.string()}).hash;
  EXPECT_EQ(same, choose_library({kNew}).hash);
  std::ofstream(other / "libcudnn_ops.so.9") << "another part";
  EXPECT_NE(choose_library({other.string()}).hash, same);
  fs::remove_all(other);
}

TEST_F(Environment, TheVariableNamesALibraryOrItsFolder) {
  for (const std::string& named : {kNew, kNew + "/libcudnn.so.9"}) {
    use("ROOFLASH_CUDNN", named);
    EXPECT_EQ(candidate_folders(), std::vector{kNew});
  }
  use("ROOFLASH_CUDNN", "/nowhere/libcudnn.so.9");  // and then no other is taken
  EXPECT_EQ(candidate_folders(), std::vector<std::string>{"/nowhere"});
}

TEST_F(Environment, PythonsInPathAreSearched) {
  const fs::path prefix = fs::path(testing::TempDir()) / "venv";
  const fs::path wheel = prefix / "lib/python3.12/site-packages/nvidia/cudnn/lib";
  fs::create_directories(prefix / "bin");
  fs::create_directories(wheel);
  std::ofstream(prefix / "bin/python3") << "";
  fs::copy(kNew + "/libcudnn.so.9", wheel, fs::copy_options::overwrite_existing);
  use("PATH", "/nowhere:" + (prefix / "bin").string());
  const std::vector<std::string> folders = candidate_folders();
  EXPECT_EQ(std::count(folders.begin(), folders.end(), fs::canonical(wheel).string()), 1);
  fs::remove_all(prefix);
}

TEST_F(Environment, PartsAreOpenedFromTheFolder) {
  EXPECT_NE(open_library(kNew), nullptr);
  EXPECT_THROW(open_library("/nowhere"), UnsupportedError);
}

// Simulated devices have nothing of it, and say so.
TEST(ClosedFamily, HasNoModel) {
  const Kernel& kernel = *find_kernel("cudnn");
  EXPECT_EQ(kernel.provider, "cudnn");
  EXPECT_EQ(kernel.traffic, nullptr);
  EXPECT_EQ(no_model(kernel), "the kernels of cudnn are closed: there is no model of them");
  EXPECT_EQ(no_model(*find_kernel("fa2")), "");
}

}  // namespace
}  // namespace rooflash::cudnn
