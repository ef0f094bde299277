// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ctranslate2_api.h"
#include "engine/compute/cpu/products/packed_linear.h"

namespace ct2triton {

// A packed copy of a variable of a model, which can be written again from it.
struct WeightCopy {
  std::string variable;  // "decoder/layer_0/ffn/linear_1/weight"
  std::shared_ptr<const products::PackedLinear> packed;
};

// The plain weights of a model, int8 or float32. CTranslate2's layers read them; decode loops on
// packed copies do not. Then their memory goes back to the system, and is filled again before
// somebody reads it. Behind the last who does it goes back again, after a while: to fill it takes
// time, at most a twentieth of all of it.
class PlainWeights {
 public:
  explicit PlainWeights(const ctranslate2::models::Model& model) : model_(model) {}
  ~PlainWeights();
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
    // Those whose names begin so are read without a use from now on, and stay for good.
    void Keep(const std::string& prefix) const { weights_->Keep(prefix); }

   private:
    PlainWeights* const weights_;
  };

  // Gives the memory of these variables back, once nobody uses the weights. A variable that has
  // another name, and no copy under it, stays: its other reader would not ask. `names`: of all
  // variables of the model.
  void GiveBack(const std::vector<WeightCopy>& copies, const std::set<std::string>& names) {
    GiveBack(copies, names, /*users=*/0);
  }

  // Memory that is given back now.
  size_t bytes_given_back() const { return bytes_given_back_; }

 private:
  using Packed = products::PackedLinear;

  // A variable that can go. Its copy is kept while it is gone; who made the copy ends it else.
  struct Variable {
    std::string name;
    std::weak_ptr<const Packed> copy;
    std::shared_ptr<const Packed> kept_copy;  // null: the weights are there
    size_t bytes_given_back;
  };

  // `users`: that may be there.
  void GiveBack(const std::vector<WeightCopy>& copies, const std::set<std::string>& names,
                size_t users);
  void Begin();
  void End() noexcept;
  void Keep(const std::string& prefix);
  void GoLocked(void* weights, Variable* variable);
  void FillLocked(void* weights, Variable* variable);
  void GoAgainLocked();
  void GoAgainWhenUnused();  // until the end

  const ctranslate2::models::Model& model_;
  std::mutex mutex_;
  size_t users_ = 0;
  std::map<void*, Variable> variables_;  // by the weights, [outputs, inputs]
  std::atomic<size_t> bytes_given_back_{0};
  uint64_t fill_ns_ = 0;  // how long it took to fill what was gone
  uint64_t unused_ns_ = 0;
  bool all_gone_ = true;  // what can go
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread going_;  // from the first end of a use on that leaves something there
};

}  // namespace ct2triton
