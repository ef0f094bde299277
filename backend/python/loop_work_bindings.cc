// SPDX-License-Identifier: Apache-2.0
//
// Python bindings for tests: decode loops with injected failures, run by the machine's scheduler.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "config/parameters.h"
#include "engine/loaded_model.h"
#include "engine/loop/loop_engine.h"
#include "engine/loop/step_times.h"
#include "error.h"
#include "queue/admission.h"
#include "queue/admission_room.h"
#include "queue/core_shares.h"
#include "queue/loop_count.h"
#include "queue/model_work.h"
#include "queue/row_queue.h"
#include "steady_clock.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

// Waits for a condition that a passing test always reaches; gives up after 20 s.
template <class Condition>
void WaitUntil(Condition holds) {
  const uint64_t end_ns = SteadyNow_ns() + 20'000'000'000;
  while (!holds() && SteadyNow_ns() < end_ns) std::this_thread::yield();
}

// Which operations of the loops fail, numbered from 1 across all loops.
struct Failures {
  std::set<size_t> loops;  // creations of loops
  std::set<size_t> admissions;
  bool of_one_row = true;  // also count admissions of one row
  std::set<size_t> steps;
  std::set<size_t> failing_encodes;  // beside the loops
  std::atomic<size_t> encodes{0};
  std::string cause;   // "library", "memory" or "memory of a GPU"
  size_t meeting = 0;  // loops that must exist before any of them runs a step
  std::atomic<size_t> made{0};
  std::atomic<size_t> met{0};
  std::atomic<size_t> admitted{0};
  std::atomic<size_t> stepped{0};
  size_t steps_in_admission = 0;  // loop steps that the first admission waits for
  size_t steps_beside = 0;        // loop steps that an encoding beside the loops waits for
  std::atomic<bool> first_admission{false};  // it has begun
  std::atomic<size_t> encoded_beside{0};     // of them, those whose wait saw that many steps

  // Whether so many steps came.
  bool WaitForSteps(size_t steps) const {
    const size_t enough = stepped + steps;
    WaitUntil([&] { return stepped >= enough; });
    return stepped >= enough;
  }
  void Count(std::atomic<size_t>* uses, const std::set<size_t>& failing) const {
    if (failing.count(++*uses) == 0) return;
    if (cause == "memory") throw std::bad_alloc();
    if (cause == "memory of a GPU") throw Error(ErrorCode::kUnavailable, "too few bytes");
    throw std::runtime_error("a failure made by a test");
  }
};

class FailingLoop : public LoopEngine {
 public:
  FailingLoop(std::unique_ptr<LoopEngine> loop, std::shared_ptr<Failures> failures)
      : loop_(std::move(loop)), failures_(std::move(failures)) {}

  std::vector<LoopRow> Admit(const std::vector<const CheckedRow*>& rows) override {
    if (failures_->steps_in_admission > 0 && !failures_->first_admission.exchange(true)) {
      failures_->encoded_beside += failures_->WaitForSteps(failures_->steps_in_admission);
    }
    if (rows.size() > 1 || failures_->of_one_row) {
      failures_->Count(&failures_->admitted, failures_->admissions);
    }
    return loop_->Admit(rows);
  }
  void Step(LoopListener* listener) override {
    if (!std::exchange(came_, true)) ++failures_->met;
    WaitUntil([this] { return failures_->met >= failures_->meeting; });
    failures_->Count(&failures_->stepped, failures_->steps);
    loop_->Step(listener);
  }
  void Remove(LoopRow row) noexcept override { loop_->Remove(row); }
  size_t running() const override { return loop_->running(); }
  const LoopCounters& counters() const override { return loop_->counters(); }

 private:
  const std::unique_ptr<LoopEngine> loop_;
  const std::shared_ptr<Failures> failures_;
  bool came_ = false;
};

class FailingModel : public LoopModel {
 public:
  FailingModel(const std::shared_ptr<const Weights>& weights, std::shared_ptr<Failures> failures,
               StepTimes times)
      : LoopModel(weights, Proving::kNever),
        failures_(std::move(failures)),
        times_(std::move(times)) {}

