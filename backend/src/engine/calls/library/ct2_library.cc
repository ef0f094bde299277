// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/library/ct2_library.h"

#include "ctranslate2_api.h"
#include "engine/calls/library/ct2_model.h"
#include "engine/calls/library/library_check.h"

namespace ct2triton {
namespace {

class Ct2Library final : public CallLibrary {
 public:
  std::string Version() const override { return LibraryVersion(); }
  std::unique_ptr<const LibraryModel> Load(const std::string& directory, const Device& device,
                                           const std::string& compute_type) const override {
    return std::make_unique<const Ct2Model>(directory, device, compute_type);
  }
  void UseDevice(const Device& device) const override {
    ctranslate2::set_device_index(LibraryDevice(device), device.index);
  }
  void SetThreads(size_t threads) const override { ctranslate2::set_num_threads(threads); }
  void Synchronize(const Device& device) const override {
    ctranslate2::synchronize_stream(LibraryDevice(device));
  }
  void EndThread(const Device& device) const override {
    if (ctranslate2::destroy_context != nullptr)
      ctranslate2::destroy_context(LibraryDevice(device));
  }
};

}  // namespace

const CallLibrary& LinkedLibrary() {
  CheckLibrary();
  static const Ct2Library library;
  return library;
}

}  // namespace ct2triton
