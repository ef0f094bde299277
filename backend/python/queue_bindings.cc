// SPDX-License-Identifier: Apache-2.0
//
// Python bindings for tests: which rows loops take, how many loops there are, and how models share
// the cores.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "config/parameters.h"
#include "engine/loaded_model.h"
#include "engine/loop/step_budget.h"
#include "engine/loop/step_times.h"
#include "queue/admission.h"
#include "queue/admission_room.h"
#include "queue/core_shares.h"
#include "queue/encode_work.h"
#include "queue/loop_count.h"
#include "queue/row_queue.h"
#include "queue/scheduler.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

std::vector<size_t> PyLoopsFor(const std::vector<size_t>& rows, const Times& times, size_t most,
                               size_t max_rows, size_t cores, size_t threads) {
  const LoopCount count(ToTimes(times), most, max_rows, {cores, threads});
  std::vector<size_t> loops;
  for (const size_t one : rows) loops.push_back(count.For(one));
  return loops;
}

size_t PySequencesToAdmit(size_t waiting, size_t rows, size_t sequences, size_t all_sequences,
                          size_t lanes, double steps_waited, size_t steps_held) {
  LoopState state;
  state.rows = rows;
  state.sequences = sequences;
  state.all_sequences = all_sequences;
  state.waiting_sequences = waiting;
  state.lanes = lanes;
  state.steps_waited = steps_waited;
  state.steps_held = steps_held;
  return SequencesToAdmit(state, LoopSettings());
}

size_t PyRowsPastWide(size_t narrow, size_t max_sequences) {
  LoopState state;
  state.narrow_sequences = narrow;
  LoopSettings settings;
  settings.max_sequences = max_sequences;
  return RowsPastWide(state, settings);
}

// `waiting`: beams, tokens and bytes of each row, in queue order.
std::vector<size_t> PyTakeRows(const std::vector<std::tuple<size_t, size_t, size_t>>& waiting,
                               size_t rows, size_t tokens, size_t narrow_rows, size_t most_bytes,
                               size_t bytes_in_use, size_t wide_bytes, size_t anyway,
                               std::optional<size_t> long_rows) {
  AdmissionRoom room(
      {rows, tokens, {most_bytes, bytes_in_use, wide_bytes}, anyway, narrow_rows, long_rows});
  std::vector<size_t> taken;
  for (size_t i = 0; i < waiting.size(); ++i) {
    const auto& [beams, row_tokens, bytes] = waiting[i];
    if (room.Skips(row_tokens)) continue;
    const Offer offer = room.Take({beams, row_tokens, bytes});
    if (offer == Offer::kTaken) taken.push_back(i);
    if (offer == Offer::kEnded) break;
  }
  return taken;
}

class IgnoringRowListener : public RowListener {
 public:
  explicit IgnoringRowListener(std::string tenant = "") : tenant_(std::move(tenant)) {}
  std::string_view tenant() const noexcept override { return tenant_; }
  RunObserver* observer() const noexcept override { return nullptr; }
  bool Cancelled() const noexcept override { return false; }
  void RowDone(size_t, RowResult, const RunTimes&) noexcept override {}
  void RowFailed(size_t, const Error&, const RunTimes&) noexcept override {}

 private:
  const std::string tenant_;
};

using SourceRows = std::pair<Ids, std::vector<int64_t>>;

std::vector<std::vector<size_t>> PyTakeEncoded(
    const std::string& directory, const std::vector<SourceRows>& sources,
    const std::vector<std::pair<size_t, size_t>>& takes) {
  EngineOptions engine;
  engine.decoding = "loop";
  engine.max_search_tokens = 32768;
  const LoadedModel model(directory, Device{}, {}, engine, 1);
  EncodeWork work(
      model.loop(), std::make_shared<Scheduler>(1), [] {}, &model, 0);
  const auto listener = std::make_shared<IgnoringRowListener>();
  size_t number = 0;
  for (const auto& [ids, beams] : sources) {
    std::vector<Job> jobs(beams.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].row = model.Check({{ids, IdView()}}, nullptr).front();
      jobs[i].row.copies = beams[i];
      Waiter& waiter = jobs[i].waiters.emplace_back();
      waiter.listener = listener;
      waiter.position = number++;
    }
    work.Encode(*work.Begin(&jobs));
  }
  std::vector<std::vector<size_t>> handed;
  for (const auto& [sequences, narrow_rows] : takes) {
    std::vector<size_t>& numbers = handed.emplace_back();
    for (const Job& job : work.Take(sequences, narrow_rows).jobs) {
      numbers.push_back(job.waiters.front().position);
    }
  }
  return handed;
}

