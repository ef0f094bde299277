// SPDX-License-Identifier: Apache-2.0
#include "serving/output_writer.h"

#include <cstdint>
#include <cstring>

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
  if (spec.name == "OUTPUT_IDS") {
    Write(spec, answer.OutputIds(), response);
  } else if (spec.name == "OUTPUT_LENGTHS") {
    Write(spec, answer.OutputLengths(), response);
  } else if (spec.name == "HYPOTHESES") {
    Write(spec, answer.Hypotheses(), response);
  } else if (spec.name == "HYPOTHESIS_LENGTHS") {
    Write(spec, answer.HypothesisLengths(), response);
  } else if (spec.name == "SCORES") {
    Write(spec, answer.Scores(), response);
  } else if (spec.name == "FINISH_REASON") {
    Write(spec, answer.FinishReasons(), response);
  } else {
    throw Error(ErrorCode::kInternal, "output " + spec.name + " is declared but not known");
  }
}

}  // namespace

void WriteOutputs(const AnswerTensors& answer, const std::vector<std::string>& wanted,
                  const ModelConfig& config, Response* response) {
  for (const std::string& name : wanted) {
    const TensorSpec* spec = config.Output(name);
    if (spec == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "output " + name + " is not declared by the model");
    }
    WriteOutput(*spec, answer, response);
  }
}

}  // namespace ct2triton
