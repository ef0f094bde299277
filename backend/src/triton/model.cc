// SPDX-License-Identifier: Apache-2.0
#include "triton/model.h"

#include <memory>

#include "config/backend_config.h"
#include "triton/guard.h"

namespace ct2triton {
namespace {

constexpr uint32_t kConfigVersion = 1;

struct MessageDeleter {
  void operator()(TRITONSERVER_Message* message) const noexcept {
    LogIfError("freeing a message", [&] { return TRITONSERVER_MessageDelete(message); });
  }
};
using OwnedMessage = std::unique_ptr<TRITONSERVER_Message, MessageDeleter>;

std::string Json(TRITONSERVER_Message* message, const char* doing) {
  const char* json = nullptr;
  size_t byte_size = 0;
  ThrowIfError(TRITONSERVER_MessageSerializeToJson(message, &json, &byte_size), doing);
  return std::string(json, byte_size);
}

void PreferInstances(TRITONBACKEND_BackendAttribute* attributes,
                     TRITONSERVER_InstanceGroupKind kind) {
  ThrowIfError(
      TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, kind, 1, nullptr, 0),
      "setting the preferred instance group");
}

}  // namespace

void RequireNoSettings(TRITONBACKEND_Backend* backend) {
  TRITONSERVER_Message* message = nullptr;
  ThrowIfError(TRITONBACKEND_BackendConfig(backend, &message), "reading --backend-config");
  CheckBackendConfig(Json(message, "reading --backend-config"));
}

std::string ModelName(TRITONBACKEND_Model* model) {
  const char* name = nullptr;
  ThrowIfError(TRITONBACKEND_ModelName(model, &name), "reading a model's name");
  return name;
}

uint64_t ModelVersion(TRITONBACKEND_Model* model) {
  uint64_t version = 0;
  ThrowIfError(TRITONBACKEND_ModelVersion(model, &version), "reading a model's version");
  return version;
}

std::string ModelFolder(TRITONBACKEND_Model* model) {
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  ThrowIfError(TRITONBACKEND_ModelRepository(model, &type, &location), "reading a model's folder");
  if (type != TRITONBACKEND_ARTIFACT_FILESYSTEM) {
    throw Error(ErrorCode::kUnsupported, "the model repository must be in a file system");
  }
  return location;
}

std::string ModelConfigJson(TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* raw = nullptr;
  ThrowIfError(TRITONBACKEND_ModelConfig(model, kConfigVersion, &raw),
               "reading a model's configuration");
  const OwnedMessage message(raw);
  return Json(message.get(), "reading a model's configuration");
}

bool AutoCompleteWanted(TRITONBACKEND_Model* model) {
  bool wanted = false;
  ThrowIfError(TRITONBACKEND_ModelAutoCompleteConfig(model, &wanted),
               "reading a model's configuration");
  return wanted;
}

void SetModelConfigJson(TRITONBACKEND_Model* model, const std::string& json) {
  TRITONSERVER_Message* raw = nullptr;
  ThrowIfError(TRITONSERVER_MessageNewFromSerializedJson(&raw, json.data(), json.size()),
               "completing the configuration");
  const OwnedMessage message(raw);
  ThrowIfError(TRITONBACKEND_ModelSetConfig(model, kConfigVersion, message.get()),
               "completing the configuration");
}

TRITONBACKEND_Model* InstanceModel(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* model = nullptr;
  ThrowIfError(TRITONBACKEND_ModelInstanceModel(instance, &model), "reading an instance's model");
  return model;
}

Device InstanceDevice(TRITONBACKEND_ModelInstance* instance) {
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  ThrowIfError(TRITONBACKEND_ModelInstanceKind(instance, &kind), "reading an instance's kind");
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_CPU) return Device{Device::Kind::kCpu, 0};
  if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    ThrowInvalid("instance_group: the kind must be KIND_CPU or KIND_GPU");
  }
  int32_t index = 0;
  ThrowIfError(TRITONBACKEND_ModelInstanceDeviceId(instance, &index),
               "reading an instance's device");
  return Device{Device::Kind::kGpu, index};
}

void SetPreferredInstances(TRITONBACKEND_BackendAttribute* attributes) {
  // Triton uses the first one that applies.
  if (GpuCount() > 0) PreferInstances(attributes, TRITONSERVER_INSTANCEGROUPKIND_GPU);
  PreferInstances(attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU);
}

}  // namespace ct2triton