  std::unique_ptr<LoopEngine> NewLoop() const override {
    failures_->Count(&failures_->made, failures_->loops);
    return std::make_unique<FailingLoop>(LoopModel::NewLoop(), failures_);
  }
  const StepTimes& step_times() const override { return times_; }
  std::shared_ptr<const void> Encode(const CheckedRow& row, LoopCounters* counters) const override {
    failures_->encoded_beside += failures_->WaitForSteps(failures_->steps_beside);
    failures_->Count(&failures_->encodes, failures_->failing_encodes);
    return LoopModel::Encode(row, counters);
  }

 private:
  const std::shared_ptr<Failures> failures_;
  const StepTimes times_;
};

// Collects the results of one request's rows.
class Answers : public RowListener, public RunObserver {
 public:
  explicit Answers(size_t rows) : ids_(rows), grown_(rows), times_answered_(rows), open_(rows) {}

  RunObserver* observer() const noexcept override { return const_cast<Answers*>(this); }
  void RunDone(const RunReport& report) noexcept override { reported_rows_ += report.rows; }
  void RowLeft(const RowReport& report) noexcept override { rows_in_loop_ += report.in_loop; }
  bool Cancelled() const noexcept override { return false; }
  void RowGrew(size_t row, int64_t id) noexcept override { grown_[row].push_back(id); }
  void RowDone(size_t row, RowResult result, const RunTimes&) noexcept override {
    Close(row, result.hypotheses.front().ids);
  }
  void RowFailed(size_t row, const Error&, const RunTimes&) noexcept override { Close(row, {}); }

  py::dict Wait() {
    {
      const py::gil_scoped_release release;
      std::unique_lock<std::mutex> lock(mutex_);
      closed_.wait(lock, [this] { return open_ == 0; });
    }
    py::dict all;
    all["ids"] = ids_;
    all["grown"] = grown_;
    all["times_answered"] = times_answered_;
    all["reported_rows"] = reported_rows_.load();
    all["rows_in_loop"] = rows_in_loop_.load();
    return all;
  }

 private:
  void Close(size_t row, Ids ids) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    ids_[row] = std::move(ids);
    ++times_answered_[row];
    if (--open_ == 0) closed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable closed_;
  std::vector<Ids> ids_;
  std::vector<Ids> grown_;
  std::vector<size_t> times_answered_;
  size_t open_;
  std::atomic<size_t> reported_rows_{0};
  std::atomic<size_t> rows_in_loop_{0};
};

// Number of loops, and the step time of the first and of each further row in one of them.
using Times = std::vector<std::tuple<size_t, double, double>>;

StepTimes ToTimes(const Times& given) {
  StepTimes times;
  for (const auto& [loops, first_row, further_row] : given) {
    times.push_back({loops, first_row, further_row});
  }
  return times;
}

std::vector<size_t> PyLoopsFor(const std::vector<size_t>& rows, const Times& times, size_t most,
                               size_t max_rows, size_t cores, size_t threads) {
  const LoopCount count(ToTimes(times), most, max_rows, {cores, threads});
  std::vector<size_t> loops;
  for (const size_t one : rows) loops.push_back(count.For(one));
  return loops;
}

