// SPDX-License-Identifier: Apache-2.0
//
// Python bindings of the translation core, for tests and benchmarks without a server.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "bindings.h"
#include "config/parameters.h"
#include "engine/calls/call_library.h"
#include "engine/device.h"
#include "engine/usable_cores.h"
#include "gate.h"
#include "queue/supersede_keys.h"
#include "queue/translator.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

struct Answers {
  std::vector<RowResult> rows;
  std::vector<Ids> grown;
};

// Waits for the rows of one `translate`.
class Collector : public RowListener, public Supersedable {
 public:
  Collector(size_t rows, RunObserver* observer, Translator* translator,
            std::optional<size_t> cancel_after, std::shared_ptr<Gate> gate)
      : results_(rows),
        grown_(rows),
        open_(rows),
        observer_(observer),
        translator_(translator),
        cancel_after_(cancel_after),
        gate_(std::move(gate)) {}

  RunObserver* observer() const noexcept override { return observer_; }
  bool Cancelled() const noexcept override {
    const size_t asked = asked_++;
    const bool cancelled = superseded_ || (cancel_after_ && asked >= *cancel_after_);
    if (gate_) gate_->Pass(asked);
    return cancelled;
  }
  bool Ended() const noexcept override { return superseded_; }
  bool Supersede() noexcept override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (open_ == 0) return false;
      failure_ = SupersededError();
    }
    superseded_ = true;
    translator_->Withdraw(*this, SupersededError());
    return true;
  }
  void RowGrew(size_t row, int64_t id) noexcept override { grown_[row].push_back(id); }
  void RowDone(size_t row, RowResult result, const RunTimes&) noexcept override {
    Close([&] { results_[row] = std::move(result); });
  }
  void RowFailed(size_t, const Error& error, const RunTimes&) noexcept override {
    Close([&] {
      if (!failure_) failure_ = error;
    });
  }

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return open_ == 0; });
  }
  // Call it when all rows are answered. Throws the error of a row that failed.
  Answers Take() {
    if (failure_) throw *failure_;
    return {std::move(results_), std::move(grown_)};
  }

 private:
  template <typename Action>
  void Close(const Action& action) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    action();
    if (--open_ == 0) done_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<RowResult> results_;
  std::vector<Ids> grown_;  // by row; only the thread that runs a row writes its entry
  std::optional<Error> failure_;
  size_t open_;
  std::atomic<bool> superseded_{false};
  RunObserver* const observer_;
  Translator* const translator_;
  const std::optional<size_t> cancel_after_;
  const std::shared_ptr<Gate> gate_;
  mutable std::atomic<size_t> asked_ = 0;
};

// A row that the queue treats as a request of its own, while its collector waits for several.
class OneOf : public RowListener {
 public:
  OneOf(std::shared_ptr<RowListener> all, size_t position)
      : all_(std::move(all)), position_(position) {}

  RunObserver* observer() const noexcept override { return all_->observer(); }
  bool Cancelled() const noexcept override { return all_->Cancelled(); }
  void RowGrew(size_t, int64_t id) noexcept override { all_->RowGrew(position_, id); }
  void RowDone(size_t, RowResult result, const RunTimes& times) noexcept override {
    all_->RowDone(position_, std::move(result), times);
  }
  void RowFailed(size_t, const Error& error, const RunTimes& times) noexcept override {
    all_->RowFailed(position_, error, times);
  }

 private:
  const std::shared_ptr<RowListener> all_;
  const size_t position_;
};

// A Translator with blocking calls, which records the CTranslate2 calls that it makes.
class PyTranslator : public RunObserver {
 public:
  PyTranslator(const std::string& directory, const py::dict& parameters, bool gpu, int index) {
    DecodingOptions decoding;
    EngineOptions engine;
    SetModelParameters(parameters, &decoding, &engine);
    engine_ = engine;
    const Device device{gpu ? Device::Kind::kGpu : Device::Kind::kCpu, index};
    const py::gil_scoped_release release;
    translator_ = std::make_unique<Translator>(directory, device, decoding, engine);
  }
  ~PyTranslator() override {
    const py::gil_scoped_release release;
    translator_.reset();
  }

