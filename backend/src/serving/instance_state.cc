// SPDX-License-Identifier: Apache-2.0
#include "serving/instance_state.h"

#include <chrono>
#include <limits>
#include <utility>

#include "serving/fronts.h"
#include "triton/guard.h"
#include "triton/model.h"
#include "triton/statistics.h"

namespace ct2triton {
namespace {

Front MakeFront(ModelState& state, const LoadedModel& model) {
  if (state.tokenizer()) {
    return TextFront(state.config(), model, state.judging(), *state.tokenizer());
  }
  return IdsFront(state.config(), model, state.judging(), state.languages());
}

// Null if it has no state.
InstanceState* StateOf(TRITONBACKEND_ModelInstance* instance) {
  void* state = nullptr;
  ThrowIfError(TRITONBACKEND_ModelInstanceState(instance, &state),
               "reading the state of an instance");
  return static_cast<InstanceState*>(state);
}

constexpr std::chrono::milliseconds kLongestWait(100);

}  // namespace

void InstanceState::Attach(TRITONBACKEND_ModelInstance* instance) {
  auto state = std::make_unique<InstanceState>(instance);
  ThrowIfError(TRITONBACKEND_ModelInstanceSetState(instance, state.get()),
               "keeping the state of an instance");
  state.release();
}

void InstanceState::Detach(TRITONBACKEND_ModelInstance* instance) { delete StateOf(instance); }

InstanceState& InstanceState::Of(TRITONBACKEND_ModelInstance* instance) {
  return *StateOf(instance);
}

InstanceState::InstanceState(TRITONBACKEND_ModelInstance* instance)
    : model_(ModelState::Of(InstanceModel(instance))),
      translator_(model_.TranslatorOn(InstanceDevice(instance))),
      context_{instance, this, model_, translator_.get(), MakeFront(model_, translator_->model())} {
  model_.instances()->Add(this);
}

InstanceState::~InstanceState() {
  model_.instances()->Remove(this);
  const Counter& in_flight = context_.in_flight;
  while (!in_flight->WaitBelow(1, in_flight->wakes(), kLongestWait)) {
  }
}

size_t InstanceState::Load() const {
  if (translator_->loss()) return std::numeric_limits<size_t>::max();
  const size_t requests = context_.entering->value();  // first, since they become rows
  return requests + translator_->unanswered();
}

// Waits without the lock of all instances, or one could not be added or removed meanwhile.
void InstanceState::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  InstanceState* chosen = this;
  Counter entering;
  model_.instances()->UseLeastLoaded(this, [&](InstanceState* least) {
    chosen = least;
    entering = least->context_.entering;
    least->Accept(requests, count);
  });
  const auto must_wait = [](InstanceState* there) { return there->MustWait(); };
  while (model_.instances()->UseIfThere(chosen, must_wait)) {
    entering->WaitBelow(translator_->most_waiting(), entering->wakes(), kLongestWait);
  }
}

void InstanceState::Accept(TRITONBACKEND_Request** requests, uint32_t count) {
  const Batch batch = TakeOver(requests, count);
  for (const auto& request : batch) request->Read();
  // After reading all, so that the first rows do not run alone.
  for (const auto& request : batch) request->Submit();
}

// Whether its queue is full and no tenant's request was refused for it.
bool InstanceState::MustWait() {
  const size_t most = translator_->most_waiting();
  while (context_.entering->value() >= most) {
    if (!context_.tenants.RefuseOne()) return true;
  }
  return false;
}

void InstanceState::RequireReady() const {
  if (const auto loss = translator_->loss()) throw *loss;
}

InstanceState::Batch InstanceState::TakeOver(TRITONBACKEND_Request** requests, uint32_t count) {
  Batch batch;
  batch.reserve(count);
  for (uint32_t i = 0; i < count; ++i) batch.push_back(std::make_shared<PendingRequest>(&context_));
  // Takes ownership of the requests. Triton answers failures before this line; we answer later
  // ones.
  for (uint32_t i = 0; i < count; ++i) batch[i]->Own(requests[i]);
  return batch;
}

void InstanceState::RowLeft(const RowReport& report) noexcept {
  model_.metrics()->Count(report);
  if (report.queued_ns != 0) {
    model_.waits()->Count(translator_->waiting(), report.queued_ns);
  }
}

void InstanceState::RunDone(const RunReport& report) noexcept {
  ReportRun(context_.instance, report);
  model_.metrics()->Count(report);
}

}  // namespace ct2triton
