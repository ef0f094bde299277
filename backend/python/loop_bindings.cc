// SPDX-License-Identifier: Apache-2.0
//
// Python bindings of the decode loop, for tests: the caller decides when rows join and leave.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "bindings.h"
#include "config/parameters.h"
#include "engine/calls/thread_scope.h"
#include "engine/compute/cpu/host_model.h"
#include "engine/compute/cpu/row_kernel.h"
#include "engine/compute/gpu/gpu_model.h"
#include "engine/compute/gpu/gpu_place.h"
#include "engine/loaded_model.h"
#include "engine/loop/decode_loop.h"
#include "engine/loop/loop_engine.h"
#include "engine/loop/loop_support.h"
#include "engine/loop/proof.h"
#include "engine/loop/trial.h"
#include "engine/model/shared_weights.h"
#include "error.h"
#include "timed_layers.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

using Floats = std::vector<float>;

// The best hypothesis, with all hypotheses under "hypotheses".
py::dict Describe(const RowResult& result) {
  py::dict row = Describe(result.hypotheses.front());
  py::list all;
  for (const Hypothesis& hypothesis : result.hypotheses) all.append(Describe(hypothesis));
  row["hypotheses"] = all;
  row["steps"] = result.steps;
  row["draft_tokens_kept"] = result.draft_tokens_kept;
  return row;
}

// Records what one decode step reports.
class Events : public LoopListener {
 public:
  void RowGrew(LoopRow row, int64_t id) noexcept override { grew.emplace_back(row, id); }
  void RowEnded(LoopRow row, RowResult result) noexcept override {
    ended.emplace_back(row, std::move(result));
  }

  std::vector<std::pair<LoopRow, int64_t>> grew;
  std::vector<std::pair<LoopRow, RowResult>> ended;
};

// An injected fault: a product's results are multiplied by a factor, or it fails.
struct Damage {
  std::string scope;  // of the product
  float factor = 1;
  std::shared_ptr<int64_t> uses_left;  // uses before it fails; negative: it never fails

  void Use() const {
    if (*uses_left == 0) throw Error(ErrorCode::kInternal, "a product failed");
    if (*uses_left > 0) --*uses_left;
  }
};

class DamagedLinear final : public Linear {
 public:
  DamagedLinear(std::unique_ptr<Linear> linear, Damage damage)
      : linear_(std::move(linear)), damage_(std::move(damage)) {}
  size_t inputs() const override { return linear_->inputs(); }
  size_t outputs() const override { return linear_->outputs(); }
  size_t bytes() const override { return linear_->bytes(); }
  void Apply(const float* in, size_t rows, float* out, const float* residual) const override {
    damage_.Use();
    linear_->Apply(in, rows, out, residual);
    for (size_t i = 0; i < rows * outputs(); ++i) out[i] *= damage_.factor;
  }
  void Choose(const float* in, const std::vector<products::ChoiceRules>& rules,
              products::ChosenLogit* choices) const override {
    damage_.Use();
    Floats wrong(in, in + rules.size() * inputs());
    for (float& number : wrong) number *= damage_.factor;
    linear_->Choose(wrong.data(), rules, choices);
  }
  std::unique_ptr<Linear> Select(const std::vector<int64_t>& outputs) const override {
    return linear_->Select(outputs);
  }

 private:
  const std::unique_ptr<Linear> linear_;
  const Damage damage_;
};

// A model and its options. Its loops share its layers.
class PyModel {
 public:
  PyModel(const std::string& directory, const py::dict& parameters, const std::string& damaged,
          float factor, bool timed, bool gpu, std::optional<size_t> list_bytes) {
    DecodingOptions defaults;
    engine_.max_search_tokens = kAnyTokens;
    SetModelParameters(parameters, &defaults, &engine_);
    const py::gil_scoped_release release;
    const Device device{gpu ? Device::Kind::kGpu : Device::Kind::kCpu, 0};
    const ThreadScope one_thread(device, 1);  // limits this Python thread's work on loops
    loaded_ = std::make_unique<LoadedModel>(directory, device, defaults, engine_, /*threads=*/1);
    const Damage damage{damaged, factor, uses_left_};
    const auto& weights = loaded_->weights();
    if (const auto place = gpu::PlaceOf(device)) {
      decoder_ = std::make_shared<const gpu::GpuModel>(weights, *place);
    } else {
      LayerPacker packer(weights->file(), weights->loop_type(), /*threads=*/1);
      const auto wrap = [&](std::unique_ptr<Linear> linear, const LinearSpec& spec) {
        if (spec.scope == damage.scope) {
          linear = std::make_unique<DamagedLinear>(std::move(linear), damage);
        }
        return timed ? clock_.Timed(std::move(linear), spec) : std::move(linear);
      };
      const ListMemory lists = list_bytes ? ListMemory{*list_bytes, /*idle_ns=*/0} : ListMemory();
      decoder_ = std::make_shared<const HostModel>(weights, &packer, wrap, lists);
      packing_ = packer.Description();
    }
  }

