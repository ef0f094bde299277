// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/device_loss.h"

#include <map>
#include <utility>

namespace ct2triton::gpu {

bool LosesDevice(int code) {
  switch (code) {  // of CUresult
    case 214:      // an uncorrectable ECC error
    case 220:      // an uncorrectable NVLink error
    case 226:      // a contained error
    case 700:      // an illegal address
    case 702:      // a launch timed out
    case 709:      // its context was destroyed
    case 710:      // a device-side assertion
    case 714:      // a hardware stack error
    case 715:      // an illegal instruction
    case 716:      // a misaligned address
    case 717:      // an invalid address space
    case 718:      // an invalid program counter
    case 719:      // a launch failed
    case 721:      // tensor memory was not completely freed
    case 806:      // the connection to the MPS server failed
    case 810:      // an MPS client was ended
    case 999:      // unknown, as when a device falls off the bus
      return true;
    default:
      return false;
  }
}

DeviceLoss& DeviceLoss::Of(const std::string& driver_library, int ordinal) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, DeviceLoss> known;
  const std::lock_guard<std::mutex> lock(mutex);
  return known[{driver_library, ordinal}];
}

Error DeviceLoss::Note(const std::string& failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_) {
    error_.emplace(ErrorCode::kUnavailable,
                   failure + "; this process has lost the device: restart the server");
  }
  return *error_;
}

std::optional<Error> DeviceLoss::error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

}  // namespace ct2triton::gpu
