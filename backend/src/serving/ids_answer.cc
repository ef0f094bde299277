// SPDX-License-Identifier: Apache-2.0
#include "serving/ids_answer.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "config/tensor_table.h"
#include "error.h"
#include "rows/row_tensors.h"
#include "triton/data_type.h"

namespace ct2triton {
namespace {

void Write(const TensorSpec& spec, const Matrix<int64_t>& matrix, Response* response) {
  const TRITONSERVER_DataType type = DataTypeFromConfig(spec.data_type);
  const size_t byte_size = matrix.values.size() * IntegerByteSize(type);
  NarrowIntegers(matrix.values, type,
                 response->AddOutput(spec.name, type, matrix.shape, byte_size));
}

void Write(const TensorSpec& spec, const Matrix<float>& matrix, Response* response) {
  const size_t byte_size = matrix.values.size() * sizeof(float);
  void* data = response->AddOutput(spec.name, TRITONSERVER_TYPE_FP32, matrix.shape, byte_size);
  if (byte_size > 0) std::memcpy(data, matrix.values.data(), byte_size);
}

// Each string as Triton wants it: four bytes of length, little-endian, then the bytes.
void Write(const TensorSpec& spec, const Matrix<std::string>& matrix, Response* response) {
  std::string bytes;
  for (const std::string& text : matrix.values) {
    const auto length = static_cast<uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
    bytes += text;
  }
  void* data = response->AddOutput(spec.name, TRITONSERVER_TYPE_BYTES, matrix.shape, bytes.size());
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
}

void WriteOutput(const TensorSpec& spec, const AnswerTensors& answer, Response* response) {
  if (spec.name == tensor::kOutputIds) {
    Write(spec, answer.OutputIds(), response);
  } else if (spec.name == tensor::kOutputLengths) {
    Write(spec, answer.OutputLengths(), response);
  } else if (spec.name == tensor::kHypotheses) {
    Write(spec, answer.Hypotheses(), response);
  } else if (spec.name == tensor::kHypothesisLengths) {
    Write(spec, answer.HypothesisLengths(), response);
  } else if (spec.name == tensor::kScores) {
    Write(spec, answer.Scores(), response);
  } else if (spec.name == tensor::kFinishReason) {
    Write(spec, answer.FinishReasons(), response);
  } else {
    throw Error(ErrorCode::kInternal, "output " + spec.name + " is declared but not known");
  }
}

}  // namespace

IdsAnswer::IdsAnswer(const ModelConfig& config, std::vector<std::string> wanted, bool batched,
                     int64_t pad_id)
    : config_(config), wanted_(std::move(wanted)), batched_(batched), pad_id_(pad_id) {}

void IdsAnswer::Encode(const std::vector<RowResult>& rows, Response* response) const {
  const AnswerTensors answer(rows, batched_, pad_id_);
  for (const std::string& name : wanted_) {
    const TensorSpec* spec = config_.Output(name);
    if (spec == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "output " + name + " is not declared by the model");
    }
    WriteOutput(*spec, answer, response);
  }
}

}  // namespace ct2triton