  CheckedRow Check(const Ids& source, const Ids& prefix, const py::dict& parameters,
                   const Ids& draft = {}) const {
    DecodingOptions options = loaded_->defaults();
    SetRequestParameters(parameters, engine_, &options);
    auto rows = loaded_->Check({{source, prefix, draft}}, &options);
    auto reason = WhyNotLoop(rows[0], *loaded_->weights());
    if (!reason) {
      reason = decoder_->WhyNot(EncodedTokens(rows[0], *loaded_->weights()),
                                static_cast<size_t>(rows[0].limit_tokens));
    }
    if (reason) throw Error(ErrorCode::kUnsupported, *reason);
    return std::move(rows[0]);
  }

  TrialReport Try() const {
    const py::gil_scoped_release release;
    return TryDecoder(*decoder_, AskCTranslate2(decoder_->weights()));
  }
  void FailAfter(int64_t uses) { *uses_left_ = uses; }

  const std::shared_ptr<const DeviceModel>& decoder() const { return decoder_; }
  const std::string& packing() const { return packing_; }
  const LayerClock& clock() const { return clock_; }

 private:
  static constexpr int64_t kAnyTokens = int64_t{1} << 40;

  EngineOptions engine_;
  const std::shared_ptr<int64_t> uses_left_ = std::make_shared<int64_t>(-1);
  LayerClock clock_;
  std::string packing_;
  std::unique_ptr<const LoadedModel> loaded_;
  std::shared_ptr<const DeviceModel> decoder_;
};

class PyLoop {
 public:
  PyLoop(std::shared_ptr<PyModel> model, size_t keep_bytes, const PyLoop* beside)
      : model_(std::move(model)),
        caches_(beside != nullptr ? beside->caches_ : std::make_shared<LoopCaches>(keep_bytes)),
        loop_(model_->decoder(), caches_) {}

  using Row = std::tuple<Ids, Ids, py::dict>;  // source, prefix, parameters

  // `drafts` has entries for the first rows only.
  std::vector<LoopRow> Admit(const std::vector<Row>& rows, const std::vector<Ids>& drafts) {
    std::vector<std::unique_ptr<const CheckedRow>> checked;
    std::vector<const CheckedRow*> pointers;
    for (const auto& [source, prefix, parameters] : rows) {
      const Ids draft = checked.size() < drafts.size() ? drafts[checked.size()] : Ids();
      checked.push_back(
          std::make_unique<const CheckedRow>(model_->Check(source, prefix, parameters, draft)));
      pointers.push_back(checked.back().get());
    }
    std::vector<LoopRow> names;
    {
      const py::gil_scoped_release release;
      names = loop_.Admit(pointers);
    }
    for (size_t i = 0; i < names.size(); ++i) rows_[names[i]] = std::move(checked[i]);
    return names;
  }

  py::tuple Step() {
    Events events;
    {
      const py::gil_scoped_release release;
      loop_.Step(&events);
    }
    py::list ended;
    for (const auto& [row, result] : events.ended) {
      rows_.erase(row);
      ended.append(py::make_tuple(row, Describe(result)));
    }
    return py::make_tuple(events.grew, ended);
  }

  void Remove(LoopRow row) {
    loop_.Remove(row);
    rows_.erase(row);
  }
  void HoldPlace(const Ids& source) { held_.push_back(caches_->encodings.Find(source).place); }

  size_t running() const { return loop_.running(); }
  size_t cache_bytes() const { return caches_->memory.pool.bytes_in_use(); }
  size_t kept_bytes() const { return caches_->memory.pool.bytes_kept(); }
  size_t logits_bytes() const { return caches_->memory.logits_bytes; }
  size_t encodings() const { return caches_->encodings.size(); }
  py::dict counters() const { return Describe(loop_.counters()); }

 private:
  const std::shared_ptr<PyModel> model_;
  const std::shared_ptr<LoopCaches> caches_;
  std::vector<SharedEncodings::Place> held_;
  std::map<LoopRow, std::unique_ptr<const CheckedRow>> rows_;
  DecodeLoop loop_;  // last: it refers to the rows
};

