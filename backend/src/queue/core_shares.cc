// SPDX-License-Identifier: Apache-2.0
#include "queue/core_shares.h"

#include <algorithm>
#include <iterator>

namespace ct2triton {

void CoreShares::Add(Workload* work, const void* name) {
  in_order_.reserve(models_.size() + 1);
  auto model = std::find_if(models_.begin(), models_.end(),
                            [name](const Model& known) { return known.name == name; });
  std::list<Model> fresh;
  if (model == models_.end()) model = fresh.insert(fresh.end(), Model{name, {}});
  std::list<Work> added = {Work{work, &*model}};
  works_.emplace(work, &added.front());  // from here on nothing throws
  model->works.splice(model->works.end(), added);
  models_.splice(models_.end(), fresh);
}

void CoreShares::Remove(Workload* work) noexcept {
  const auto known = works_.find(work);
  Update(known->second);
  Model* const model = known->second->model;
  model->works.remove_if([work](const Work& one) { return one.work == work; });
  works_.erase(known);
  models_.remove_if([](const Model& one) { return one.works.empty(); });
}

void CoreShares::Update(Workload* work) noexcept {
  const auto known = works_.find(work);
  if (known != works_.end()) Update(known->second);
}

void CoreShares::Update(Work* work) noexcept {
  const bool active = work->work->Active();
  if (active == work->active) return;
  if (active) return Activate(work);
  work->active = false;
  if (--work->model->active_works == 0) Leave(work->model);
}

// A workload gains no credit while it is idle, even if all were.
void CoreShares::Activate(Work* work) noexcept {
  Model* const model = work->model;
  work->active = true;
  if (model->active_works++ == 0) {
    const uint64_t floor_ns = in_order_.empty() ? most_used_ns_ : in_order_.front()->used_ns;
    model->used_ns = std::max(model->used_ns, floor_ns);
    Sort(model);
  }
  uint64_t least_ns = UINT64_MAX;
  uint64_t most_ns = 0;
  for (const Work& other : model->works) {
    most_ns = std::max(most_ns, other.used_ns);
    if (other.active && &other != work) least_ns = std::min(least_ns, other.used_ns);
  }
  work->used_ns = std::max(work->used_ns, least_ns == UINT64_MAX ? most_ns : least_ns);
}

void CoreShares::Leave(Model* model) noexcept {
  const auto known = std::find(in_order_.begin(), in_order_.end(), model);
  if (known != in_order_.end()) in_order_.erase(known);
}

void CoreShares::Sort(Model* model) noexcept {
  Leave(model);
  const auto behind =
      std::upper_bound(in_order_.begin(), in_order_.end(), model,
                       [](const Model* a, const Model* b) { return a->used_ns < b->used_ns; });
  in_order_.insert(behind, model);
}

CoreShares::Task CoreShares::Next() const noexcept {
  for (Model* model : in_order_) {
    for (Work& work : model->works) {
      const Task task = TaskOf(&work, /*spare=*/false);
      if (task) return Fits(task) ? task : Task();  // cores that get free are kept for it
    }
  }
  for (Model* model : in_order_) {
    for (Work& work : model->works) {
      const Task task = TaskOf(&work, /*spare=*/true);
      if (task && Fits(task)) return task;
    }
  }
  return {};
}

CoreShares::Task CoreShares::TaskOf(Work* work, bool spare) const noexcept {
  if (!work->active) return {};
  const size_t shares = in_order_.size() * work->model->active_works;
  const size_t lanes = cores_ / std::max<size_t>(1, shares * work->work->cores_per_task());
  const Task task{work, work->work->Next(std::max<size_t>(1, lanes), spare),
                  std::max<size_t>(1, lanes)};
  return task.number < 0 ? Task() : task;
}

bool CoreShares::Fits(const Task& task) const noexcept {
  return cores_in_use_ == 0 || cores_in_use_ + task.cores() <= cores_;
}

void CoreShares::Claim(const Task& task) noexcept {
  cores_in_use_ += task.cores();
  task.work()->Claim(task.number, task.lanes);
}

void CoreShares::Release(const Task& task, uint64_t run_ns) noexcept {
  Work* const work = task.of;
  Model* const model = work->model;
  cores_in_use_ -= task.cores();
  work->busy_ns += run_ns;
  work->used_ns += run_ns * task.cores();
  model->used_ns += run_ns * task.cores();
  most_used_ns_ = std::max(most_used_ns_, model->used_ns);
  model->works.sort([](const Work& a, const Work& b) { return a.used_ns < b.used_ns; });
  work->work->Release(task.number);
  if (model->active_works > 0) Sort(model);
  Update(work);
}

uint64_t CoreShares::BusyTime_ns(const Workload* work) const {
  const auto known = works_.find(work);
  return known == works_.end() ? 0 : known->second->busy_ns;
}

}  // namespace ct2triton
