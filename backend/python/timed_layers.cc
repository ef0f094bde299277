// SPDX-License-Identifier: Apache-2.0
#include "timed_layers.h"

#include <utility>

#include "engine/loop/packed_layers.h"
#include "steady_clock.h"

namespace ct2triton {
namespace {

class TimedLayer : public ChoosingLinear {
 public:
  TimedLayer(std::unique_ptr<Linear> linear, const ChoosingLinear& choosing, size_t layer,
             LayerClock* clock)
      : linear_(std::move(linear)), choosing_(choosing), layer_(layer), clock_(clock) {}
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
  void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
              products::Choice* choices) const override {
    clock_->Begin(layer_);
    choosing_.Choose(in, rules, choices);
    clock_->End(layer_, rules.size());
  }

 private:
  const std::unique_ptr<Linear> linear_;
  const ChoosingLinear& choosing_;  // the same
  const size_t layer_;
  LayerClock* const clock_;
};

}  // namespace

LinearMaker LayerClock::Timing(LinearMaker make) {
  return [this, make = std::move(make)](const ctranslate2::models::Model& model,
                                        const LinearSpec& spec) {
    return Timed(make(model, spec), spec.scope);
  };
}

std::unique_ptr<Linear> LayerClock::Timed(std::unique_ptr<Linear> linear,
                                          const std::string& scope) {
  const auto* choosing = dynamic_cast<const ChoosingLinear*>(linear.get());
  if (choosing == nullptr) return linear;
  layers_.push_back({scope, linear->inputs(), linear->outputs(), linear->bytes()});
  return std::make_unique<TimedLayer>(std::move(linear), *choosing, layers_.size() - 1, this);
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
