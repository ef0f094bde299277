// SPDX-License-Identifier: Apache-2.0
//
// The translation core for Python: tests drive it without a server, benchmarks measure it alone.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>

#include "bindings.h"
#include "config/parameters.h"
#include "engine/device.h"
#include "engine/library_check.h"
#include "queue/call_plan.h"
#include "queue/translator.h"
#include "rows/row_tensors.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

// Waits for the rows of one `translate`.
class Collector : public RowListener {
 public:
  Collector(size_t rows, CallObserver* observer, std::optional<size_t> cancel_after)
      : results_(rows), open_(rows), observer_(observer), cancel_after_(cancel_after) {}

  CallObserver* observer() const noexcept override { return observer_; }
  bool Cancelled() const noexcept override { return cancel_after_ && asked_++ >= *cancel_after_; }
  void RowDone(size_t row, RowResult result, const CallTimes&) noexcept override {
    Close([&] { results_[row] = std::move(result); });
  }
  void RowFailed(size_t, const Error& error, const CallTimes&) noexcept override {
    Close([&] { failure_ = error; });
  }

  std::vector<RowResult> Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return open_ == 0; });
    if (failure_) throw *failure_;
    return std::move(results_);
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
  std::optional<Error> failure_;
  size_t open_;
  CallObserver* const observer_;
  const std::optional<size_t> cancel_after_;
  mutable std::atomic<size_t> asked_ = 0;
};

// A Translator with a blocking front, and a record of the calls it made.
class PyTranslator : public CallObserver {
 public:
  PyTranslator(const std::string& directory, const py::dict& parameters, bool gpu, int index) {
    DecodingOptions decoding;
    EngineOptions engine;
    for (const auto& [name, value] : parameters) {
      SetModelParameter(name.cast<std::string>(), ToParameterValue(value), &decoding, &engine);
    }
    engine_ = engine;
    const Device device{gpu ? Device::Kind::kGpu : Device::Kind::kCpu, index};
    const py::gil_scoped_release release;
    translator_ = std::make_unique<Translator>(directory, device, decoding, engine);
  }
  ~PyTranslator() override {
    const py::gil_scoped_release release;
    translator_.reset();
  }

  std::vector<RowResult> Translate(const std::vector<Ids>& source,
                                   const std::optional<std::vector<Ids>>& prefix,
                                   const py::dict& parameters, std::optional<size_t> cancel_after) {
    DecodingOptions options = translator_->defaults();
    for (const auto& [name, value] : parameters) {
      SetRequestParameter(name.cast<std::string>(), ToParameterValue(value), engine_, &options);
    }
    std::vector<RowInput> rows(source.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].source = source[i];
      if (prefix) rows[i].prefix = prefix->at(i);
    }
    const py::gil_scoped_release release;
    auto checked = translator_->Check(std::move(rows), &options);
    const auto listener = std::make_shared<Collector>(checked.size(), this, cancel_after);
    std::vector<Translator::Request> requests(1);
    requests[0] = {std::move(checked), listener};
    translator_->Submit(std::move(requests));
    return listener->Wait();
  }

  std::vector<size_t> calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }
  std::string description() const { return translator_->Description(); }
  int64_t pad_id() const { return translator_->pad_id(); }

 private:
  void CallDone(size_t rows, const CallTimes&) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back(rows);
  }

  EngineOptions engine_;
  mutable std::mutex mutex_;
  std::vector<size_t> calls_;
  std::unique_ptr<Translator> translator_;
};

py::dict Describe(const Hypothesis& hypothesis) {
  py::dict row;
  row["ids"] = hypothesis.ids;
  row["score"] = hypothesis.score;
  row["finish_reason"] = FinishReasonName(hypothesis.finish);
  return row;
}

py::list TranslateRows(PyTranslator& translator, const std::vector<Ids>& source,
                       const std::optional<std::vector<Ids>>& prefix, const py::dict& parameters,
                       std::optional<size_t> cancel_after) {
  py::list answers;
  for (const auto& row : translator.Translate(source, prefix, parameters, cancel_after)) {
    py::list hypotheses;
    for (const auto& hypothesis : row.hypotheses) hypotheses.append(Describe(hypothesis));
    answers.append(hypotheses);
  }
  return answers;
}

using PyTensor = std::pair<std::vector<int64_t>, std::vector<int64_t>>;  // shape, values

std::optional<IdTensor> ToTensor(const std::optional<PyTensor>& tensor) {
  if (!tensor) return std::nullopt;
  return IdTensor{tensor->first, tensor->second};
}

