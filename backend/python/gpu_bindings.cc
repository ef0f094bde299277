// SPDX-License-Identifier: Apache-2.0
//
// Python bindings of the GPU engine, for tests and benchmarks/gpu/.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <tuple>

#include "bindings.h"
#include "engine/compute/gpu/gpu_decoder.h"
#include "engine/compute/gpu/gpu_sequence.h"
#include "engine/compute/gpu/images.h"
#include "error.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

using gpu::ChosenToken;
using gpu::GivenTokens;
using gpu::GpuDecoder;
using gpu::GpuLimits;
using gpu::GpuStep;
using gpu::TokenCandidate;
using gpu::TokenRules;

gpu::ComputeTypes TypesOf(const std::string& name) {
  if (name == "float32") return {gpu::kFloat32, false};
  if (name == "float16") return {gpu::kFloat16, false};
  if (name == "bfloat16") return {gpu::kBfloat16, false};
  if (name == "int8_float16") return {gpu::kFloat16, true};
  if (name == "int8_float32") return {gpu::kFloat32, true};
  throw Error(ErrorCode::kInvalidArgument,
              "type " + name +
                  " is not known; allowed are float32, float16, bfloat16, int8_float16, "
                  "int8_float32");
}

// Copies the value under `name`, if there is one, into a field of that name.
template <class T, class Field>
void Take(const py::dict& values, const char* name, Field T::*field, T* to) {
  if (values.contains(name)) to->*field = values[name].cast<Field>();
}

TokenRules RulesOf(const py::dict& values) {
  TokenRules rules;
  Take(values, "penalty", &TokenRules::penalty, &rules);
  Take(values, "ends", &TokenRules::ends, &rules);
  Take(values, "forbidden", &TokenRules::forbidden, &rules);
  Take(values, "min_length", &TokenRules::min_length, &rules);
  Take(values, "limit", &TokenRules::limit, &rules);
  Take(values, "candidates", &TokenRules::candidates, &rules);
  Take(values, "draws", &TokenRules::draws, &rules);
  Take(values, "key", &TokenRules::key, &rules);
  Take(values, "top_k", &TokenRules::top_k, &rules);
  Take(values, "top_p", &TokenRules::top_p, &rules);
  Take(values, "temperature", &TokenRules::temperature, &rules);
  Take(values, "list", &TokenRules::list, &rules);
  Take(values, "favored", &TokenRules::favored, &rules);
  Take(values, "bias", &TokenRules::bias, &rules);
  Take(values, "first_source", &TokenRules::first_source, &rules);
  Take(values, "sources", &TokenRules::sources, &rules);
  return rules;
}

GpuLimits LimitsOf(const py::dict& values) {
  GpuLimits limits;
  Take(values, "sequences", &GpuLimits::sequences, &limits);
  Take(values, "step_tokens", &GpuLimits::step_tokens, &limits);
  Take(values, "encoded_tokens", &GpuLimits::encoded_tokens, &limits);
  Take(values, "source_tokens", &GpuLimits::source_tokens, &limits);
  Take(values, "target_tokens", &GpuLimits::target_tokens, &limits);
  Take(values, "cache_bytes", &GpuLimits::cache_bytes, &limits);
  return limits;
}

std::unique_ptr<GpuDecoder> NewDecoder(const std::string& library, const std::string& images,
                                       const std::string& model, const std::string& type,
                                       std::optional<float> epsilon, const py::dict& limits,
                                       int ordinal) {
  return std::make_unique<GpuDecoder>(gpu::GpuPlace{library, ordinal, images}, ModelFile(model),
                                      TypesOf(type), epsilon, LimitsOf(limits));
}

using Given = std::tuple<int, size_t, std::vector<int>, size_t>;

struct Launched {
  std::unique_ptr<GpuStep> step;
};

using Lists = std::vector<std::vector<int>>;

// `places` and `before` have entries for the first rows only; see GivenTokens.
std::vector<GivenTokens> GivenOf(const std::vector<Given>& rows, const Lists& places,
                                 const Lists& before) {
  std::vector<GivenTokens> given;
  for (const auto& [sequence, position, tokens, outputs] : rows) {
    given.push_back({sequence, position, tokens, outputs});
    const size_t row = given.size() - 1;
    if (row < places.size()) given.back().places = places[row];
    if (row < before.size()) given.back().before = before[row];
  }
  return given;
}

