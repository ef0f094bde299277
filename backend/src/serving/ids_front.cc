// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_front.h"

#include <algorithm>
#include <string>
#include <utility>

#include "config/parse_value.h"
#include "config/tensor_table.h"
#include "error.h"
#include "rows/row_tensors.h"
#include "serving/ids_answer.h"
#include "serving/read_options.h"
#include "triton/input.h"

namespace ct2triton {
namespace {

// The inputs by name, whatever integer type they have and however many buffers they lie in.
RequestTensors ReadTensors(const RequestHandle& request, const ModelConfig& config) {
  RequestTensors tensors;
  bool has_input_ids = false;
  for (TRITONBACKEND_Input* handle : request.Inputs()) {
    Input input = DescribeInput(handle);
    // Triton leaves the batch dimension out of the shape where it is 0: a request of no rows.
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
      throw Error(ErrorCode::kInvalidArgument, "unknown input " + Quote(input.name));
    }
  }
  if (!has_input_ids) {
    throw Error(ErrorCode::kInvalidArgument, std::string(tensor::kInputIds) + " is missing");
  }
  return tensors;
}

}  // namespace

DecodedRequest IdsFront::Decode(const RequestHandle& request) const {
  auto wanted = request.WantedOutputs();
  const auto is_wanted = [&wanted](const char* name) {
    return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  const WantedOutputs outputs{is_wanted(tensor::kScores), is_wanted(tensor::kAlignments)};
  const RequestTensors tensors = ReadTensors(request, config_);
  const bool batched = tensors.input_ids.shape.size() > 1;
  DecodedRequest decoded;
  const auto options = ReadOptions(request, outputs, config_, &decoded.options);
  if (decoded.options.split != RequestOptions().split) {
    throw Error(ErrorCode::kInvalidArgument,
                "parameter \"split\" is for texts, and this model takes ids; leave it out");
  }
  decoded.rows =
      model_.Check(SplitRows(tensors, model_.padding_to_strip()), options ? &*options : nullptr);
  decoded.encoder =
      std::make_unique<IdsAnswer>(config_, std::move(wanted), batched, model_.pad_id());
  return decoded;
}

}  // namespace ct2triton
