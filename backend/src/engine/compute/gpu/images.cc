// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/images.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "error.h"

namespace ct2triton::gpu {
namespace {

// The file: the signature, CT2TRITON_GPU_SOURCES of backend/CMakeLists.txt, the number of images,
// an Entry each, and the images.
constexpr char kSignature[] = "ct2t-gpu";  // 8 bytes without its end
constexpr char kSources[] = CT2TRITON_GPU_SOURCES;
constexpr uint32_t kMostImages = 64;

struct Entry {
  uint32_t capability;
  uint32_t is_ptx;
  uint64_t offset;  // from the beginning of the file
  uint64_t bytes;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(file), {});
  if (!file) throw Error(ErrorCode::kNoKernels, "the kernels of GPUs cannot be read: " + path);
  return content;
}

[[noreturn]] void Damaged(const std::string& path) {
  throw Error(ErrorCode::kNoKernels, "the kernels of GPUs are damaged: " + path);
}

// Higher for a better image; 0: unsuitable.
uint32_t Fit(const Entry& entry, uint32_t capability) {
  if (entry.capability > capability) return 0;
  if (entry.is_ptx != 0) return 1 + entry.capability;
  return entry.capability / 10 == capability / 10 ? 10000 + entry.capability : 0;
}

}  // namespace

std::string ImageFor(const std::string& packed, int capability) {
  const std::string content = ReadFile(packed);
  constexpr size_t kSignatureBytes = sizeof kSignature - 1;
  constexpr size_t kSourcesBytes = sizeof kSources - 1;
  uint32_t count = 0;
  constexpr size_t kFirst = kSignatureBytes + kSourcesBytes + sizeof count;
  if (content.size() < kFirst || content.compare(0, kSignatureBytes, kSignature) != 0) {
    Damaged(packed);
  }
  if (content.compare(kSignatureBytes, kSourcesBytes, kSources) != 0) {
    throw Error(ErrorCode::kNoKernels,
                "the kernels of GPUs are of another version of their sources than this build; "
                "run `make install` and `make gpu-images` again: " +
                    packed);
  }
  std::memcpy(&count, content.data() + kFirst - sizeof count, sizeof count);
  if (count > kMostImages || content.size() < kFirst + count * sizeof(Entry)) Damaged(packed);
  Entry best = {};
  uint32_t best_fit = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Entry entry;
    std::memcpy(&entry, content.data() + kFirst + i * sizeof entry, sizeof entry);
    if (entry.offset > content.size() || entry.bytes > content.size() - entry.offset) {
      Damaged(packed);
    }
    const uint32_t fit = Fit(entry, static_cast<uint32_t>(capability));
    if (fit > best_fit) {
      best_fit = fit;
      best = entry;
    }
  }
  if (best_fit == 0) {
    throw Error(ErrorCode::kNoKernels, "there are no kernels for a GPU of compute capability " +
                                           std::to_string(capability / 10) + "." +
                                           std::to_string(capability % 10) +
                                           "; 7.5 and later ones have some");
  }
  return content.substr(best.offset, best.bytes);
}

}  // namespace ct2triton::gpu
