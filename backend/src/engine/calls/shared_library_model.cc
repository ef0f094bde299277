// SPDX-License-Identifier: Apache-2.0
#include "engine/calls/shared_library_model.h"

#include <malloc.h>

#include <string>
#include <tuple>

#include "engine/model/file_identity.h"
#include "engine/model/weights.h"
#include "engine/shared_by_key.h"
#include "error.h"

namespace ct2triton {
namespace {

void RequireSame(const Weights& weights) {
  const std::string& directory = weights.directory();
  if (FilesIdentity(directory, /*with_links=*/false) == weights.identity()) return;
  throw Error(ErrorCode::kUnavailable, "files in " + directory +
                                           " changed while they were loaded, or after that, so "
                                           "CTranslate2 cannot load them; load the model again");
}

}  // namespace

std::shared_ptr<const LibraryModel> LibraryOf(const Weights& weights) {
  // The address alone could be that of later weights, while a call still uses an older model.
  using Key = std::tuple<const Weights*, std::string, std::string, std::string>;
  static SharedByKey<Key, const LibraryModel> known;
  const Key key = {&weights, weights.identity(), weights.device().Name(), weights.compute_type()};
  return known.Get(key, [&] {
    RequireSame(weights);
    const std::shared_ptr<const LibraryModel> model(
        CallLibrary::Get()
            .Load(weights.directory(), weights.device(), weights.compute_type())
            .release(),
        [](const LibraryModel* unused) {
          delete unused;
          malloc_trim(0);
        });
    RequireSame(weights);
    return model;
  });
}

}  // namespace ct2triton