  // `parameters`: one dict for all rows, or a list with one dict per row.
  Answers Translate(const std::vector<Ids>& source, const std::optional<std::vector<Ids>>& prefix,
                    const py::object& parameters, std::optional<size_t> cancel_after,
                    const std::string& supersede_key, bool one_by_one,
                    const std::shared_ptr<Gate>& gate, const std::vector<Ids>& drafts) {
    std::vector<DecodingOptions> options;
    if (py::isinstance<py::dict>(parameters)) {
      options.push_back(ToOptions(parameters));
    } else {
      for (const auto& of_row : parameters) options.push_back(ToOptions(of_row.cast<py::dict>()));
    }
    std::vector<RowInput> rows(source.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].source = source[i];
      if (prefix) rows[i].prefix = prefix->at(i);
      if (i < drafts.size()) rows[i].draft = drafts[i];
    }
    const py::gil_scoped_release release;
    auto checked = Check(rows, options);
    const auto listener =
        std::make_shared<Collector>(checked.size(), this, translator_.get(), cancel_after, gate);
    if (!supersede_key.empty()) keys_.Enter(supersede_key, listener);
    if (one_by_one) {
      for (size_t i = 0; i < checked.size(); ++i) {
        translator_->Submit({std::move(checked[i])}, std::make_shared<OneOf>(listener, i));
      }
    } else {
      translator_->Submit(std::move(checked), listener);
    }
    if (listener->Ended()) translator_->Withdraw(*listener, SupersededError());
    listener->Wait();
    if (!supersede_key.empty()) keys_.Leave(supersede_key, *listener);
    return listener->Take();
  }

  size_t waiting() const { return translator_->waiting(); }
  std::vector<LoopCounters> loops() const { return translator_->loop_counters(); }
  const SupersedeKeys& keys() const { return keys_; }
  std::vector<RunReport> reports() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reports_;
  }
  // Time of each greedy row from its arrival in the queue to its first free token, in the order in
  // which the rows ended.
  std::vector<uint64_t> first_tokens_ns() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_tokens_ns_;
  }
  std::string description() const { return translator_->Description(); }
  std::vector<std::tuple<size_t, double, double>> step_times() const {
    std::vector<std::tuple<size_t, double, double>> times;
    if (const auto& loop = translator_->model().loop()) {
      for (const StepTime& time : loop->step_times()) {
        times.emplace_back(time.loops, time.first_row_ns, time.further_row_ns);
      }
    }
    return times;
  }
  int64_t pad_id() const { return translator_->model().pad_id(); }
  size_t weight_bytes() const { return translator_->model().weight_bytes(); }
  size_t call_bytes() const { return translator_->model().call_bytes(); }
  uint64_t call_loads() const { return translator_->model().call_loads(); }

 private:
  DecodingOptions ToOptions(const py::dict& parameters) const {
    DecodingOptions options = translator_->model().defaults();
    SetRequestParameters(parameters, engine_, &options);
    return options;
  }
  std::vector<CheckedRow> Check(const std::vector<RowInput>& rows,
                                const std::vector<DecodingOptions>& options) const {
    if (options.size() == 1) return translator_->model().Check(rows, &options.front());
    std::vector<CheckedRow> checked;
    for (size_t i = 0; i < rows.size(); ++i) {
      checked.push_back(translator_->model().Check({rows[i]}, &options.at(i)).front());
    }
    return checked;
  }
  void RowLeft(const RowReport& report) noexcept override {
    if (report.first_token_ns == 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    first_tokens_ns_.push_back(report.first_token_ns - report.queued_ns);
  }
  void RunDone(const RunReport& report) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    reports_.push_back(report);
  }

  EngineOptions engine_;
  mutable std::mutex mutex_;
  std::vector<RunReport> reports_;
  std::vector<uint64_t> first_tokens_ns_;
  SupersedeKeys keys_;
  std::unique_ptr<Translator> translator_;
};

py::list TranslateRows(PyTranslator& translator, const std::vector<Ids>& source,
                       const std::optional<std::vector<Ids>>& prefix, const py::object& parameters,
                       std::optional<size_t> cancel_after, const std::string& supersede_key,
                       bool one_by_one, const std::shared_ptr<Gate>& gate,
                       const std::vector<Ids>& drafts) {
  const auto answers = translator.Translate(source, prefix, parameters, cancel_after, supersede_key,
                                            one_by_one, gate, drafts);
  py::list rows;
  for (size_t i = 0; i < answers.rows.size(); ++i) {
    py::list hypotheses;
    for (const auto& hypothesis : answers.rows[i].hypotheses) {
      py::dict described = Describe(hypothesis);
      if (hypotheses.empty()) {
        described["grown"] = answers.grown[i];
        described["draft_tokens_kept"] = answers.rows[i].draft_tokens_kept;
      }
      hypotheses.append(described);
    }
    rows.append(hypotheses);
  }
  return rows;
}

std::vector<size_t> CallRows(const PyTranslator& translator) {
  std::vector<size_t> rows;
  for (const RunReport& report : translator.reports()) rows.push_back(report.rows);
  return rows;
}

py::list DescribeLoops(const PyTranslator& translator) {
  py::list loops;
  for (const LoopCounters& counters : translator.loops()) {
    loops.append(Describe(counters));
  }
  return loops;
}

