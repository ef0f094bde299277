// SPDX-License-Identifier: Apache-2.0
#include "serving/output_tensor.h"

#include <cstring>

#include "triton/data_type.h"

namespace ct2triton {

void WriteTensor(const TensorSpec& spec, const Matrix<int64_t>& matrix, Response* response) {
  const TRITONSERVER_DataType type = IntegerFromConfig(spec.data_type);
  const size_t byte_size = matrix.values.size() * IntegerByteSize(type);
  NarrowIntegers(matrix.values, type,
                 response->AddOutput(spec.name, type, matrix.shape, byte_size));
}

void WriteTensor(const TensorSpec& spec, const Matrix<float>& matrix, Response* response) {
  const size_t byte_size = matrix.values.size() * sizeof(float);
  void* data = response->AddOutput(spec.name, TRITONSERVER_TYPE_FP32, matrix.shape, byte_size);
  if (byte_size > 0) std::memcpy(data, matrix.values.data(), byte_size);
}

// Triton's format of each string: four bytes of length, little-endian, then the bytes.
void WriteTensor(const TensorSpec& spec, const Matrix<std::string>& matrix, Response* response) {
  std::string bytes;
  for (const std::string& text : matrix.values) {
    const auto length = static_cast<uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
    bytes += text;
  }
  void* data = response->AddOutput(spec.name, TRITONSERVER_TYPE_BYTES, matrix.shape, bytes.size());
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
}

}  // namespace ct2triton
