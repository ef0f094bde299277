// SPDX-License-Identifier: Apache-2.0
#include "engine/model/shared_weights.h"

#include <map>
#include <mutex>

#include "engine/calls/library_check.h"
#include "engine/model/file_identity.h"
#include "engine/thread_scope.h"
#include "error.h"

namespace ct2triton {
namespace {

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
  RunInThreadScope(device, threads, [&] {
    weights = std::make_shared<const Weights>(directory, device, compute_type);
  });
  if (FilesIdentity(directory, /*with_links=*/false) !=
      weights->identity()) {  // some may be of another model
    throw Error(ErrorCode::kUnavailable,
                "files in " + directory + " changed while they were loaded; load the model again");
  }
  place->weights = weights;
  return weights;
}

}  // namespace ct2triton
