// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ctranslate2_api.h"
#include "engine/products/packed_linear.h"

namespace ct2triton {

// A packed copy of a variable of a model, which can be written again from it.
struct WeightCopy {
  std::string variable;  // "decoder/layer_0/ffn/linear_1/weight"
  std::shared_ptr<const products::PackedLinear> packed;
};

// The plain weights of a model, int8 or float32. CTranslate2's layers read them; decode loops on
// packed copies do not. Then their memory goes back to the system, and is filled again before
// somebody reads it.
class PlainWeights {
 public:
  explicit PlainWeights(const ctranslate2::models::Model& model) : model_(model) {}
  PlainWeights(const PlainWeights&) = delete;
  PlainWeights& operator=(const PlainWeights&) = delete;

  // While it lives, the weights are there. It must not outlive the model.
  class Use {
   public:
    explicit Use(PlainWeights* weights) : weights_(weights) { weights_->Begin(); }
    ~Use() { weights_->End(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Gives back what this use has no need of any more, if it is the only one. See below.
    void GiveBack(const std::vector<WeightCopy>& copies, const std::set<std::string>& names) const {
      weights_->GiveBack(copies, names, /*users=*/1);
    }
    // Fills those again whose names begin so.
    void Fill(const std::string& prefix) const { weights_->Fill(prefix); }

   private:
    PlainWeights* const weights_;
  };

  // Gives the memory of these variables back, unless somebody uses the weights. A variable that has
  // another name, and no copy under it, stays: its other reader would not ask. `names`: of all
  // variables of the model.
  void GiveBack(const std::vector<WeightCopy>& copies, const std::set<std::string>& names) {
    GiveBack(copies, names, /*users=*/0);
  }

  // Memory that is given back now.
  size_t bytes_given_back() const { return bytes_given_back_; }

 private:
  struct Empty {
    std::string variable;
    std::shared_ptr<const products::PackedLinear> packed;
    size_t bytes_given_back;
  };

  // `users`: that may be there.
  void GiveBack(const std::vector<WeightCopy>& copies, const std::set<std::string>& names,
                size_t users);
  void Begin();
  void End();
  void Fill(const std::string& prefix);
  void FillLocked(const std::string& prefix);

  const ctranslate2::models::Model& model_;
  std::mutex mutex_;
  size_t users_ = 0;
  std::map<void*, Empty> empty_;  // by the weights, [outputs, inputs]
  std::atomic<size_t> bytes_given_back_{0};
};

}  // namespace ct2triton
