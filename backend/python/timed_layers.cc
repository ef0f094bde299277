// SPDX-License-Identifier: Apache-2.0
#include "timed_layers.h"

#include <utility>

#include "steady_clock.h"

namespace ct2triton {
namespace {

class TimedLinear final : public Linear {
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
  void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
              products::ChosenLogit* choices) const override {
    clock_->Begin(layer_);
    linear_->Choose(in, rules, choices);
    clock_->End(layer_, rules.size());
  }
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override {
    return linear_->Select(outputs);
  }

 private:
  const std::unique_ptr<Linear> linear_;
  const size_t layer_;
  LayerClock* const clock_;
};

}  // namespace

std::unique_ptr<Linear> LayerClock::Timed(std::unique_ptr<Linear> linear, const LinearSpec& spec) {
  layers_.push_back({spec.scope, linear->inputs(), linear->outputs(), linear->bytes()});
  return std::make_unique<TimedLinear>(std::move(linear), layers_.size() - 1, this);
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