py::list DescribeReports(const PyTranslator& translator) {
  py::list reports;
  for (const RunReport& report : translator.reports()) {
    py::dict finished;
    for (size_t i = 0; i < kFinishReasons; ++i) {
      finished[FinishReasonName(static_cast<FinishReason>(i))] = report.finished[i];
    }
    py::dict one;
    one["rows"] = report.rows;
    one["mapped_rows"] = report.mapped_rows;
    one["failed_rows"] = report.failed_rows;
    one["source_tokens"] = report.source_tokens;
    one["padding_tokens"] = report.padding_tokens;
    one["generated_tokens"] = report.generated_tokens;
    one["steps"] = report.steps;
    one["finished"] = finished;
    reports.append(one);
  }
  return reports;
}

}  // namespace

void BindTranslation(py::module_& module) {
  module.def(
      "check_library", [] { CallLibrary::Get(); },
      "Hold the loaded CTranslate2 library against our declarations of it.");
  module.def(
      "library_version", [] { return CallLibrary::Get().Version(); },
      "Version of the loaded CTranslate2 library.");
  module.def(
      "usable_cores", [](const std::string& root) { return CoresOfProcess(root).threads; },
      py::arg("root") = "", "Cores this process may use; `root`: of the file system with quotas.");
  module.def(
      "physical_cores", [](const std::string& root) { return CoresOfProcess(root).physical; },
      py::arg("root") = "", "Of these, those that share no core with another one.");
  module.def("gpu_count", &GpuCount, "GPUs that the CUDA driver finds.");
  py::class_<Gate, std::shared_ptr<Gate>>(module, "Gate", "Holds a worker while a row of it runs.")
      .def(py::init<size_t>(), py::arg("held_at") = 0,
           "`held_at`: how often the worker has asked before whether the client has gone. 0: the "
           "row is taken, and nothing has run.")
      .def("wait", &Gate::WaitUntilReached, py::call_guard<py::gil_scoped_release>(),
           "Wait until a worker is held.")
      .def("open", &Gate::Open, "Let it go on.");
  py::class_<PyTranslator>(module, "Translator", "A CTranslate2 model as the backend runs it.")
      .def(py::init<const std::string&, const py::dict&, bool, int>(), py::arg("model_directory"),
           py::arg("parameters") = py::dict(), py::arg("gpu") = false, py::arg("device_index") = 0)
      .def("translate", &TranslateRows, py::arg("source"), py::arg("prefix") = py::none(),
           py::arg("parameters") = py::dict(), py::arg("cancel_after") = py::none(),
           py::arg("supersede_key") = "", py::arg("one_by_one") = false,
           py::arg("gate") = std::shared_ptr<Gate>(), py::arg("drafts") = std::vector<Ids>(),
           "Translate rows of ids; per row its hypotheses, best first. Threads may call at once. "
           "`grown` of the first: the ids that the row reported while it ran. `parameters`: of all "
           "rows, or a list with those of each. "
           "`cancel_after`: the client has gone once the workers have asked so often. "
           "`supersede_key`: a newer call with the same one ends this one. "
           "`one_by_one`: each row is a request to the queue. "
           "`gate`: where a worker that runs these rows is held. "
           "`drafts`: what is expected after the prefixes of the first rows.")
      .def_property_readonly("calls", &CallRows,
                             "Rows of each CTranslate2 call so far, as its waiters count them.")
      .def_property_readonly("waiting", &PyTranslator::waiting, "Rows that wait for a worker.")
      .def_property_readonly("step_times", &PyTranslator::step_times,
                             "Loops side by side, and what a first row and a further one take in "
                             "each, in ns, as measured when the model was loaded.")
      .def_property_readonly("loops", &DescribeLoops, "What each decode loop has done.")
      .def_property_readonly("supersede_keys",
                             [](const PyTranslator& self) { return self.keys().size(); })
      .def_property_readonly("superseded",
                             [](const PyTranslator& self) { return self.keys().superseded(); })
      .def_property_readonly("reports", &DescribeReports, "What each of these calls did.")
      .def_property_readonly("first_tokens_ns", &PyTranslator::first_tokens_ns,
                             "Of each greedy row: from its arrival to its first free token.")
      .def_property_readonly("description", &PyTranslator::description)
      .def_property_readonly("pad_id", &PyTranslator::pad_id)
      .def_property_readonly("weight_bytes", &PyTranslator::weight_bytes,
                             "Of weights and their packed copies, those given back included.")
      .def_property_readonly("call_bytes", &PyTranslator::call_bytes,
                             "Of them, those of CTranslate2's model for calls, while it is there.")
      .def_property_readonly("call_loads", &PyTranslator::call_loads,
                             "How often that model was loaded because a row needed it.");
}

}  // namespace ct2triton
