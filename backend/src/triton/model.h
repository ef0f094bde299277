// SPDX-License-Identifier: Apache-2.0
//
// Triton's properties of a model and an instance, as values.
#pragma once

#include <cstdint>
#include <string>

#include "engine/device.h"
#include "triton_c_api.h"

namespace ct2triton {

// Throws Error(kInvalidArgument) if --backend-config sets anything for this backend.
void RequireNoSettings(TRITONBACKEND_Backend* backend);

std::string ModelName(TRITONBACKEND_Model* model);
uint64_t ModelVersion(TRITONBACKEND_Model* model);
std::string ModelFolder(TRITONBACKEND_Model* model);  // the one that holds config.pbtxt

std::string ModelConfigJson(TRITONBACKEND_Model* model);
bool AutoCompleteWanted(TRITONBACKEND_Model* model);
void SetModelConfigJson(TRITONBACKEND_Model* model, const std::string& json);

TRITONBACKEND_Model* InstanceModel(TRITONBACKEND_ModelInstance* instance);

// Where CTranslate2 has to run for this instance.
// Throws Error(kInvalidArgument) for a kind other than KIND_CPU and KIND_GPU.
Device InstanceDevice(TRITONBACKEND_ModelInstance* instance);

// Where Triton puts instances when a model's config does not say: one on each GPU if CTranslate2
// can use any, else one on the CPU. An instance has a pool of workers, so more gain nothing.
void SetPreferredInstances(TRITONBACKEND_BackendAttribute* attributes);

}  // namespace ct2triton
