// SPDX-License-Identifier: Apache-2.0
//
// Opens libct2triton_calls.so, which is in the same folder as the plugin.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>

#include "engine/calls/call_library.h"
#include "error.h"

namespace ct2triton {
namespace {

constexpr const char* kFileName = "libct2triton_calls.so";
std::atomic<const CallLibrary*> opened{nullptr};

[[noreturn]] void Refuse(const std::string& why) {
  throw Error(ErrorCode::kUnsupported, "calls of CTranslate2 are not possible: " + why);
}

std::string PathBesideThisBinary() {
  Dl_info info;
  if (dladdr(&opened, &info) == 0) Refuse("the backend's folder cannot be found");
  return std::filesystem::path(info.dli_fname).parent_path() / kFileName;
}

struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};

const CallLibrary* Open() {
  const std::string path = PathBesideThisBinary();
  // Not visible to the rest of the process: CTranslate2 carries an MKL and an OpenMP of its own.
  std::unique_ptr<void, Close> handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) {
    Refuse("the loader says \"" + std::string(dlerror()) + "\"; " + kFileName +
           " and libctranslate2.so.4 belong beside the backend's library");
  }
  auto* open = reinterpret_cast<OpenCalls*>(dlsym(handle.get(), kOpenCalls));
  if (open == nullptr) Refuse(path + " has no function " + kOpenCalls);
  std::array<char, 1024> complaint{};
  const CallLibrary* library = open(CT2TRITON_BUILD, complaint.data(), complaint.size());
  if (library == nullptr) Refuse(path + ": " + complaint.data());
  handle.release();  // an accepted library stays loaded; a refused one may be replaced
  return library;
}

}  // namespace

const CallLibrary& CallLibrary::Get() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (opened == nullptr) opened = Open();
  return *opened;
}

const CallLibrary* CallLibrary::Opened() noexcept { return opened; }

}  // namespace ct2triton
