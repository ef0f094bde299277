// SPDX-License-Identifier: Apache-2.0
#include "engine/model/shared_weights.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <vector>

#include "engine/calls/library_check.h"
#include "engine/thread_scope.h"
#include "error.h"

namespace ct2triton {
namespace {

std::string TextOf(int error) { return std::error_code(error, std::generic_category()).message(); }

[[noreturn]] void RefuseFolder(const std::string& directory, int error) {
  if (error == ENOMEM) throw std::bad_alloc();
  if (error == ENOENT || error == ENOTDIR) {
    throw Error(ErrorCode::kNotFound, "no CTranslate2 model in " + directory +
                                          ": model.bin is missing (" + TextOf(error) + ")");
  }
  throw Error(ErrorCode::kUnavailable, directory + " cannot be read: " + TextOf(error));
}

// Which file this is, so that a changed one is another: name, inode, size, times of change. The
// last one cannot be set back, as a copy that keeps times does with the other; but each new link to
// the file sets it.
std::string Identity(const std::string& name, const struct stat& info, bool with_links) {
  std::string line = name;
  const auto add = [&line](int64_t number) { line += ':' + std::to_string(number); };
  add(static_cast<int64_t>(info.st_dev));
  add(static_cast<int64_t>(info.st_ino));
  add(info.st_size);
  add(info.st_mtim.tv_sec);
  add(info.st_mtim.tv_nsec);
  if (with_links) {
    add(info.st_ctim.tv_sec);
    add(info.st_ctim.tv_nsec);
  }
  return line + '\n';
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Of all files of a directory. Not by std::filesystem: where a directory_iterator has no memory, it
// may end the process.
std::string FilesIdentity(const std::string& directory, bool with_links) {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(directory.c_str()));
  if (!folder) RefuseFolder(directory, errno);
  std::vector<std::string> entries;
  bool has_model = false;
  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    struct stat info {};
    if (stat((directory + '/' + name).c_str(), &info) == 0) {
      has_model |= name == "model.bin";
      if (S_ISREG(info.st_mode)) entries.push_back(Identity(name, info, with_links));
    }
    errno = 0;
  }
  if (errno != 0) RefuseFolder(directory, errno);
  if (!has_model) {
    throw Error(ErrorCode::kNotFound,
                "no CTranslate2 model in " + directory + ": model.bin is missing");
  }
  std::sort(entries.begin(), entries.end());
  return std::accumulate(entries.begin(), entries.end(), std::string());
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
  const auto place = PlaceOf(device.Name() + '\n' + compute_type + '\n' +
                             FilesIdentity(directory, /*with_links=*/true));
  const std::lock_guard<std::mutex> lock(place->mutex);
  if (auto weights = place->weights.lock()) return weights;
  std::shared_ptr<const Weights> weights;
  const auto files = FilesIdentity(directory, /*with_links=*/false);
  RunInThreadScope(device, threads, [&] {
    weights = std::make_shared<const Weights>(directory, device, compute_type);
  });
  if (FilesIdentity(directory, /*with_links=*/false) != files) {  // some may be of another model
    throw Error(ErrorCode::kUnavailable,
                "files in " + directory + " changed while they were loaded; load the model again");
  }
  place->weights = weights;
  return weights;
}

}  // namespace ct2triton
