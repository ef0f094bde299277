// SPDX-License-Identifier: Apache-2.0
#include "triton_stand_in.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "triton_stand_in_handles.h"

std::atomic<long> TRITONSERVER_Metric::metrics{0};

namespace stand_in {

std::atomic<long> Counted::live{0};

long LiveHandles() { return Counted::live; }
long LiveMetrics() { return TRITONSERVER_Metric::metrics; }

void UseMemory() { ::operator delete(::operator new(1)); }

void Require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "the backend broke its contract: %.*s\n", static_cast<int>(what.size()),
               what.data());
  std::abort();
}

namespace {

std::string expected_error;

constexpr std::string_view kOutOfMemory = "the server ran out of memory";

bool IsExpected(std::string_view text) {
  if (text == kOutOfMemory) return true;
  return !expected_error.empty() && text.find(expected_error) != text.npos;
}

void ThrowIf(TRITONSERVER_Error* error) {
  if (error == nullptr) return;
  const std::string text = error->text;
  Require(!text.empty(), "an error without a text");
  delete error;
  throw std::runtime_error(text);
}

}  // namespace

void ExpectError(std::string part) { expected_error = std::move(part); }

Model::Model(const std::string& folder, const std::string& config, size_t instances, bool on_gpus)
    : model_(std::make_unique<TRITONBACKEND_Model>()) {
  model_->folder = folder;
  model_->config = config;
  try {
    ThrowIf(TRITONBACKEND_ModelInitialize(model_.get()));
    for (size_t i = 0; i < instances; ++i) {
      instances_.push_back(std::make_unique<TRITONBACKEND_ModelInstance>());
      instances_.back()->model = model_.get();
      if (on_gpus) instances_.back()->gpu = static_cast<int32_t>(i);
      ThrowIf(TRITONBACKEND_ModelInstanceInitialize(instances_.back().get()));
    }
  } catch (...) {
    Unload();  // Triton finalises also what failed to initialise
    throw;
  }
}

Model::~Model() { Unload(); }

void Model::Unload() noexcept {
  for (const auto& instance : instances_) {
    Require(TRITONBACKEND_ModelInstanceFinalize(instance.get()) == nullptr, "finalize failed");
  }
  instances_.clear();
  Require(TRITONBACKEND_ModelFinalize(model_.get()) == nullptr, "finalize failed");
}

uint64_t Model::Reported(size_t instance) const { return instances_[instance]->reported_requests; }

Answer Model::Ready(size_t instance) {
  const std::unique_ptr<TRITONSERVER_Error> error(
      TRITONBACKEND_ModelInstanceReady(instances_[instance].get()));
  if (!error) return {};
  return {error->code, error->text, {}};
}

void Model::Execute(size_t instance, std::vector<TRITONBACKEND_Request*> requests) {
  const std::unique_ptr<TRITONSERVER_Error> error(TRITONBACKEND_ModelInstanceExecute(
      instances_[instance].get(), requests.data(), static_cast<uint32_t>(requests.size())));
  if (!error) return;
  Require(error->text == kOutOfMemory, "Execute failed");
  for (TRITONBACKEND_Request* request : requests) {
    const auto call = request->call;
    delete request;
    Answer answer;
    answer.error = error->code;
    answer.message = error->text;
    call->TakeAnswer(std::move(answer));
    call->TakeBack();
  }
}

}  // namespace stand_in

using stand_in::Require;

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* text) {
  auto error = std::make_unique<TRITONSERVER_Error>();
  error->code = code;
  error->text = text;
  return error.release();
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) { delete error; }
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) { return error->code; }
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) { return error->text.c_str(); }

bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level) {
  return level != TRITONSERVER_LOG_VERBOSE;
}

// An error is a bug of ours, a lack of memory, or expected: the backend logs no client's mistake as
// one.
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char*, const int,
                                            const char* text) {
  Require(level != TRITONSERVER_LOG_ERROR || stand_in::IsExpected(text), text);
  stand_in::UseMemory();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* json, size_t byte_size) {
  *message = new TRITONSERVER_Message;
  (*message)->json.assign(json, byte_size);
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** json, size_t* byte_size) {
  *json = message->json.data();
  *byte_size = message->json.size();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}

const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType) { return "a type"; }

TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char*, const TRITONSERVER_ParameterType,
                                                  const void*) {
  return new TRITONSERVER_Parameter;
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter) { delete parameter; }

TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 const TRITONSERVER_MetricKind, const char*,
                                                 const char*) {
  static TRITONSERVER_MetricFamily only;
  *family = &only;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric, TRITONSERVER_MetricFamily*,
                                           const TRITONSERVER_Parameter**, const uint64_t) {
  *metric = new TRITONSERVER_Metric;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
  delete metric;
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value) {
  metric->value = metric->value + value;
  Require(value != 0 && metric->value >= 0, "a change that is none, or a count below 0");
  stand_in::UseMemory();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  *major = 1;
  *minor = 19;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute*, const TRITONSERVER_InstanceGroupKind, const uint64_t,
    const uint64_t*, const uint64_t) {
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  *name = model->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*, uint64_t* version) {
  *version = 1;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* type,
                                                  const char** location) {
  *type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *location = model->folder.c_str();
  return nullptr;
}

// Not called: there are no statistics of responses here.
TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory**,
                                                     TRITONBACKEND_Request*) {
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory*) {
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend*,
                                                TRITONSERVER_Message** config) {
  static TRITONSERVER_Message none;
  *config = &none;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, const uint32_t,
                                              TRITONSERVER_Message** config) {
  return TRITONSERVER_MessageNewFromSerializedJson(config, model->config.data(),
                                                   model->config.size());
}

TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model*, bool* wanted) {
  *wanted = true;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, const uint32_t,
                                                 TRITONSERVER_Message* config) {
  model->config = config->json;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  *state = model->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  model->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name) {
  *name = instance->name.c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
  *kind = instance->gpu ? TRITONSERVER_INSTANCEGROUPKIND_GPU : TRITONSERVER_INSTANCEGROUPKIND_CPU;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device_id) {
  *device_id = instance->gpu.value_or(0);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  *model = instance->model;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
  *state = instance->state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state) {
  instance->state = state;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request, const bool,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns) {
  Require(++request->reports == 1, "statistics of a request reported twice");
  Require(exec_start_ns > 0 && exec_start_ns <= compute_start_ns &&
              compute_start_ns <= compute_end_ns && compute_end_ns <= exec_end_ns,
          "times of a request out of order");
  ++instance->reported_requests;
  stand_in::UseMemory();
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance*,
                                                                     const uint64_t batch_size,
                                                                     const uint64_t exec_start_ns,
                                                                     const uint64_t, const uint64_t,
                                                                     const uint64_t exec_end_ns) {
  Require(batch_size > 0 && exec_start_ns <= exec_end_ns, "bad statistics of a batch");
  stand_in::UseMemory();
  return nullptr;
}
