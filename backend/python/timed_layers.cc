// SPDX-License-Identifier: Apache-2.0
#include "timed_layers.h"

#include <utility>

#include "engine/compute/cpu/packed_layers.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

// As `Base`, which is Linear or what can choose as well.
template <typename Base>
class TimedLinear : public Base {
 public:
  TimedLinear(std::unique_ptr<Linear> linear, size_t layer, LayerClock* clock)
      : linear_(std::move(linear)), layer_(layer), clock_(clock) {}
  size_t inputs() const override { return linear_->inputs(); }
  size_t outputs() const override { return linear_->outputs(); }
  size_t bytes() const override { return linear_->bytes(); }
  void Apply(const float* in, size_t rows, float* out, const float* residual) const override {
    clock_->Begin(layer_);
    linear_->Apply(in, rows, out, residual);
    clock_->End(layer_, rows);
  }
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override {
    return linear_->Select(outputs);
  }

 protected:
  const std::unique_ptr<Linear> linear_;
  const size_t layer_;
  LayerClock* const clock_;
};

class TimedChoice : public TimedLinear<ChoosingLinear> {
 public:
  using TimedLinear::TimedLinear;
  void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
              products::Choice* choices) const override {
    clock_->Begin(layer_);
    dynamic_cast<const ChoosingLinear&>(*linear_).Choose(in, rules, choices);
    clock_->End(layer_, rules.size());
  }
};

}  // namespace

LinearMaker LayerClock::Timing(LinearMaker make) {
  return [this, make = std::move(make)](const ctranslate2::models::Model& model,
                                        const LinearSpec& spec) {
    return Timed(make(model, spec), model, spec);
  };
}

std::unique_ptr<Linear> LayerClock::Timed(std::unique_ptr<Linear> linear,
                                          const ctranslate2::models::Model& model,
                                          const LinearSpec& spec) {
  const size_t weights = linear->inputs() * linear->outputs();
  const auto* variable = model.get_variable_if_exists(spec.scope + "/weight");
  const size_t packed = linear->bytes();
  const size_t plain = variable != nullptr ? weights * variable->item_size() : 0;
  layers_.push_back(
      {spec.scope, linear->inputs(), linear->outputs(), packed != 0 ? packed : plain});
  const size_t layer = layers_.size() - 1;
  if (dynamic_cast<const ChoosingLinear*>(linear.get()) != nullptr) {
    return std::make_unique<TimedChoice>(std::move(linear), layer, this);
  }
  return std::make_unique<TimedLinear<Linear>>(std::move(linear), layer, this);
}

void LayerClock::Begin(size_t layer) {
  begin_ns_ = SteadyNow_ns();
  if (last_ != nullptr) last_->after_ns += begin_ns_ - end_ns_;
  last_ = &layers_[layer];
}

void LayerClock::End(size_t layer, size_t rows) {
  end_ns_ = SteadyNow_ns();
  LayerTime& time = layers_[layer];
  ++time.uses;
  time.rows += rows;
  time.ns += end_ns_ - begin_ns_;
}

}  // namespace ct2triton
