#include "library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace rooflash::cudnn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libcudnn.so.9";
constexpr std::string_view kParts = "libcudnn_";  // libcudnn_graph.so.9, libcudnn_ops.so.9, ...
constexpr std::string_view kMajor = ".so.9";
constexpr const char* kGraph = "libcudnn_graph.so.9";  // the part that all others need
constexpr const char* kInWheel = "nvidia/cudnn/lib";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<fs::path> path_list(const char* variable) {
  std::vector<fs::path> paths;
  std::string_view rest = std::getenv(variable) != nullptr ? std::getenv(variable) : "";
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (!part.empty()) paths.emplace_back(part);
  }
  return paths;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Loads `name` apart from all else: what is opened to be looked at must not be found by its name
// later, and cuDNN's parts cannot be unloaded. A process has room for 15, so each is opened once.
class Apart {
 public:
  explicit Apart(const std::string& name)
      : handle_(dlmopen(LM_ID_NEWLM, name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) error_ = dlerror();
  }
  ~Apart() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  const std::string& error() const { return error_; }
  std::string path() const {
    link_map* map = nullptr;
    const bool known = handle_ != nullptr && dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0;
    return known ? map->l_name : "";
  }
  // cudnnGetVersion(); 0 where there is none.
  int version() const {
    using GetVersion = std::size_t();
    void* const function = handle_ != nullptr ? dlsym(handle_, "cudnnGetVersion") : nullptr;
    return function != nullptr ? static_cast<int>(reinterpret_cast<GetVersion*>(function)()) : 0;
  }

 private:
  void* handle_;
  std::string error_;
};

// Folders of the package nvidia-cudnn in the Pythons of `prefix` ("/usr", a virtual environment).
void add_wheels(const fs::path& prefix, std::vector<fs::path>& folders) {
  for (const char* lib : {"lib", "lib64"}) {
    for (const fs::path& python : entries(prefix / lib)) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        folders.push_back(python / packages / kInWheel);
      }
    }
  }
}

std::vector<fs::path> python_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& entry : path_list("PYTHONPATH")) folders.push_back(entry / kInWheel);
  for (const fs::path& bin : path_list("PATH")) {
    std::error_code error;
    const fs::path python = fs::canonical(bin / "python3", error);
    if (error) continue;
    add_wheels(bin.parent_path(), folders);  // of a virtual environment
    add_wheels(python.parent_path().parent_path(), folders);
  }
  add_wheels("/usr/local", folders);
  if (const std::string home = environment("HOME"); !home.empty()) {
    add_wheels(fs::path(home) / ".local", folders);
  }
  return folders;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

// Its parts and, last, the library that calls them; the part that the others need is first.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& file : entries(folder)) {
    const std::string name = file.filename().string();
    if (!name.starts_with(kParts) || !name.ends_with(kMajor)) continue;
    files.insert(name == kGraph ? files.begin() : files.end(), file);
  }
  files.push_back(folder / kLibrary);
  return files;
}

// Tells builds apart: names and sizes of all files, and the bytes of the first. All of them are
// half a gigabyte.
std::string hash_of(const fs::path& folder) {
  const std::vector<fs::path> files = files_of(folder);
  const auto size_of = [](const fs::path& file) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    return error ? 0 : size;
  };
  std::string text;
  for (const fs::path& file : files) {
    text += file.filename().string() + " " + std::to_string(size_of(file)) + "\n";
  }
  std::string bytes(size_of(files.front()), '\0');
  std::ifstream(files.front(), std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return hash_hex(text + bytes);
}

VendorLibrary none(std::string why) {
  return {.version = "", .hash = "", .folder = "", .missing = std::move(why)};
}

}  // namespace

std::vector<std::string> candidate_folders() {
  std::error_code error;
  if (const std::string chosen = environment("ROOFLASH_CUDNN"); !chosen.empty()) {
    return {fs::is_directory(chosen, error) ? chosen : fs::path(chosen).parent_path().string()};
  }
  std::vector<fs::path> folders = python_folders();
  static const std::string loaders = Apart(kLibrary).path();
  if (!loaders.empty()) folders.insert(folders.begin(), fs::path(loaders).parent_path());
  std::vector<std::string> unique;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / kLibrary, error)) continue;
    const std::string path = fs::canonical(folder, error).string();
    if (std::find(unique.begin(), unique.end(), path) == unique.end()) unique.push_back(path);
  }
  return unique;
}

const Folder& look_into(const std::string& path) {
  static std::map<std::string, Folder> known;
  if (const auto found = known.find(path); found != known.end()) return found->second;
  std::error_code error;
  const fs::path graph = fs::path(path) / kGraph;
  const Apart library(fs::exists(graph, error) ? graph.string()
                                               : (fs::path(path) / kLibrary).string());
  Folder folder{path, library.version(), library.error()};
  if (folder.problem.empty() && folder.version == 0) {
    folder.problem = path + ": its cuDNN has no cudnnGetVersion";
  }
  return known.emplace(path, std::move(folder)).first->second;
}

VendorLibrary choose_library(const std::vector<std::string>& folders) {
  if (folders.empty()) {
    return none("no cuDNN was found: neither the loader nor a Python in PATH has libcudnn.so.9");
  }
  Folder newest;
  for (const std::string& path : folders) {
    const Folder& folder = look_into(path);
    if (newest.path.empty() || folder.version > newest.version) newest = folder;
  }
  if (newest.version == 0) return none("cuDNN cannot be opened: " + newest.problem);
  if (newest.version < kOldestVersion) {
    return none("cuDNN " + version_text(newest.version) + " is older than 9.19");
  }
  return {.version = version_text(newest.version),
          .hash = hash_of(newest.path),
          .folder = newest.path,
          .missing = ""};
}

const VendorLibrary& chosen_library() {
#ifdef ROOFLASH_CUDNN
  static const VendorLibrary library = choose_library(candidate_folders());
#else
  static const VendorLibrary library = none("this build has no cudnn-frontend");
#endif
  return library;
}

void* open_library(const std::string& folder) {
  void* handle = nullptr;
  for (const fs::path& file : files_of(folder)) {
    handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
      throw UnsupportedError(std::string("cuDNN cannot be opened: ") + dlerror());
    }
  }
  return handle;
}

}  // namespace rooflash::cudnn
