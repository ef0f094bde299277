// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the handles that the backend gets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "triton_stand_in.h"

namespace stand_in {

// Counts the handles that are alive.
struct Counted {
  Counted() { ++live; }
  ~Counted() { --live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  static std::atomic<long> live;
};

}  // namespace stand_in

struct TRITONSERVER_Error : stand_in::Counted {
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_UNKNOWN;
  std::string text;
};

struct TRITONSERVER_Message : stand_in::Counted {
  std::string json;
};

struct TRITONSERVER_Parameter : stand_in::Counted {};

struct TRITONSERVER_MetricFamily {};

struct TRITONSERVER_Metric : stand_in::Counted {
  TRITONSERVER_Metric() { ++metrics; }
  ~TRITONSERVER_Metric() { --metrics; }
  static std::atomic<long> metrics;
  std::atomic<double> value{0};
};

struct TRITONBACKEND_Model {
  std::string name = "model";
  std::string folder;
  std::string config;
  void* state = nullptr;
};

struct TRITONBACKEND_ModelInstance {
  std::string name = "model_0";
  TRITONBACKEND_Model* model = nullptr;
  void* state = nullptr;
  std::optional<int32_t> gpu;  // none: on the processor
  std::atomic<uint64_t> reported_requests{0};
};

struct TRITONBACKEND_Input {
  stand_in::Tensor tensor;
  std::vector<std::string> buffers;  // each in memory of its own: reading beyond one is seen
};

struct TRITONBACKEND_Request : stand_in::Counted {
  std::vector<std::unique_ptr<TRITONBACKEND_Input>> inputs;
  stand_in::RequestContent content;
  std::shared_ptr<stand_in::Call> call;
  std::atomic<int> reports{0};
};

struct TRITONBACKEND_Output {
  stand_in::Tensor tensor;
  std::unique_ptr<char[]> buffer;  // its exact size: writing beyond it is seen
  size_t byte_size = 0;
};

struct TRITONBACKEND_Response : stand_in::Counted {
  std::shared_ptr<stand_in::Call> call;
  std::vector<std::unique_ptr<TRITONBACKEND_Output>> outputs;
};
