// SPDX-License-Identifier: Apache-2.0
#include "triton/metric_series.h"

#include <vector>

#include "triton/guard.h"
#include "triton/log.h"

namespace ct2triton {
namespace {

constexpr const char* kDoing = "making a metric";

TRITONSERVER_MetricKind KindOf(const MetricSpec& spec) {
  switch (spec.kind) {
    case MetricKind::kCounter:
      return TRITONSERVER_METRIC_KIND_COUNTER;
    case MetricKind::kGauge:
      return TRITONSERVER_METRIC_KIND_GAUGE;
    case MetricKind::kHistogram:
      return TRITONSERVER_METRIC_KIND_HISTOGRAM;
  }
  return TRITONSERVER_METRIC_KIND_COUNTER;
}

// All models share one family, which is never deleted, so series with equal labels are one line, as
// when a model is loaded twice.
TRITONSERVER_MetricFamily* FamilyOf(const MetricSpec& spec) {
  static std::vector<TRITONSERVER_MetricFamily*>* const families = [] {
    auto* made = new std::vector<TRITONSERVER_MetricFamily*>;
    for (const MetricSpec& each : MetricTable()) {
      TRITONSERVER_MetricFamily* family = nullptr;
      if (each.kind != MetricKind::kHistogram || HasHistograms()) {
        ThrowIfError(TRITONSERVER_MetricFamilyNew(&family, KindOf(each), each.name, each.help),
                     kDoing);
      }
      made->push_back(family);
    }
    return made;
  }();
  return (*families)[static_cast<size_t>(spec.id)];
}

struct DeleteLabel {
  void operator()(TRITONSERVER_Parameter* label) const { TRITONSERVER_ParameterDelete(label); }
};

class Labels {
 public:
  void Add(const char* name, const std::string& value) {
    owned_.emplace_back(
        TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_STRING, value.c_str()));
    handles_.push_back(owned_.back().get());
  }
  const TRITONSERVER_Parameter** data() { return handles_.data(); }
  size_t size() const { return handles_.size(); }

 private:
  std::vector<std::unique_ptr<TRITONSERVER_Parameter, DeleteLabel>> owned_;
  std::vector<const TRITONSERVER_Parameter*> handles_;
};

TRITONSERVER_Error* NewHistogram(TRITONSERVER_Metric** metric, TRITONSERVER_MetricFamily* family,
                                 Labels* labels) {
  TRITONSERVER_MetricArgs* arguments = nullptr;
  ThrowIfError(TRITONSERVER_MetricArgsNew(&arguments), kDoing);
  const auto& bounds = HistogramBounds_s();
  OwnedError error(TRITONSERVER_MetricArgsSetHistogram(arguments, bounds.data(), bounds.size()));
  if (!error) {
    error.reset(
        TRITONSERVER_MetricNewWithArgs(metric, family, labels->data(), labels->size(), arguments));
  }
  LogIfError(kDoing, [&] { return TRITONSERVER_MetricArgsDelete(arguments); });
  return error.release();
}

}  // namespace

bool HasHistograms() noexcept {
  return TRITONSERVER_MetricNewWithArgs != nullptr && TRITONSERVER_MetricObserve != nullptr &&
         TRITONSERVER_MetricArgsNew != nullptr && TRITONSERVER_MetricArgsDelete != nullptr &&
         TRITONSERVER_MetricArgsSetHistogram != nullptr;
}

void DeleteMetric::operator()(TRITONSERVER_Metric* metric) const noexcept {
  LogIfError("deleting a metric", [&] { return TRITONSERVER_MetricDelete(metric); });
}

MetricSeries::MetricSeries(Metric metric, const std::string& model, uint64_t version,
                           const std::string& value)
    : spec_(&SpecOf(metric)) {
  Labels labels;
  labels.Add("model", model);
  labels.Add("version", std::to_string(version));
  if (spec_->label != nullptr) labels.Add(spec_->label, value);
  TRITONSERVER_Metric* made = nullptr;
  TRITONSERVER_MetricFamily* const family = FamilyOf(*spec_);
  if (spec_->kind == MetricKind::kHistogram) {
    if (HasHistograms()) ThrowIfError(NewHistogram(&made, family, &labels), kDoing);
  } else {
    ThrowIfError(TRITONSERVER_MetricNew(&made, family, labels.data(), labels.size()), kDoing);
  }
  metric_.reset(made);
}

// Removes this object's share of a gauge. A counter keeps what was counted as long as its line
// exists.
MetricSeries::~MetricSeries() {
  if (metric_ && spec_->kind == MetricKind::kGauge) MoveTo(0);
}

void MetricSeries::MoveTo(uint64_t count) noexcept {
  if (!metric_ || count == shown_) return;
  const double by =
      count > shown_ ? static_cast<double>(count - shown_) : -static_cast<double>(shown_ - count);
  LogIfError("counting",
             [&] { return TRITONSERVER_MetricIncrement(metric_.get(), by * spec_->scale()); });
  shown_ = count;
}

void MetricSeries::Observe_ns(uint64_t ns) noexcept {
  if (!metric_) return;
  const double seconds = static_cast<double>(ns) * spec_->scale();
  LogIfError("observing", [&] { return TRITONSERVER_MetricObserve(metric_.get(), seconds); });
}

}  // namespace ct2triton
