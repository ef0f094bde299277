// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "config/validate.h"
#include "error.h"
#include "rows/row_tensors.h"
#include "serving/fronts.h"
#include "serving/ids_answer.h"
#include "serving/read_options.h"
#include "triton/input.h"

namespace ct2triton {
namespace {

// The inputs by name, of any integer type and in any number of buffers.
RequestTensors ReadTensors(const RequestHandle& request, const ModelConfig& config) {
  RequestTensors tensors;
  bool has_input_ids = false;
  for (TRITONBACKEND_Input* handle : request.Inputs()) {
    Input input = DescribeInput(handle);
    // Triton omits a batch dimension of 0 from the shape: a request without rows.
    if (config.max_batch_size > 0 && input.shape.size() == 1) {
      input.shape.insert(input.shape.begin(), 0);
    }
    if (input.name == tensor::kInputIds) {
      tensors.input_ids = ReadIds(input);
      has_input_ids = true;
    } else if (input.name == tensor::kTargetPrefix) {
      tensors.target_prefix = ReadIds(input);
    } else if (input.name == tensor::kDraftIds) {
      tensors.draft_ids = ReadIds(input);
    } else if (input.name == tensor::kInputLengths) {
      tensors.input_lengths = ReadIds(input);
    } else if (input.name == tensor::kPrefixLengths) {
      tensors.prefix_lengths = ReadIds(input);
    } else {
      ThrowInvalid("unknown input " + Quote(input.name));
    }
  }
  if (!has_input_ids) {
    ThrowInvalid(std::string(tensor::kInputIds) + " is missing");
  }
  return tensors;
}

// Called before memory for rows is allocated, because rows may have no bytes.
void CheckRowCount(const IdTensor& ids, int64_t most) {
  if (ids.shape.size() < 2 || ids.shape.front() <= most) return;
  ThrowInvalid(std::string(tensor::kInputIds) + ": " + std::to_string(ids.shape.front()) +
               " rows are more than the model's max_request_rows " + std::to_string(most));
}

// Names of rows whose numbers begin at an offset.
class LaterRows : public RowNames {
 public:
  explicit LaterRows(size_t first) : first_(first) {}
  std::string Row(size_t row) const override { return RowNames::Row(first_ + row); }

 private:
  const size_t first_;
};

class IdsReader : public RequestReader {
 public:
  IdsReader(const ModelConfig& config, const LoadedModel& model, const Judging& judging,
            const TargetIds& languages, const RequestHandle& request)
      : config_(config),
        model_(model),
        judging_(judging),
        languages_(languages),
        request_(request) {}

  bool Read() override;
  size_t bytes() const override { return decoded_.bytes; }
  DecodedRequest Take() override { return std::move(decoded_); }

 private:
  void ReadHead();
  void CheckRows();
  void StartAnswer(std::vector<std::string> wanted);

  const ModelConfig& config_;
  const LoadedModel& model_;
  const Judging judging_;
  const TargetIds& languages_;
  const RequestHandle& request_;

  bool begun_ = false;
  RequestTensors tensors_;  // what `rows_` are views of
  std::optional<DecodingOptions> options_;
  std::vector<RowInput> rows_;
  IdsAnswer* answer_ = nullptr;  // the encoder
  DecodedRequest decoded_;
};

// An ID takes a fraction of the time of a byte of text.
constexpr size_t kIdsOfSlice = 4 * kSliceWork;
constexpr size_t kRowIds = 16;  // cost of a row, in IDs

// For a request longer than a slice, the first call only makes this comparison.
bool IdsReader::Read() {
  if (answer_ == nullptr) {
    const size_t most = kIdsOfSlice * sizeof(int32_t);
    if (!std::exchange(begun_, true) && InputBytes(request_) > most) return false;
    ReadHead();
  }
  CheckRows();
  return decoded_.rows.size() == rows_.size();
}

void IdsReader::ReadHead() {
  auto wanted = request_.WantedOutputs();
  const auto is_wanted = [&wanted](const char* name) {
    return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  const WantedOutputs outputs{is_wanted(tensor::kScores), is_wanted(tensor::kAlignments)};
  tensors_ = ReadTensors(request_, config_);
  CheckRowCount(tensors_.input_ids, config_.engine.max_request_rows);
  options_ = ReadOptions(request_, outputs, config_, &decoded_.options);
  if (decoded_.options.split != RequestOptions().split) {
    ThrowInvalid("parameter \"split\" is for texts, and this model takes ids; leave it out");
  }
  if (decoded_.options.stream) {
    ThrowInvalid("stream true is for texts, and this model takes ids; leave it out");
  }
  rows_ = SplitRows(tensors_, model_.padding_to_strip());
  if (options_ && !rows_.empty()) {
    const auto has_draft = [](const RowInput& row) { return !row.draft.empty(); };
    ValidateDraftBias(*options_, tensor::kDraftIds,
                      std::any_of(rows_.begin(), rows_.end(), has_draft));
  }
  decoded_.rows.reserve(rows_.size());
  StartAnswer(std::move(wanted));
}

void IdsReader::StartAnswer(std::vector<std::string> wanted) {
  const DecodingOptions& in_force = options_ ? *options_ : config_.decoding;
  const Judging judging = judging_.With(in_force);
  if (judging.judge != nullptr) {
    decoded_.retries = RowRetries::For(in_force, config_.engine, model_, judging);
  } else if (wanted.size() == config_.outputs.size()) {
    LeaveOutVerdicts(&wanted);
  }
  const bool batched = tensors_.input_ids.shape.size() > 1;
  auto answer =
      std::make_unique<IdsAnswer>(config_, model_, languages_, judging, std::move(wanted), batched);
  answer_ = answer.get();
  decoded_.encoder = std::move(answer);
}

void IdsReader::CheckRows() {
  const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(decoded_.rows.size());
  auto end = first;
  for (size_t ids = 0; end != rows_.end() && ids < kIdsOfSlice; ++end) {
    ids += kRowIds + end->source.size() + end->prefix.size() + end->draft.size();
  }
  const LaterRows names(decoded_.rows.size());
  for (CheckedRow& row : model_.Check({first, end}, options_ ? &*options_ : nullptr, names)) {
    decoded_.bytes += answer_->Add(row);
    decoded_.Add(std::move(row));
  }
}

}  // namespace

Front IdsFront(const ModelConfig& config, const LoadedModel& model, const Judging& judging,
               const TargetIds& languages) {
  return [&config, &model, judging, &languages](const RequestHandle& request) {
    return std::make_unique<IdsReader>(config, model, judging, languages, request);
  };
}

}  // namespace ct2triton