// `events`: a tenant, the number of rows in its request and their tokens, and the number of rows
// then taken one at a time; each runs at once for as many steps as `steps` says of its tenant.
// Returns the tenants of the rows taken, in order.
std::vector<std::string> PyTenantOrder(
    const std::vector<std::tuple<std::string, size_t, size_t, size_t>>& events,
    const std::map<std::string, int64_t>& steps) {
  RowQueue queue([] {});
  const QueueShare share(events.size());
  std::vector<std::string> order;
  int64_t id = 0;
  for (const auto& [tenant, count, tokens, takes] : events) {
    std::vector<CheckedRow> rows(count);
    std::vector<size_t> positions(count);
    for (CheckedRow& row : rows) row.source = Ids(tokens, ++id);
    queue.Add(std::move(rows), positions, std::make_shared<IgnoringRowListener>(tenant), share);
    for (size_t i = 0; i < takes; ++i) {
      const AdmissionBounds bounds{/*sequences=*/1, LoopSettings().encode_tokens, {}, 0, 0};
      for (const Job& job :
           queue.TakeRows(bounds, [](const CheckedRow&) { return SourceState::kNew; })) {
        order.emplace_back(job.waiters.front().listener->tenant());
        const auto ran = steps.find(order.back());
        if (ran != steps.end()) ChargeSteps(job, ran->second);
      }
    }
  }
  return order;
}

// `requests`: the rows of each that waits. How many of them the last of `rows` new ones follows,
// once `taken` have been taken.
size_t PyRowsAhead(const std::vector<size_t>& requests, size_t taken, size_t rows) {
  RowQueue queue([] {});
  const QueueShare share(requests.size());
  size_t all = 0;
  for (const size_t count : requests) {
    std::vector<CheckedRow> added(count);
    std::vector<size_t> positions(count);
    for (CheckedRow& row : added) row.source = {static_cast<int64_t>(++all)};
    queue.Add(std::move(added), positions, std::make_shared<IgnoringRowListener>(), share);
  }
  const AdmissionBounds bounds{taken, LoopSettings().encode_tokens, {}, 0, 0};
  if (taken > 0) queue.TakeRows(bounds, [](const CheckedRow&) { return SourceState::kNew; });
  return queue.Ahead("", rows, all);
}

// How many of `steps` steps each row takes part in. `costs`: of each, and whether it is wide.
std::vector<size_t> PyStepsTaken(const std::vector<std::pair<double, bool>>& costs, size_t steps) {
  StepBudget budget;
  std::vector<double> turns(costs.size());
  std::vector<StepCost> rows;
  for (size_t i = 0; i < costs.size(); ++i) {
    rows.push_back({costs[i].first, costs[i].second, &turns[i]});
  }
  std::vector<size_t> taken(costs.size());
  for (size_t step = 0; step < steps; ++step) {
    const std::vector<bool> chosen = budget.Choose(rows);
    for (size_t i = 0; i < costs.size(); ++i) taken[i] += chosen[i] ? 1 : 0;
  }
  return taken;
}

// Rows with these beams, of `tenants` tenants in rotation, wait for a full loop. Returns the
// indexes of the rows that it takes, and the number of rows examined.
std::pair<std::vector<int64_t>, size_t> PyTakePastWide(const std::vector<int64_t>& beams,
                                                       size_t narrow_rows, size_t tenants) {
  RowQueue queue([] {});
  const QueueShare share(beams.size() + 1);
  for (size_t i = 0; i < beams.size(); ++i) {
    std::vector<CheckedRow> rows(1);
    rows[0].source = {static_cast<int64_t>(i)};
    rows[0].copies = beams[i];
    queue.Add(std::move(rows), {i},
              std::make_shared<IgnoringRowListener>(std::to_string(i % tenants)), share);
  }
  AdmissionBounds bounds{/*sequences=*/0, LoopSettings().encode_tokens, {}, 0, narrow_rows};
  size_t looked_at = 0;
  std::vector<int64_t> taken;
  const auto ask = [&looked_at](const CheckedRow&) {
    ++looked_at;
    return SourceState::kNew;
  };
  for (const Job& job : queue.TakeRows(bounds, ask)) taken.push_back(job.row.source.front());
  return {taken, looked_at};
}

// A number of tasks of equal length. Each lane runs one task at a time.
class TimedWork : public Workload {
 public:
  TimedWork(size_t cores, uint64_t task_ns, size_t tasks, size_t lanes)
      : task_ns_(task_ns), cores_(cores), left_(tasks), lanes_(lanes) {}

  int Next(size_t lanes, bool spare) const noexcept override {
    return left_ == 0 || busy_ == lanes_ || (busy_ >= lanes && !spare) ? -1 : 0;
  }
  void Claim(int, size_t) noexcept override {
    --left_;
    ++busy_;
  }
  void Run(int) noexcept override {}
  void Release(int) noexcept override { --busy_; }
  void Add(size_t tasks) { left_ += tasks; }
  bool Active() const noexcept override { return left_ + busy_ > 0; }
  size_t cores_per_task() const noexcept override { return cores_; }
  uint64_t task_ns() const { return task_ns_; }

 private:
  const uint64_t task_ns_;
  const size_t cores_;
  size_t left_;
  const size_t lanes_;
  size_t busy_ = 0;
};