// Results of the rows of each request. A request is sent when the previous one is answered.
py::list RunFailingLoops(const std::string& directory,
                         const std::vector<std::vector<Ids>>& requests, const py::dict& parameters,
                         const std::vector<Ids>& prefixes, size_t steps_in_admission,
                         std::set<size_t> failing_loops, std::set<size_t> failing_admissions,
                         std::set<size_t> failing_steps, std::set<size_t> failing_encodes,
                         bool of_one_row, std::string cause, const Times& times,
                         size_t steps_beside, size_t encode_tokens, int64_t loops, size_t meeting,
                         size_t threads) {
  EngineOptions engine;
  engine.decoding = "loop";
  engine.max_search_tokens = 32768;
  DecodingOptions options;
  SetRequestParameters(parameters, engine, &options);
  const auto failures = std::make_shared<Failures>();
  failures->loops = std::move(failing_loops);
  failures->admissions = std::move(failing_admissions);
  failures->of_one_row = of_one_row;
  failures->steps = std::move(failing_steps);
  failures->failing_encodes = std::move(failing_encodes);
  failures->cause = std::move(cause);
  failures->steps_beside = steps_beside;
  failures->steps_in_admission = steps_in_admission;
  failures->meeting = meeting;
  std::optional<LoadedModel> model;
  std::optional<ModelWork> work;
  const auto without_gil = [](const auto& action) {
    const py::gil_scoped_release release;
    action();
  };
  without_gil([&] {
    model.emplace(directory, Device{}, options, engine, 1);
    WorkSettings settings;
    settings.inter_threads = loops;
    LoopSettings of_loops;
    of_loops.encode_tokens = encode_tokens;
    of_loops.threads = threads;
    auto failing = std::make_shared<FailingModel>(model->weights(), failures, ToTimes(times));
    work.emplace(model->calls(), std::move(failing), Device{}, settings, of_loops);
  });
  py::list all;
  for (const auto& sources : requests) {
    const auto answers = std::make_shared<Answers>(sources.size());
    const QueueShare share(sources.size());
    without_gil([&] {
      std::vector<RowInput> rows;
      std::vector<size_t> positions;
      for (const Ids& source : sources) {
        const size_t row = rows.size();
        positions.push_back(row);
        rows.push_back({source, row < prefixes.size() ? IdView(prefixes[row]) : IdView()});
      }
      work->Add(model->Check(rows, nullptr), positions, answers, share, SteadyNow_ns());
    });
    py::dict one = answers->Wait();
    one["loop_failure"] = work->loop_failure();
    one["loops"] = work->loop_counters().size();
    one["encoded_beside"] = failures->encoded_beside.load();
    LoopCounters counters;
    for (const LoopCounters& loop : work->loop_counters()) counters += loop;
    one["counters"] = Describe(counters);
    all.append(one);
  }
  without_gil([&] {
    work.reset();
    model.reset();
  });
  return all;
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
                               size_t bytes_in_use, size_t wide_bytes, size_t anyway) {
  AdmissionRoom room({rows, tokens, {most_bytes, bytes_in_use, wide_bytes}, anyway, narrow_rows});
  std::vector<size_t> taken;
  for (size_t i = 0; i < waiting.size(); ++i) {
    const auto& [beams, row_tokens, bytes] = waiting[i];
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

// `events`: a tenant, the number of rows in its request and their tokens, and the number of rows
// then taken one at a time. Returns the tenants of the rows taken, in order.
std::vector<std::string> PyTenantOrder(
    const std::vector<std::tuple<std::string, size_t, size_t, size_t>>& events) {
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
      }
    }
  }
  return order;
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

void BindLoopWork(py::module_& module) {
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
             "Tell which of these rows (beams, tokens, bytes of cache) a loop takes.");
  module.def("take_past_wide", &PyTakePastWide, py::arg("beams"), py::arg("narrow_rows"),
             py::arg("tenants") = 1,
             "(rows, looked at): what a full loop takes of waiting rows of so many beams, of so "
             "many tenants in turn.");
  module.def("undisturbed_step_ns", &UndisturbedStep_ns, py::arg("times_ns"),
             "What a step takes by itself, of the times of some.");
  module.def("tenant_order", &PyTenantOrder, py::arg("events"),
             "Whose rows a queue hands out, in order. `events`: tenant, rows of a request, tokens "
             "of each, rows that are then taken.");
  module.def("share_cores", &PyShareCores, py::arg("cores"), py::arg("works"),
             py::arg("later") = std::vector<std::tuple<uint64_t, size_t, size_t>>(),
             "(start, number) of each task that the scheduler starts. `works`: model, cores of a "
             "task, its time, how many there are, lanes. `later`: time, work, tasks that come.");
  module.def(
      "run_failing_loops", &RunFailingLoops, py::arg("model_directory"), py::arg("requests"),
      py::arg("parameters"), py::arg("prefixes") = std::vector<Ids>(),
      py::arg("steps_in_admission") = 0, py::arg("failing_loops") = std::set<size_t>(),
      py::arg("failing_admissions") = std::set<size_t>(),
      py::arg("failing_steps") = std::set<size_t>(),
      py::arg("failing_encodes") = std::set<size_t>(), py::arg("of_one_row") = true,
      py::arg("cause") = "library", py::arg("step_times") = Times(), py::arg("steps_beside") = 0,
      py::arg("encode_tokens") = LoopSettings().encode_tokens, py::arg("loops") = 2,
      py::arg("meeting") = 0, py::arg("threads") = 1,
      "Run the rows of each request in decode loops of which some cannot be made, and some "
      "admissions and steps fail, counted from 1. `of_one_row`: admissions of one row are counted, "
      "too. `cause`: see Failures. `prefixes`: of the first rows of each request. `loops`: at "
      "most. `meeting`: loops that are there before one of them steps. `threads`: of a loop.");
}

}  // namespace ct2triton
