// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_attention.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/compute/library_gpu/device_encoder.h"
#include "error.h"

namespace ct2triton {
namespace {

[[noreturn]] void RefusePlace(const StepRow& row) {
  throw Error(ErrorCode::kInternal, "row " + std::to_string(row.row) + " of a decode loop is at " +
                                        std::to_string(row.position) +
                                        ", where no step has left it");
}

const DeviceEncoding& EncodingOf(const StepRow& row) {
  return static_cast<const DeviceEncoding&>(*row.encoding);  // DeviceCompute's own
}

}  // namespace

DeviceAttention::DeviceAttention(const DeviceModel& model, const Tensors& tensors)
    : model_(model),
      tensors_(tensors),
      heads_(static_cast<long>(model.shape().heads)),
      head_dim_(static_cast<long>(model.shape().head_dim())),
      width_(heads_ * head_dim_),
      lengths_(tensors.Empty()),
      source_lengths_(tensors.Empty()),
      bias_(tensors.Empty()),
      spare_(tensors.Empty()) {
  for (size_t layer = 0; layer < model.layers().size(); ++layer) {
    self_.push_back({tensors.Empty(), tensors.Empty()});
  }
}

// What is made anew counts once all of it is there.
void DeviceAttention::Arrange(const std::vector<StepRow>& rows) {
  const Numbers kept = KeptOf(rows);
  CountLastStep(rows, kept);
  if (kept.size() != places_.size() || kept.size() != rows.size()) {
    std::vector<Place> places;
    size_t time = 0;
    size_t source_time = 0;
    for (const StepRow& row : rows) {
      places.push_back({row.row, row.position, row.encoding->tokens()});
      time = std::max(time, row.position);
      source_time = std::max(source_time, row.encoding->tokens());
    }
    Caches self = ArrangedSelf(kept, rows.size() - kept.size(), static_cast<long>(time));
    Caches source = ArrangedSource(kept, rows, static_cast<long>(source_time));
    Tensor source_lengths = Lengths(places, &Place::source_tokens, 0);
    places_.swap(places);
    self_.swap(self);
    source_.swap(source);
    std::swap(source_lengths_, source_lengths);
    time_ = static_cast<long>(time);
    source_time_ = static_cast<long>(source_time);
  }
  PrepareStep();
}

// The places of the rows that go on.
DeviceAttention::Numbers DeviceAttention::KeptOf(const std::vector<StepRow>& rows) const {
  Numbers kept;
  size_t place = 0;
  for (const StepRow& row : rows) {
    size_t next = place;
    while (next < places_.size() && places_[next].row != row.row) ++next;
    if (next == places_.size()) {
      if (row.position != 0) RefusePlace(row);
      continue;
    }
    if (&row != &rows[kept.size()]) RefusePlace(row);  // behind one that begins
    kept.push_back(static_cast<int32_t>(next));
    place = next + 1;
  }
  return kept;
}

// All rows have gone on by a token, or none.
void DeviceAttention::CountLastStep(const std::vector<StepRow>& rows, const Numbers& kept) {
  if (kept.empty()) return;
  const size_t before = places_[static_cast<size_t>(kept[0])].tokens;
  const size_t more = rows[0].position - before;
  for (size_t i = 0; i < kept.size(); ++i) {
    const Place& place = places_[static_cast<size_t>(kept[i])];
    if (more > 1 || rows[i].position != place.tokens + more) RefusePlace(rows[i]);
  }
  if (more == 1) {
    for (Place& place : places_) ++place.tokens;
    ++time_;
  } else if (time_ > 0) {
    for (Cache& cache : self_) {
      DropNewest(&cache.keys);
      DropNewest(&cache.values);
    }
  }
}

// What a step that failed has left in some of the layers.
void DeviceAttention::DropNewest(Tensor* x) const {
  if (x->dim(2) > time_) *x = std::move(tensors_.Split(*x, 2, {1, time_}).back());
}

// Rows that begin have nothing yet but padding, which is zero: no number of another row is read.
DeviceAttention::Caches DeviceAttention::ArrangedSelf(const Numbers& kept, size_t added,
                                                      long time) const {
  const auto nobody = static_cast<int32_t>(places_.size());
  Numbers places = kept;
  places.insert(places.end(), added, nobody);
  const Tensor numbers = tensors_.Numbers(places);
  const Tensor zeros = tensors_.Zeros({1, heads_, std::max(time_, 1L), head_dim_});
  const auto arranged = [&](const Tensor& x) {
    if (time == 0) return tensors_.Empty();
    if (added == 0) return Fit(tensors_.Pick(x, numbers), places.size(), time_, time);
    Tensor whole = tensors_.Empty();
    Tensors::Join({&x, &zeros}, 0, &whole);
    return Fit(tensors_.Pick(whole, numbers), places.size(), time_, time);
  };
  Caches caches;
  for (const Cache& cache : self_) caches.push_back({arranged(cache.keys), arranged(cache.values)});
  return caches;
}

DeviceAttention::Caches DeviceAttention::ArrangedSource(const Numbers& kept,
                                                        const std::vector<StepRow>& rows,
                                                        long time) const {
  const auto added = static_cast<long>(rows.size() - kept.size());
  const Tensor memory = added == 0 ? tensors_.Empty() : AddedMemory(rows, kept.size(), time);
  const Tensor numbers = kept.empty() ? tensors_.Empty() : tensors_.Numbers(kept);
  const auto joined = [&](const Tensor& old, const Tensor& fresh) {
    Tensor picked = Fit(tensors_.Pick(old, numbers), kept.size(), source_time_, time);
    if (added == 0) return picked;
    Tensor all = tensors_.Empty();
    Tensors::Join({&picked, &fresh}, 0, &all);
    return all;
  };
  Caches caches;
  for (size_t layer = 0; layer < self_.size(); ++layer) {
    Cache fresh = added == 0 ? Cache{tensors_.Empty(), tensors_.Empty()}
                             : Project(layer, memory, added, time);
    if (kept.empty()) {
      caches.push_back(std::move(fresh));
      continue;
    }
    const Cache& old = source_[layer];
    caches.push_back({joined(old.keys, fresh.keys), joined(old.values, fresh.values)});
  }
  return caches;
}

// The encoded sources of the rows from `first` on, with zeros behind the shorter ones: [rows *
// time, width].
Tensor DeviceAttention::AddedMemory(const std::vector<StepRow>& rows, size_t first,
                                    long time) const {
  const Tensor zero = tensors_.Zeros({1, 1, EncodingOf(rows[first]).memory().dim(2)});
  std::vector<const Tensor*> parts;
  long tokens = 0;
  for (size_t i = first; i < rows.size(); ++i) {
    parts.push_back(&EncodingOf(rows[i]).memory());
    tokens += parts.back()->dim(1);
  }
  Numbers numbers;
  int32_t next = 0;
  for (const Tensor* part : parts) {
    for (long t = 0; t < time; ++t) {
      numbers.push_back(t < part->dim(1) ? next++ : static_cast<int32_t>(tokens));
    }
  }
  parts.push_back(&zero);
  Tensor all = tensors_.Empty();
  Tensors::Join(parts, 1, &all);
  all.reshape({tokens + 1, zero.dim(2)});
  return tensors_.Pick(all, tensors_.Numbers(numbers));
}

DeviceAttention::Cache DeviceAttention::Project(size_t layer, const Tensor& memory, long rows,
                                                long time) const {
  Tensor projected = tensors_.Empty();
  model_.layers()[layer].source.keys->ApplyTo(memory, nullptr, &projected);
  std::vector<Tensor> parts = tensors_.Split(projected, 1, {width_, width_});
  for (Tensor& part : parts) {
    part.reshape({rows, time, heads_, head_dim_});
    part = tensors_.Transposed(part, {0, 2, 1, 3});
  }
  return {std::move(parts[0]), std::move(parts[1])};
}

// x: [rows, heads, from, head_dim]. Cut at its end, or filled with zeros.
Tensor DeviceAttention::Fit(Tensor x, size_t rows, long from, long to) const {
  if (to < from) return std::move(tensors_.Split(x, 2, {to, from - to}).front());
  if (to == from) return x;
  const Tensor zeros = tensors_.Zeros({static_cast<long>(rows), heads_, to - from, head_dim_});
  Tensor fitting = tensors_.Empty();
  Tensors::Join({&x, &zeros}, 2, &fitting);
  return fitting;
}

void DeviceAttention::PrepareStep() {
  lengths_ = Lengths(places_, &Place::tokens, 1);
  if (model_.bias().table != nullptr) bias_ = Bias();
}

Tensor DeviceAttention::Lengths(const std::vector<Place>& places, size_t Place::*tokens,
                                size_t more) const {
  Numbers lengths;
  for (const Place& place : places) {
    lengths.insert(lengths.end(), static_cast<size_t>(heads_),
                   static_cast<int32_t>(place.*tokens + more));
  }
  return tensors_.Numbers(lengths);
}

// By distance from the newest token, which is the place of a token.
Tensor DeviceAttention::Bias() const {
  const long time = time_ + 1;
  const auto last = static_cast<long>(model_.shape().bias_max_distance);
  std::vector<float> of_row;
  for (long head = 0; head < heads_; ++head) {
    const float* nearest = model_.bias().table + head * (2 * last + 1) + last;
    for (long t = 0; t < time; ++t) of_row.push_back(*(nearest - std::min(t, last)));
  }
  Tensor bias = tensors_.Pick(tensors_.Of(of_row, {1, heads_ * time}),
                              tensors_.Numbers(Numbers(places_.size(), 0)));
  bias.reshape({static_cast<long>(places_.size()), heads_, 1, time});
  return bias;
}

Tensor DeviceAttention::ToSelf(size_t layer, const Tensor& projected) {
  std::vector<Tensor> parts = tensors_.Split(projected, 1, {width_, width_, width_});
  for (Tensor& part : parts) {
    part.reshape({static_cast<long>(places_.size()), heads_, 1, head_dim_});
  }
  Cache& cache = self_[layer];
  Append(std::move(parts[1]), &cache.keys);
  Append(std::move(parts[2]), &cache.values);
  const Tensor* bias = model_.bias().table == nullptr ? nullptr : &bias_;
  return Attend(parts[0], cache, model_.layers()[layer].self.scale, lengths_, bias);
}

// Before the older ones.
void DeviceAttention::Append(Tensor added, Tensor* cache) {
  if (time_ == 0) {
    *cache = std::move(added);
    return;
  }
  Tensors::Join({&added, cache}, 2, &spare_);
  std::swap(*cache, spare_);
}

Tensor DeviceAttention::ToSource(size_t layer, Tensor queries) const {
  queries.reshape({static_cast<long>(places_.size()), heads_, 1, head_dim_});
  const float scale = model_.layers()[layer].source.scale;
  return Attend(queries, source_[layer], scale, source_lengths_, nullptr);
}

Tensor DeviceAttention::Attend(const Tensor& queries, const Cache& cache, float scale,
                               const Tensor& lengths, const Tensor* bias) const {
  Tensor scores = tensors_.Product(queries, cache.keys, /*transposed=*/true, scale);
  if (bias != nullptr) Tensors::Add(&scores, *bias);
  const Tensor shares = tensors_.Softmax(scores, lengths);
  Tensor context = tensors_.Product(shares, cache.values, /*transposed=*/false, 1);
  context.reshape({static_cast<long>(places_.size()), width_});
  return context;
}

}  // namespace ct2triton