DistanceBias BiasOf(const Floats& table, size_t heads) {
  if (table.empty()) return {nullptr, 0};
  return {table.data(), (table.size() / heads - 1) / 2};
}

// Shapes, flattened: `keys` and `values` [tokens, heads, head_dim]; `bias` [heads, 2 * last
// distance + 1]. `position` is the query's; nullopt places it after the last key.
Floats PyAttend(const std::string& kernels, const Floats& query, const Floats& keys,
                const Floats& values, size_t heads, float scale, const Floats& bias,
                const std::vector<int32_t>& slots, std::optional<size_t> position) {
  const size_t width = query.size();
  const size_t tokens = slots.empty() ? keys.size() / width : slots.size();
  Floats scores(heads * tokens);
  Floats out(width);
  QueryAttention call{};
  call.query = query.data();
  call.keys = keys.data();
  call.values = values.data();
  call.stride = width;
  call.slots = slots.empty() ? nullptr : slots.data();
  call.tokens = tokens;
  call.heads = heads;
  call.head_dim = width / heads;
  call.scale = scale;
  call.bias = BiasOf(bias, heads);
  call.position = position.value_or(tokens - 1);
  call.scores = scores.data();
  call.out = out.data();
  RowKernelNamed(kernels).attend(call);
  return out;
}

Floats PyAttendRow(const std::string& kernels, const Floats& projected, size_t heads, size_t dim,
                   float scale, const Floats& bias) {
  const size_t tokens = heads * dim == 0 ? 0 : projected.size() / (3 * heads * dim);
  if (tokens == 0 || tokens * 3 * heads * dim != projected.size()) {
    throw Error(ErrorCode::kInvalidArgument, "the sizes do not fit each other");
  }
  RowAttention row{projected.data(), tokens, heads, dim, scale, BiasOf(bias, heads), {}, {}};
  Floats scratch(RowScratchFloats(tokens, dim)), out(tokens * row.width());
  row.scratch = scratch.data();
  row.out = out.data();
  const RowKernel& kernel = RowKernelNamed(kernels);
  for (size_t first = 0; first < heads; first += kHeadGroup) {
    kernel.attend_row(row, first, std::min(first + kHeadGroup, heads));
  }
  return out;
}

size_t PyFirstMaximum(const std::string& kernels, const Floats& values) {
  return RowKernelNamed(kernels).first_maximum(values.data(), values.size());
}

py::list DescribeTimes(const LayerClock& clock) {
  py::list layers;
  for (const LayerTime& time : clock.layers()) {
    py::dict layer;
    layer["scope"] = time.scope;
    layer["inputs"] = time.inputs;
    layer["outputs"] = time.outputs;
    layer["bytes"] = time.bytes;
    layer["uses"] = time.uses;
    layer["rows"] = time.rows;
    layer["ns"] = time.ns;
    layer["after_ns"] = time.after_ns;
    layers.append(layer);
  }
  return layers;
}

void BindTrialReport(py::module_& module) {
  module.def(
      "proof_id",
      [](const std::string& directory, const std::string& compute_type) {
        const py::gil_scoped_release release;
        return ProofId(*SharedWeights(directory, Device(), compute_type));
      },
      py::arg("directory"), py::arg("compute_type"),
      "What a proof of this model in decode loops is known by.");
  module.def(
      "prove_loop",
      [](const std::string& directory, const std::string& compute_type) {
        const py::gil_scoped_release release;
        const auto weights = SharedWeights(directory, Device(), compute_type);
        return LoopModel(weights, Proving::kAlways).description();
      },
      py::arg("directory"), py::arg("compute_type"),
      "Hold the decode loop against CTranslate2 on this model: what was found.");
  py::class_<TrialReport>(module, "TrialReport", "What a trial of the decode loop found.")
      .def_readonly("tokens", &TrialReport::tokens)
      .def_readonly("largest_error", &TrialReport::largest_error)
      .def_readonly("tolerance", &TrialReport::tolerance)
      .def_readonly("library_error", &TrialReport::library_error)
      .def_property_readonly("hypotheses",
                             [](const TrialReport& report) { return report.beams.hypotheses; })
      .def_property_readonly("beam_error",
                             [](const TrialReport& report) { return report.beams.largest_error; })
      .def_readonly("ns", &TrialReport::ns);
}

