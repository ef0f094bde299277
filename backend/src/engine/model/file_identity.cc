// SPDX-License-Identifier: Apache-2.0
#include "engine/model/file_identity.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <system_error>
#include <vector>

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

// Identifies a file and its content: name, inode, size, times of change. The modification time can
// be set back, for example by a copy that keeps times; the status-change time cannot, but each new
// link to the file changes it.
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

}  // namespace

// Not by std::filesystem: without memory, a directory_iterator may end the process.
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

}  // namespace ct2triton