std::vector<std::pair<Ids, Ids>> PySplitRows(const PyTensor& input,
                                             const std::optional<PyTensor>& prefix,
                                             const std::optional<PyTensor>& input_lengths,
                                             const std::optional<PyTensor>& prefix_lengths,
                                             std::optional<int64_t> pad_id) {
  const RequestTensors tensors{*ToTensor(input), ToTensor(prefix), ToTensor(input_lengths),
                               ToTensor(prefix_lengths)};
  std::vector<std::pair<Ids, Ids>> rows;
  for (auto& row : SplitRows(tensors, pad_id)) rows.emplace_back(row.source, row.prefix);
  return rows;
}

template <typename T>
py::tuple ToPython(const Matrix<T>& matrix) {
  return py::make_tuple(matrix.shape, matrix.values);
}

// rows: per row its hypotheses' ids.
py::dict PyAnswerTensors(const std::vector<std::vector<Ids>>& rows, bool batched, int64_t pad_id) {
  std::vector<RowResult> results;
  for (const auto& row : rows) {
    auto& result = results.emplace_back();
    for (const auto& ids : row) result.hypotheses.push_back({ids, 0, FinishReason::kStop});
  }
  const AnswerTensors answer(results, batched, pad_id);
  py::dict tensors;
  tensors["OUTPUT_IDS"] = ToPython(answer.OutputIds());
  tensors["OUTPUT_LENGTHS"] = ToPython(answer.OutputLengths());
  tensors["HYPOTHESES"] = ToPython(answer.Hypotheses());
  tensors["HYPOTHESIS_LENGTHS"] = ToPython(answer.HypothesisLengths());
  tensors["SCORES"] = ToPython(answer.Scores());
  tensors["FINISH_REASON"] = ToPython(answer.FinishReasons());
  return tensors;
}

std::vector<size_t> PyPickRows(const std::vector<int64_t>& source_tokens,
                               const std::vector<bool>& may_join, size_t max_rows,
                               int64_t max_tokens, int64_t beams,
                               const std::vector<int64_t>& search_tokens,
                               int64_t max_search_tokens) {
  std::vector<Candidate> waiting;
  for (size_t i = 0; i < source_tokens.size(); ++i) {
    waiting.push_back(
        {source_tokens[i], beams, may_join.at(i), search_tokens.empty() ? 0 : search_tokens.at(i)});
  }
  return PickRows(waiting, {max_rows, max_tokens, max_search_tokens});
}

}  // namespace

void BindTranslation(py::module_& module) {
  module.def("check_library", &CheckLibrary,
             "Hold the loaded CTranslate2 library against our declarations of it.");
  module.def("library_version", &LibraryVersion, "Version of the loaded CTranslate2 library.");
  module.def("usable_cores", &UsableCores, "Cores this process may use.");
  module.def("gpu_count", &GpuCount, "GPUs that CTranslate2 finds.");
  module.def("split_rows", &PySplitRows, py::arg("input_ids"),
             py::arg("target_prefix") = py::none(), py::arg("input_lengths") = py::none(),
             py::arg("prefix_lengths") = py::none(), py::arg("pad_id") = py::none(),
             "Cut a request's tensors, (shape, values) each, into rows: [(source, prefix)].");
  module.def("answer_tensors", &PyAnswerTensors, py::arg("rows"), py::arg("batched"),
             py::arg("pad_id"), "The output tensors, (shape, values) each, of rows of hypotheses.");
  module.def("pick_rows", &PyPickRows, py::arg("source_tokens"), py::arg("may_join"),
             py::arg("max_rows"), py::arg("max_tokens"), py::arg("beams") = 1,
             py::arg("search_tokens") = std::vector<int64_t>(),
             py::arg("max_search_tokens") = std::numeric_limits<int64_t>::max(),
             "Positions of the waiting rows that go into the next call.");
  module.def("fair_share", &FairShare, py::arg("waiting"), py::arg("running"), py::arg("workers"),
             "Rows that one worker should take at most.");
  py::class_<PyTranslator>(module, "Translator", "A CTranslate2 model as the backend runs it.")
      .def(py::init<const std::string&, const py::dict&, bool, int>(), py::arg("model_directory"),
           py::arg("parameters") = py::dict(), py::arg("gpu") = false, py::arg("device_index") = 0)
      .def("translate", &TranslateRows, py::arg("source"), py::arg("prefix") = py::none(),
           py::arg("parameters") = py::dict(), py::arg("cancel_after") = py::none(),
           "Translate rows of ids; per row its hypotheses, best first. Threads may call at once. "
           "`cancel_after`: the client has gone once the workers have asked so often.")
      .def_property_readonly("calls", &PyTranslator::calls,
                             "Rows of each CTranslate2 call so far, as its waiters count them.")
      .def_property_readonly("description", &PyTranslator::description)
      .def_property_readonly("pad_id", &PyTranslator::pad_id);
}

}  // namespace ct2triton
