// SPDX-License-Identifier: Apache-2.0
#include "serving/instance_state.h"

#include <utility>

#include "triton/guard.h"
#include "triton/model.h"
#include "triton/statistics.h"

namespace ct2triton {

void InstanceState::Attach(TRITONBACKEND_ModelInstance* instance) {
  auto state = std::make_unique<InstanceState>(instance);
  Check(TRITONBACKEND_ModelInstanceSetState(instance, state.get()),
        "keeping the state of an instance");
  state.release();
}

void InstanceState::Detach(TRITONBACKEND_ModelInstance* instance) {
  void* state = nullptr;
  Check(TRITONBACKEND_ModelInstanceState(instance, &state), "reading the state of an instance");
  delete static_cast<InstanceState*>(state);  // null if it never got a state
}

InstanceState& InstanceState::Of(TRITONBACKEND_ModelInstance* instance) {
  void* state = nullptr;
  Check(TRITONBACKEND_ModelInstanceState(instance, &state), "reading the state of an instance");
  return *static_cast<InstanceState*>(state);
}

InstanceState::InstanceState(TRITONBACKEND_ModelInstance* instance)
    : instance_(instance),
      model_(ModelState::Of(InstanceModel(instance))),
      translator_(model_.TranslatorOn(InstanceDevice(instance))),
      context_{instance, this, &model_.config(), translator_.get(), std::make_shared<InFlight>()} {}

InstanceState::~InstanceState() { context_.in_flight->WaitUntilNone(); }

void InstanceState::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  Translate(TakeOver(requests, count));
  if (model_.config().engine.wait_for_batch) context_.in_flight->WaitUntilNone();
}

InstanceState::Batch InstanceState::TakeOver(TRITONBACKEND_Request** requests,
                                             uint32_t count) const {
  Batch batch;
  batch.reserve(count);
  for (uint32_t i = 0; i < count; ++i) batch.push_back(std::make_shared<PendingRequest>(context_));
  // Here the requests become ours. What failed until now, Triton answers; from now on, we do.
  for (uint32_t i = 0; i < count; ++i) batch[i]->Own(requests[i]);
  return batch;
}

void InstanceState::Translate(Batch batch) noexcept {
  try {
    std::vector<Translator::Request> work;
    for (const auto& request : batch) {
      std::vector<CheckedRow> rows = request->Prepare();
      model_.CountRows(rows);
      if (!rows.empty()) work.push_back({std::move(rows), request});
    }
    if (!work.empty()) translator_->Submit(std::move(work));
  } catch (...) {
    const Error error = CurrentError();
    for (const auto& request : batch) request->Abandon(error);
  }
}

void InstanceState::CallDone(size_t rows, const CallTimes& times) noexcept {
  ReportCall(instance_, rows, times);
}

}  // namespace ct2triton
