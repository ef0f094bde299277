// SPDX-License-Identifier: Apache-2.0
#include "engine/shared_weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "engine/library_check.h"
#include "engine/thread_scope.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;

// Which files these are, so that a changed file is another model: name, inode, size, times of
// change. The second one cannot be set back, as a copy that keeps times does with the first.
std::string FilesIdentity(const std::string& directory) {
  std::vector<std::string> entries;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    struct stat info {};
    if (stat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    std::ostringstream line;
    line << entry.path().filename().string() << ':' << info.st_dev << ':' << info.st_ino << ':'
         << info.st_size << ':' << info.st_mtim.tv_sec << '.' << info.st_mtim.tv_nsec << ':'
         << info.st_ctim.tv_sec << '.' << info.st_ctim.tv_nsec;
    entries.push_back(line.str());
  }
  if (failed == std::errc::permission_denied) {
    throw Error(ErrorCode::kUnavailable, directory + " cannot be read: " + failed.message());
  }
  std::error_code ignored;
  if (failed || !fs::exists(fs::path(directory) / "model.bin", ignored)) {
    throw Error(ErrorCode::kNotFound, "no CTranslate2 model in " + directory +
                                          ": model.bin is missing" +
                                          (failed ? " (" + failed.message() + ")" : ""));
  }
  std::sort(entries.begin(), entries.end());
  std::string identity;
  for (const auto& entry : entries) identity += entry + '\n';
  return identity;
}

// Where the weights of some files are found while they are in use.
struct Place {
  std::mutex mutex;  // held while they load: whoever wants the same ones waits
  std::weak_ptr<const Weights> weights;
};

std::shared_ptr<Place> PlaceOf(const std::string& key) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Place>> places;
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto it = places.begin(); it != places.end();) {
    const bool unused = it->second.use_count() == 1 && it->second->weights.expired();
    it = unused ? places.erase(it) : std::next(it);
  }
  auto& place = places[key];
  if (!place) place = std::make_shared<Place>();
  return place;
}

}  // namespace

std::shared_ptr<const Weights> SharedWeights(const std::string& directory, const Device& device,
                                             const std::string& compute_type, size_t threads) {
  CheckLibrary();
  RequireDevice(device);
  const auto place = PlaceOf(device.Name() + '\n' + compute_type + '\n' + FilesIdentity(directory));
  const std::lock_guard<std::mutex> lock(place->mutex);
  if (auto weights = place->weights.lock()) return weights;
  std::shared_ptr<const Weights> weights;
  RunInThreadScope(device, threads, [&] {
    weights = std::make_shared<const Weights>(directory, device, compute_type);
  });
  place->weights = weights;
  return weights;
}

}  // namespace ct2triton
