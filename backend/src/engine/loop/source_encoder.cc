// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/source_encoder.h"

#include <map>
#include <utility>

#include "engine/loop/loop_engine.h"

namespace ct2triton {

void SourceEncoder::Counts::AddTo(LoopCounters* counters) const {
  counters->encodes += calls;
  counters->encoded_rows += rows;
  counters->shared_encodings += shared;
  counters->encoded_tokens += tokens;
}

std::vector<SourceEncoder::Batch> SourceEncoder::BatchesOf(std::vector<Task> tasks) const {
  std::vector<Batch> batches;
  for (Task& task : tasks) {
    if (batches.empty() || batches.back().size() == model_.encoded_together())
      batches.emplace_back();
    batches.back().push_back(std::move(task));
  }
  return batches;
}

SourceEncoder::Encodings SourceEncoder::Encode(const std::vector<const CheckedRow*>& rows,
                                               Counts* counts) {
  std::map<Ids, std::shared_ptr<const Encoding>> encodings;
  for (const CheckedRow* row : rows) encodings.try_emplace(row->source);
  size_t first_uses = 0;
  for (const bool last : {false, true}) {
    std::vector<Task> tasks;
    for (auto& [source, encoding] : encodings) {
      if (encoding) continue;
      auto answer = shared_->Find(source);
      encoding = std::move(answer.encoding);
      if (encoding && encoding->IsFirstUse()) ++first_uses;
      if (!encoding && (answer.place || last)) {
        tasks.push_back({source, &encoding, std::move(answer.place)});
      }
    }
    for (Batch& batch : BatchesOf(std::move(tasks))) EncodeBatch(std::move(batch), counts);
  }
  counts->shared += rows.size() - counts->rows - first_uses;
  Encodings of_rows;
  for (const CheckedRow* row : rows) of_rows.push_back(encodings[row->source]);
  return of_rows;
}

void SourceEncoder::EncodeBatch(Batch batch, Counts* counts) {
  std::vector<std::vector<size_t>> sources;
  for (const Task& task : batch) {
    sources.push_back(IdsOf(task.source));
    counts->tokens += sources.back().size();
  }
  auto encoded = compute_->Encode(sources);
  ++counts->calls;
  counts->rows += batch.size();
  for (size_t k = 0; k < batch.size(); ++k) {
    auto made = std::make_shared<Encoding>(std::move(batch[k].place), std::move(encoded[k]));
    shared_->Publish(made);
    *batch[k].encoding = std::move(made);
  }
}

std::vector<size_t> SourceEncoder::IdsOf(const Ids& source) const {
  const auto& files = model_.weights().files();
  const auto& vocabulary = model_.weights().source();
  std::vector<size_t> ids;
  const auto add = [&ids](int64_t id) { ids.push_back(static_cast<size_t>(id)); };
  if (files.add_source_bos) add(vocabulary.to_id(files.bos_token));
  for (const int64_t id : source) add(vocabulary.by_name(id));
  if (files.add_source_eos) add(vocabulary.to_id(files.eos_token));
  return ids;
}

}  // namespace ct2triton
