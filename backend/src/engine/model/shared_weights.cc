// SPDX-License-Identifier: Apache-2.0
#include "engine/model/shared_weights.h"

#include "engine/model/file_identity.h"
#include "engine/shared_by_key.h"
#include "error.h"

namespace ct2triton {

std::shared_ptr<const Weights> SharedWeights(const std::string& directory, const Device& device,
                                             const std::string& compute_type) {
  RequireDevice(device);
  static SharedByKey<std::string, const Weights> known;
  const std::string key =
      device.Name() + '\n' + compute_type + '\n' + FilesIdentity(directory, /*with_links=*/true);
  return known.Get(key, [&] {
    auto weights = std::make_shared<const Weights>(directory, device, compute_type);
    if (FilesIdentity(directory, /*with_links=*/false) == weights->identity()) return weights;
    // Some files may be of another model.
    throw Error(ErrorCode::kUnavailable, "files in " + directory +
                                             " changed while they were loaded; load the model "
                                             "again");
  });
}

}  // namespace ct2triton