// `works`: index of the model, cores per task, time per task, number of tasks, lanes. `later`, in
// order: a time, the index of a work, and the number of tasks added to it then. Returns the start
// time and the work of each task. All times are simulated.
std::vector<std::pair<uint64_t, size_t>> PyShareCores(
    size_t cores, const std::vector<std::tuple<size_t, size_t, uint64_t, size_t, size_t>>& works,
    const std::vector<std::tuple<uint64_t, size_t, size_t>>& later) {
  CoreShares shares(cores);
  std::map<const Workload*, size_t> numbers;
  std::list<TimedWork> timed;
  for (const auto& [model, task_cores, task_ns, tasks, lanes] : works) {
    TimedWork& work = timed.emplace_back(task_cores, task_ns, tasks, lanes);
    numbers.emplace(&work, numbers.size());
    shares.Add(&work, &works[model]);
    shares.Update(&work);
  }
  std::vector<std::pair<uint64_t, size_t>> started;
  std::multimap<uint64_t, CoreShares::Task> running;  // by end time
  uint64_t now_ns = 0;
  auto coming = later.begin();
  do {
    while (const CoreShares::Task task = shares.Next()) {
      shares.Claim(task);
      started.emplace_back(now_ns, numbers.at(task.work()));
      running.emplace(now_ns + static_cast<TimedWork*>(task.work())->task_ns(), task);
    }
    const auto next = running.begin();
    if (coming != later.end() && (next == running.end() || std::get<0>(*coming) < next->first)) {
      const auto& [time_ns, number, tasks] = *coming++;
      now_ns = time_ns;
      TimedWork& work = *std::next(timed.begin(), static_cast<std::ptrdiff_t>(number));
      work.Add(tasks);
      shares.Update(&work);
      continue;
    }
    if (next == running.end()) break;
    now_ns = next->first;
    shares.Release(next->second, static_cast<TimedWork*>(next->second.work())->task_ns());
    running.erase(next);
  } while (true);
  return started;
}

}  // namespace

void BindQueue(py::module_& module) {
  module.def("sequences_to_admit", &PySequencesToAdmit, py::arg("waiting"), py::arg("rows"),
             py::arg("sequences"), py::arg("all_sequences"), py::arg("lanes") = 1,
             py::arg("steps_waited") = 0, py::arg("steps_held") = 0,
             "Tell how many waiting sequences join a loop before its next step.");
  module.def("loops_for", &PyLoopsFor, py::arg("rows"), py::arg("step_times"), py::arg("most"),
             py::arg("max_rows") = 64, py::arg("cores") = 1, py::arg("threads") = 1,
             "Tell how many loops each number of rows is worth. `step_times`: loops, and what a "
             "first row and a further one take in each. `cores`: of loops and helpers. `threads`: "
             "of a step.");
  module.def("rows_past_wide", &PyRowsPastWide, py::arg("narrow"), py::arg("max_sequences") = 64,
             "Tell how many rows of one sequence may join where rows of several leave no room.");
  module.def("take_rows", &PyTakeRows, py::arg("waiting"), py::arg("rows") = 64,
             py::arg("tokens") = 150, py::arg("narrow_rows") = 16, py::arg("most_bytes") = 1000,
             py::arg("bytes_in_use") = 0, py::arg("wide_bytes") = 0, py::arg("anyway") = 0,
             py::arg("long_rows") = std::nullopt,
             "Tell which of these rows (beams, tokens, bytes of cache) a loop takes.");
  module.def("take_encoded", &PyTakeEncoded, py::arg("model_directory"), py::arg("sources"),
             py::arg("takes"),
             "Tell which rows each of some loops is handed after the sources were encoded beside "
             "them. `sources`: the IDs of each and the beams of its rows; the rows are numbered "
             "through all sources. `takes`: sequences and narrow rows.");
  module.def("take_past_wide", &PyTakePastWide, py::arg("beams"), py::arg("narrow_rows"),
             py::arg("tenants") = 1,
             "(rows, looked at): what a full loop takes of waiting rows of so many beams, of so "
             "many tenants in turn.");
  module.def("undisturbed_step_ns", &UndisturbedStep_ns, py::arg("times_ns"),
             "What a step takes by itself, of the times of some.");
  module.def("rows_ahead", &PyRowsAhead, py::arg("requests"), py::arg("taken"), py::arg("rows"),
             "Waiting rows that the last row of a new request follows.");
  module.def(
      "steps_taken", &PyStepsTaken, py::arg("costs"), py::arg("steps"),
      "How many steps each row of a loop takes part in, by its cost and whether it is wide.");
  module.def("tenant_order", &PyTenantOrder, py::arg("events"),
             py::arg("steps") = std::map<std::string, int64_t>(),
             "Whose rows a queue hands out, in order. `events`: tenant, rows of a request, tokens "
             "of each, rows that are then taken.");
  module.def("share_cores", &PyShareCores, py::arg("cores"), py::arg("works"),
             py::arg("later") = std::vector<std::tuple<uint64_t, size_t, size_t>>(),
             "(start, number) of each task that the scheduler starts. `works`: model, cores of a "
             "task, its time, how many there are, lanes. `later`: time, work, tasks that come.");
}

}  // namespace ct2triton
