#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "record/environment.hpp"
#include "record/json.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "sample_record.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

class RecordFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rooflash-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    start_ = fs::current_path();
  }
  void TearDown() override {
    fs::current_path(start_);
    fs::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  fs::path start_;
};

TEST_F(RecordFiles, RecordIsReadBackAsWritten) {
  const Record record = sample_record();
  write_file_atomic(path("r.json"), record_text(record));
  EXPECT_EQ(to_json(read_record(path("r.json"))).dump(), to_json(record).dump());
  EXPECT_EQ(files(), 1U);  // no temporary file is left
}

TEST_F(RecordFiles, OneRowALineAndJournalLinesAreTheSameBytes) {
  const Record record = sample_record();
  const std::string text = record_text(record);
  for (const Row& row : record.rows) {
    EXPECT_NE(text.find("\n    " + to_json_line(row)), std::string::npos);
  }
}

TEST_F(RecordFiles, FaultsAreNamedWithTheFile) {
  std::ofstream(path("cut.json")) << record_text(sample_record()).substr(0, 1000);
  try {
    read_record(path("cut.json"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("cut.json: not valid JSON at line"),
              std::string::npos);
  }
  EXPECT_THROW(read_record(path("none.json")), UsageError);
  try {
    read_record(folder_.string());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("Is a directory")) << error.what();
  }
}

TEST_F(RecordFiles, FailedWriteLeavesTheOldFile) {
  EXPECT_THROW(write_file_atomic(path("none/r.json"), "x"), UsageError);
  EXPECT_THROW(write_file_atomic(folder_.string(), "x"), UsageError);
  EXPECT_THROW(write_file_atomic("/dev/full", "x"), UsageError);
  EXPECT_EQ(files(), 0U);

  // A name so long that the temporary file's does not fit: the old file stays as it is.
  const std::string long_path = path(std::string(255, 'a'));
  std::ofstream(long_path) << "old";
  EXPECT_THROW(write_file_atomic(long_path, "new"), UsageError);
  EXPECT_EQ(read_text(long_path), "old");
}

TEST_F(RecordFiles, WriteKeepsModeAndSymbolicLink) {
  write_file_atomic(path("target"), "old");
  ASSERT_EQ(chmod(path("target").c_str(), 0640), 0);
  fs::create_symlink("target", path("link"));
  write_file_atomic(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text(path("target")), "new");
  EXPECT_EQ(fs::status(path("target")).permissions(), fs::perms(0640));
}

TEST_F(RecordFiles, WriteGoesThroughALinkToNothing) {
  fs::create_symlink("later", path("hop"));
  fs::create_symlink(path("hop"), path("link"));
  EXPECT_NO_THROW(check_output_path(path("link")));
  write_file_atomic(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("hop")));
  EXPECT_EQ(read_text(path("later")), "new");
  fs::create_symlink("loop", path("loop"));
  EXPECT_THROW(write_file_atomic(path("loop"), "new"), UsageError);
}

// None of these may wait for another end, or read without an end.
TEST_F(RecordFiles, PipesAndDevicesAreRefused) {
  ASSERT_EQ(mkfifo(path("pipe.json").c_str(), 0600), 0);
  for (const std::string& special : {path("pipe.json"), std::string("/dev/zero")}) {
    EXPECT_THROW(read_text(special), UsageError) << special;
    EXPECT_THROW(write_file_atomic(special, "x"), UsageError) << special;
    EXPECT_THROW(check_output_path(special), UsageError) << special;
  }
  EXPECT_TRUE(fs::is_fifo(path("pipe.json")));
}

TEST_F(RecordFiles, ReadingHasALimit) {
  std::ofstream(path("huge.json")) << "";
  fs::resize_file(path("huge.json"), (std::uintmax_t{1} << 30) + 1);  // sparse
  try {
    read_text(path("huge.json"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("larger than 1 GiB"), std::string::npos);
  }
}

TEST_F(RecordFiles, OutputPathIsCheckedBeforeWork) {
  EXPECT_THROW(check_output_path(""), UsageError);
  EXPECT_THROW(check_output_path(folder_.string()), UsageError);
  EXPECT_THROW(check_output_path(path("none/r.json")), UsageError);
  EXPECT_NO_THROW(check_output_path(path("r.json")));
  EXPECT_EQ(files(), 0U);
  fs::current_path(folder_);
  EXPECT_NO_THROW(check_output_path("out/r.json"));
  EXPECT_TRUE(fs::is_directory("out"));
  EXPECT_THROW(check_output_path("a/b/r.json"), UsageError);
}

TEST_F(RecordFiles, ArgumentsLoseTheirFolders) {
  fs::current_path(folder_);
  fs::create_directory("out");
  const std::vector<std::string> argv = {"/home/ann/build/rooflash",
                                         "run",
                                         "--suite=/home/ann/s.json",
                                         "-o",
                                         "out/r.json",
                                         "-o/tmp/x.json",
                                         "~/r.json",
                                         "../r.json",
                                         "--filter",
                                         "fa2/fwd/*",
                                         "--seqlen",
                                         "1k,2k"};
  const std::vector<std::string> kept = {"rooflash", "run",       "--suite=s.json", "-o",
                                         "r.json",   "-ox.json",  "r.json",         "r.json",
                                         "--filter", "fa2/fwd/*", "--seqlen",       "1k,2k"};
  EXPECT_EQ(without_paths(argv), kept);
}

TEST(WithoutFolders, CutsAbsolutePathsToTheirLastPart) {
  EXPECT_EQ(without_folders("/home/me/lib/libcupti.so.13: no such file"),
            "libcupti.so.13: no such file");
  EXPECT_EQ(without_folders("failed (/usr/lib/x.so), see '/tmp/a b'"), "failed (x.so), see 'a b'");
  EXPECT_EQ(without_folders("fa2/fwd/bf16 and 3 / 4 and/or /"), "fa2/fwd/bf16 and 3 / 4 and/or /");
  EXPECT_EQ(without_folders(""), "");
}

TEST(HostEnvironment, HonoursSourceDateEpoch) {
  setenv("SOURCE_DATE_EPOCH", "1769850300", 1);
  EXPECT_EQ(utc_date(), "2026-01-31T09:05:00Z");
  setenv("SOURCE_DATE_EPOCH", "soon", 1);
  EXPECT_THROW(utc_date(), UsageError);
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_GT(utc_date(), "2026-01-01");
}

TEST(HostEnvironment, NamesTheHostByAHashAlone) {
  const Environment environment = host_environment({"rooflash"});
  EXPECT_EQ(environment.host_hash.size(), 16U);
  EXPECT_NE(identity_hash("host", "a"), identity_hash("host", "b"));
  EXPECT_NE(identity_hash("host", "a"), identity_hash("gpu", "a"));
}

}  // namespace
}  // namespace rooflash