Launched Launch(GpuDecoder* decoder, const std::vector<Given>& rows, const Lists& places,
                const Lists& before) {
  return {decoder->Launch(GivenOf(rows, places, before))};
}

// (kernel, outputs and inputs of its matrix or 0, ms) for each of a step.
std::vector<std::tuple<std::string, int, int, float>> KernelTimes(GpuDecoder* decoder,
                                                                  const std::vector<Given>& rows) {
  std::vector<std::tuple<std::string, int, int, float>> times;
  for (const gpu::KernelTime& time : decoder->TimeKernels(GivenOf(rows, {}, {}))) {
    times.emplace_back(time.kernel, time.outputs, time.inputs, time.ms);
  }
  return times;
}

std::vector<ChosenToken> Read(GpuDecoder* decoder, Launched* launched) {
  if (!launched->step) throw Error(ErrorCode::kInvalidArgument, "the step was read before");
  return decoder->Read(std::move(launched->step));
}

void BindChosen(py::module_& module) {
  py::class_<ChosenToken>(module, "GpuChosenToken")
      .def_property_readonly("token", [](const ChosenToken& c) { return c.chosen.token; })
      .def_property_readonly("log_probability",
                             [](const ChosenToken& c) { return c.chosen.log_probability; })
      .def_property_readonly("candidates",
                             [](const ChosenToken& c) {
                               std::vector<std::pair<int, float>> all;
                               for (const TokenCandidate& one : c.candidates) {
                                 all.emplace_back(one.token, one.log_probability);
                               }
                               return all;
                             })
      .def_readonly("aligned_source", &ChosenToken::aligned_source)
      .def_readonly("alignment_weight", &ChosenToken::alignment_weight);
}

}  // namespace

void BindGpu(py::module_& module) {
  BindChosen(module);
  module.def("gpu_image", [](const std::string& images, int capability) {
    return py::bytes(gpu::ImageFor(images, capability));
  });
  py::class_<Launched>(module, "GpuStep");
  py::class_<GpuDecoder>(module, "GpuDecoder")
      .def(py::init(&NewDecoder), py::arg("library"), py::arg("images"), py::arg("model"),
           py::arg("type"), py::arg("epsilon"), py::arg("limits"), py::arg("ordinal") = 0)
      .def("encode", &GpuDecoder::Encode)
      .def("forget_encoding", &GpuDecoder::ForgetEncoding)
      .def("add_list", &GpuDecoder::AddList)
      // Adds `count` sequences that share one KV cache.
      .def("join",
           [](GpuDecoder* decoder, int encoding, size_t count, const py::dict& rules) {
             const auto cache = decoder->NewCache();
             std::vector<int> names;
             for (size_t i = 0; i < count; ++i) {
               names.push_back(decoder->Join(encoding, /*prompt=*/0, cache));
               decoder->SetRules(names.back(), RulesOf(rules));
             }
             return names;
           })
      .def("set_rules", [](GpuDecoder* decoder, int sequence,
                           const py::dict& rules) { decoder->SetRules(sequence, RulesOf(rules)); })
      .def("forget", &GpuDecoder::Forget)
      .def("launch", &Launch, py::arg("rows"), py::arg("places") = Lists(),
           py::arg("before") = Lists())
      .def("kernel_times", &KernelTimes)
      .def("read", &Read)
      .def("wait", &GpuDecoder::Wait)
      .def("logits",
           [](const GpuDecoder& decoder) {
             std::vector<std::vector<float>> all;
             for (size_t i = 0; i < decoder.outputs(); ++i) all.push_back(decoder.Logits(i));
             return all;
           })
      .def_property_readonly("taken_pages", &GpuDecoder::taken_pages)
      .def_property_readonly("cache_bytes", &GpuDecoder::cache_bytes)
      .def_property_readonly("weight_bytes", &GpuDecoder::weight_bytes)
      .def_property_readonly("graphs", &GpuDecoder::graphs)
      .def_property_readonly("kernels_of_last_step", &GpuDecoder::kernels_of_last_step)
      .def_property_readonly("device", &GpuDecoder::device);
}

}  // namespace ct2triton
