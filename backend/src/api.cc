// SPDX-License-Identifier: Apache-2.0
//
// What Triton calls: each runs inside a guard that lets no exception out.
#include "serving/instance_state.h"
#include "serving/model_state.h"
#include "triton/guard.h"
#include "triton/model.h"
#include "triton/process_exit.h"

using ct2triton::Guard;
using ct2triton::InstanceState;
using ct2triton::ModelState;

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return Guard([&] {
    ct2triton::RequireBackendApi();
    ct2triton::RequireNoSettings(backend);
  });
}

TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                                      TRITONBACKEND_BackendAttribute* attributes) {
  return Guard([&] { ct2triton::SetPreferredInstances(attributes); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return Guard([&] { ModelState::Attach(model); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return Guard([&] { ModelState::Detach(model); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return Guard([&] { InstanceState::Attach(instance); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return Guard([&] { InstanceState::Detach(instance); });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  return Guard([&] {
    InstanceState::Of(instance).Execute(requests, request_count);
    ct2triton::RenewExitHandler();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance* instance) {
  return Guard([&] { InstanceState::Of(instance).RequireReady(); });
}

}  // extern "C"
