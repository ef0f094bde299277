// SPDX-License-Identifier: Apache-2.0
//
// Python bindings for tests: decode loops with injected failures, run by the machine's scheduler.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <condition_variable>
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
  std::atomic<size_t> loops_refused{0};
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
  void Count(std::atomic<size_t>* uses, const std::set<size_t>& failing) {
    if (failing.count(++*uses) == 0) return;
    if (uses == &made) ++loops_refused;
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

// Results of the rows of each request. A request is sent when the previous one is answered.
py::list RunFailingLoops(const std::string& directory,
                         const std::vector<std::vector<Ids>>& requests, const py::dict& parameters,
                         const std::vector<Ids>& prefixes, size_t steps_in_admission,
                         std::set<size_t> failing_loops, std::set<size_t> failing_admissions,
                         std::set<size_t> failing_steps, std::set<size_t> failing_encodes,
                         bool of_one_row, std::string cause, const Times& times,
                         size_t steps_beside, size_t encode_tokens, int64_t loops, size_t meeting,
                         size_t threads, size_t max_sequences) {
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
    of_loops.max_sequences = max_sequences;
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
    one["loops_refused"] = failures->loops_refused.load();
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

}  // namespace

StepTimes ToTimes(const Times& given) {
  StepTimes times;
  for (const auto& [loops, first_row, further_row] : given) {
    times.push_back({loops, first_row, further_row});
  }
  return times;
}

void BindLoopWork(py::module_& module) {
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
      py::arg("max_sequences") = LoopSettings().max_sequences,
      "Run the rows of each request in decode loops of which some cannot be made, and some "
      "admissions and steps fail, counted from 1. `of_one_row`: admissions of one row are counted, "
      "too. `cause`: see Failures. `prefixes`: of the first rows of each request. `loops`: at "
      "most. `meeting`: loops that are there before one of them steps. `threads`: of a loop. "
      "`max_sequences`: of a step.");
}

}  // namespace ct2triton
