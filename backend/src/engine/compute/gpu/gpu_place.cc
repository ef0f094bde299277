// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu_place.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr char kImages[] = "gpu_kernels.bin";  // of tools/gpu_images.py

// In the folder of the library that contains this code.
std::string ImagesFile() {
  Dl_info info = {};
  if (dladdr(kImages, &info) == 0 || info.dli_fname == nullptr) return kImages;
  const std::string library = info.dli_fname;
  return library.substr(0, library.rfind('/') + 1) + kImages;
}

}  // namespace

std::optional<GpuPlace> PlaceOf(const Device& device) {
  if (const char* chosen = std::getenv("CT2_TRITON_GPU")) {
    if (std::string(chosen) == "emulated") {
      return GpuPlace{"libct2triton_emulated_gpu.so", device.index, ""};
    }
    ThrowInvalid("the environment variable CT2_TRITON_GPU is \"" + std::string(chosen) +
                 "\"; it may be \"emulated\", or not be set");
  }
  if (device.kind != Device::Kind::kGpu) return std::nullopt;
  return GpuPlace{"libcuda.so.1", device.index, ImagesFile()};
}

}  // namespace ct2triton::gpu