void BindModel(py::module_& module) {
  py::class_<PyModel, std::shared_ptr<PyModel>>(module, "LoopModel",
                                                "A model as decode loops share it.")
      .def(py::init<const std::string&, const py::dict&, const std::string&, float, bool, bool,
                    std::optional<size_t>>(),
           py::arg("model_directory"), py::arg("parameters") = py::dict(),
           py::arg("damaged") = std::string(), py::arg("factor") = 1.0F, py::arg("timed") = false,
           py::arg("gpu") = false, py::arg("list_bytes") = std::nullopt,
           "`damaged`: scope of a product whose results are multiplied by `factor`. `timed`: see "
           "layer_times. `list_bytes`: see ListMemory; any list may make room at once.")
      .def_property_readonly("packed_bytes",
                             [](const PyModel& model) { return model.decoder()->packed_bytes(); })
      .def_property_readonly("packing", &PyModel::packing)
      .def_property_readonly(
          "layer_times", [](const PyModel& model) { return DescribeTimes(model.clock()); },
          "Of a timed model: what each packed product did. `after_ns`: until another one began.")
      .def("fail_after", &PyModel::FailAfter, py::arg("uses"),
           "Let the damaged product fail after so many more uses; below 0: never.")
      .def("trial", &PyModel::Try, "Hold the decoder against CTranslate2 on this model.")
      .def(
          "cache_bytes",
          [](const PyModel& model, const Ids& source, const Ids& prefix,
             const py::dict& parameters) {
            const CheckedRow row = model.Check(source, prefix, parameters);
            const DeviceModel& decoder = *model.decoder();
            return py::make_tuple(decoder.CacheBytes(CacheTokens(row, decoder.weights())),
                                  decoder.CacheBytes(EncodedTokens(row, decoder.weights())));
          },
          py::arg("source"), py::arg("prefix"), py::arg("parameters"),
          "Bytes that a row takes from the pool when it is admitted: of its own tokens, and of its "
          "source where no other row has it.");
}

}  // namespace

py::dict Describe(const LoopCounters& counters) {
  py::dict result;
  for (const auto& [name, counter] : kLoopCounters) result[name] = counters.*counter;
  return result;
}

void BindLoop(py::module_& module) {
  module.def("kernel_names", &RowKernelNames, "Kernels that run here.");
  module.def(
      "attend", &PyAttend, py::arg("kernels"), py::arg("query"), py::arg("keys"), py::arg("values"),
      py::arg("heads"), py::arg("scale"), py::arg("bias") = Floats(),
      py::arg("slots") = std::vector<int32_t>(), py::arg("position") = py::none(),
      "Attention of one query, with the kernels of this name. Token t is slots[t], if given.");
  module.def("attend_row", &PyAttendRow, py::arg("kernels"), py::arg("projected"), py::arg("heads"),
             py::arg("head_dim"), py::arg("scale"), py::arg("bias") = Floats(),
             "Attention of all tokens of a row, [tokens, query and key and value, width].");
  module.def("first_maximum", &PyFirstMaximum, py::arg("kernels"), py::arg("values"),
             "Position of the first of the largest values.");
  BindTrialReport(module);
  BindModel(module);
  py::class_<PyLoop>(module, "DecodeLoop", "Rows that join and leave at every step.")
      .def(py::init<std::shared_ptr<PyModel>, size_t, const PyLoop*>(), py::arg("model"),
           py::arg("keep_bytes") = size_t{1} << 26, py::arg("beside") = py::none(),
           "`beside`: a loop of the same model whose caches and encodings it shares.")
      .def("admit", &PyLoop::Admit, py::arg("rows"), py::arg("drafts") = std::vector<Ids>(),
           "Take rows in, (source, prefix, parameters) each; their names, in order. `drafts`: what "
           "is expected after the prefixes of the first rows.")
      .def("step", &PyLoop::Step,
           "One step: [(name, id that its answer grew by)], and [(name, hypothesis)] of the rows "
           "that ended.")
      .def("remove", &PyLoop::Remove, py::arg("row"), "Take a row out.")
      .def("hold_place", &PyLoop::HoldPlace, py::arg("source"),
           "Be a thread that is making the encoding of a source for as long as this loop exists.")
      .def_property_readonly("running", &PyLoop::running)
      .def_property_readonly("cache_bytes", &PyLoop::cache_bytes)
      .def_property_readonly("kept_bytes", &PyLoop::kept_bytes)
      .def_property_readonly("logits_bytes", &PyLoop::logits_bytes)
      .def_property_readonly("encodings", &PyLoop::encodings, "Encodings that live.")
      .def_property_readonly("counters", &PyLoop::counters);
}

}  // namespace ct2triton
