// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/source_encoder.h"

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
  Encodings encodings(rows.size());
  std::vector<Task> tasks;
  std::vector<size_t> later;  // made by another thread, or here for an earlier row
  for (size_t i = 0; i < rows.size(); ++i) {
    auto answer = shared_->Find(rows[i]->source);
    encodings[i] = std::move(answer.encoding);
    if (answer.place) {
      tasks.push_back({rows[i], i, std::move(*answer.place)});
    } else if (!encodings[i]) {
      later.push_back(i);
    }
  }
  for (Batch& batch : BatchesOf(std::move(tasks))) {
    EncodeBatch(std::move(batch), &encodings, counts);
  }
  // Waiting for another thread takes no longer than encoding the same source at the same time.
  for (const size_t i : later) {
    auto answer = shared_->Await(rows[i]->source);
    encodings[i] = std::move(answer.encoding);
    if (!answer.place) continue;
    Batch alone;  // the other thread's encoding failed or is gone
    alone.push_back({rows[i], i, std::move(*answer.place)});
    EncodeBatch(std::move(alone), &encodings, counts);
  }
  counts->shared += rows.size() - counts->rows;
  return encodings;
}

void SourceEncoder::EncodeBatch(Batch batch, Encodings* encodings, Counts* counts) {
  std::vector<std::vector<size_t>> sources;
  for (const Task& task : batch) {
    sources.push_back(IdsOf(*task.row));
    counts->tokens += sources.back().size();
  }
  auto encoded = compute_->Encode(sources);
  ++counts->calls;
  counts->rows += batch.size();
  for (size_t k = 0; k < batch.size(); ++k) {
    auto made = std::make_shared<Encoding>(std::move(batch[k].place), std::move(encoded[k]));
    shared_->Publish(made);
    (*encodings)[batch[k].position] = std::move(made);
  }
}

// As CTranslate2 derives them from tokens: the first ID of a token that occurs twice.
std::vector<size_t> SourceEncoder::IdsOf(const CheckedRow& row) const {
  const auto& files = model_.weights().files();
  const auto& vocabulary = model_.weights().source();
  std::vector<size_t> ids;
  if (files.add_source_bos) ids.push_back(vocabulary.to_id(files.bos_token));
  for (const int64_t id : row.source) {
    ids.push_back(vocabulary.to_id(vocabulary.to_token(static_cast<size_t>(id))));
  }
  if (files.add_source_eos) ids.push_back(vocabulary.to_id(files.eos_token));
  return ids;
}

}  // namespace ct2triton
