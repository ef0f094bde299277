// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/device_model.h"

#include <string>
#include <utility>

#include "engine/compute/cpu/kernels.h"
#include "engine/loop/cache_pool.h"
#include "engine/search/wide_search.h"
#include "error.h"

namespace ct2triton {

DeviceModel::DeviceModel(std::shared_ptr<const Weights> weights)
    : weights_(std::move(weights)),
      kernels_(ChooseKernels()),
      shape_(ReadDecoder(weights_->file())) {
  if (shape_.vocabulary == weights_->target().size()) return;
  throw Error(ErrorCode::kUnsupported,
              "the decode loop cannot run this model: its projection has " +
                  std::to_string(shape_.vocabulary) + " outputs for " +
                  std::to_string(weights_->target().size()) + " tokens");
}

size_t DeviceModel::EncodedTokens(const CheckedRow& row) const {
  return row.source.size() + static_cast<size_t>(weights_->added_source_tokens());
}

size_t DeviceModel::CacheTokens(const CheckedRow& row) const {
  size_t forced = row.prefix.size() - (weights_->NeedsPrefix() ? 1 : 0);
  if (row.search->Biased()) forced = 0;
  return SlotsFor(static_cast<size_t>(row.search->Copies()), forced,
                  static_cast<size_t>(row.limit_tokens));
}

size_t DeviceModel::CacheBytes(const CheckedRow& row) const {
  return CachePool::BlockBytes(CacheFloats(row));
}

size_t DeviceModel::SourceCacheBytes(const CheckedRow& row) const {
  return CachePool::BlockBytes(SourceCacheFloats(EncodedTokens(row)));
}

}  // namespace ct2triton
