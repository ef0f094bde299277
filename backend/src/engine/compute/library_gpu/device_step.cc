// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/library_gpu/device_step.h"

#include <algorithm>
#include <utility>

namespace ct2triton {

DeviceStep::DeviceStep(const DeviceModel& model, const Tensors& tensors)
    : model_(model),
      tensors_(tensors),
      embedding_scale_(tensors.Scalar(model.shape().embedding_scale)),
      output_scale_(tensors.Scalar(model.shape().output_scale)),
      attention_(model, tensors) {}

Tensor DeviceStep::Run(const std::vector<StepRow>& rows) {
  attention_.Arrange(rows);
  Tensor hidden = Embed(rows);
  for (size_t layer = 0; layer < model_.layers().size(); ++layer) hidden = RunLayer(layer, hidden);
  return Output(rows, std::move(hidden));
}

Tensor DeviceStep::Embed(const std::vector<StepRow>& rows) const {
  std::vector<int32_t> ids;
  for (const StepRow& row : rows) ids.push_back(*row.tokens);
  Tensor embeddings = tensors_.Empty();
  model_.embeddings().ApplyTo(tensors_.Numbers(ids), &embeddings);
  ScaleEmbeddings(rows, &embeddings);
  AddPositions(rows, &embeddings);
  const LibraryNorm* norm = model_.embedding_norm();
  if (norm != nullptr) norm->ApplyTo(embeddings, &embeddings);
  return embeddings;
}

// Where a model starts from zero, the embeddings of first tokens are not scaled but left out.
void DeviceStep::ScaleEmbeddings(const std::vector<StepRow>& rows, Tensor* embeddings) const {
  const auto is_first = [](const StepRow& row) { return row.position == 0; };
  if (!model_.shape().start_from_zero_embedding ||
      std::none_of(rows.begin(), rows.end(), is_first)) {
    if (model_.shape().embedding_scale != 1) Tensors::Scale(embeddings, embedding_scale_);
    return;
  }
  std::vector<float> factors;
  for (const StepRow& row : rows) {
    factors.insert(factors.end(), model_.shape().width,
                   is_first(row) ? 0 : model_.shape().embedding_scale);
  }
  const auto width = static_cast<long>(model_.shape().width);
  Tensors::Scale(embeddings, tensors_.Of(factors, {static_cast<long>(rows.size()), width}));
}

void DeviceStep::AddPositions(const std::vector<StepRow>& rows, Tensor* embeddings) const {
  if (model_.bias().table != nullptr) return;  // the attention tells them
  const size_t width = model_.shape().width;
  std::vector<float> positions(rows.size() * width);
  for (size_t i = 0; i < rows.size(); ++i) {
    model_.AddPosition(rows[i].position, positions.data() + i * width);
  }
  const TensorShape shape = {static_cast<long>(rows.size()), static_cast<long>(width)};
  Tensors::Add(embeddings, tensors_.Of(positions, shape));
}

Tensor DeviceStep::RunLayer(size_t index, const Tensor& hidden) {
  const DeviceLayer& layer = model_.layers()[index];
  const DeviceAttentionLayers& self = layer.self;
  const DeviceAttentionLayers& source = layer.source;

  const Tensor projected = Enter(*self.norm, *self.in, hidden);
  const Tensor after_self =
      Leave(*self.norm, *self.out, attention_.ToSelf(index, projected), hidden);

  Tensor queries = Enter(*source.norm, *source.in, after_self);
  const Tensor after_source =
      Leave(*source.norm, *source.out, attention_.ToSource(index, std::move(queries)), after_self);

  const LibraryNorm& norm = *layer.feed_forward_norm;
  Tensor inner = Enter(norm, *layer.inner, after_source);
  if (layer.gate) Tensors::Scale(&inner, Enter(norm, *layer.gate, after_source));
  return Leave(norm, *layer.outer, inner, after_source);
}

Tensor DeviceStep::Enter(const LibraryNorm& norm, const LibraryLinear& product,
                         const Tensor& x) const {
  Tensor out = tensors_.Empty();
  if (!model_.shape().pre_norm) {
    product.ApplyTo(x, nullptr, &out);
    return out;
  }
  Tensor normalized = tensors_.Empty();
  norm.ApplyTo(x, &normalized);
  product.ApplyTo(normalized, nullptr, &out);
  return out;
}

Tensor DeviceStep::Leave(const LibraryNorm& norm, const LibraryLinear& product, const Tensor& x,
                         const Tensor& residual) const {
  Tensor out = tensors_.Empty();
  product.ApplyTo(x, &residual, &out);
  if (!model_.shape().pre_norm) norm.ApplyTo(out, &out);
  return out;
}

// Of a row with forced tokens to come, nothing is wanted.
Tensor DeviceStep::Output(const std::vector<StepRow>& rows, Tensor hidden) const {
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].outputs > 0) wanted.push_back(static_cast<int32_t>(i));
  }
  if (wanted.empty()) return hidden;
  if (wanted.size() < rows.size()) hidden = tensors_.Pick(hidden, tensors_.Numbers(wanted));
  if (model_.output_norm() != nullptr) model_.output_norm()->ApplyTo(hidden, &hidden);
  if (model_.shape().output_scale != 1) Tensors::Scale(&hidden, output_scale_);
  return hidden;
}

}  // namespace ct2triton
