// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "error.h"

namespace ct2triton::gpu {

// Whether a failure of the driver means that this process can never use the device again: the
// driver's documentation asks to end the process after these codes.
bool LosesDevice(int code);

// Whether this process has lost a device, for all models on it.
class DeviceLoss {
 public:
  // The one of a device. It lives as long as the process.
  static DeviceLoss& Of(const std::string& driver_library, int ordinal);

  // Keeps the first failure, and returns it from then on.
  Error Note(const std::string& failure);
  std::optional<Error> error() const;  // Error(kUnavailable); none: not lost

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace ct2triton::gpu
