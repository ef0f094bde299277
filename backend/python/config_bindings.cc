// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <type_traits>

#include "bindings.h"
#include "config/auto_complete.h"
#include "config/model_config.h"
#include "config/parameters.h"
#include "config/sha256.h"
#include "config/validate.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

template <class Value>
const char* TypeName() {
  if constexpr (std::is_same_v<Value, bool>) return "boolean";
  if constexpr (std::is_floating_point_v<Value>) return "number";
  if constexpr (std::is_same_v<Value, std::string>) return "string";
  if constexpr (std::is_same_v<Value, TokenSequence>) return "list of tokens";
  if constexpr (std::is_same_v<Value, std::vector<TokenSequence>>) return "list of token lists";
  if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) return "list of ids";
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) return "list of names";
  return "integer";
}

template <class Value>
constexpr bool HasRange() {
  return (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) ||
         std::is_same_v<Value, std::optional<std::int64_t>>;
}

const char* ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kModel:
      return "model";
    case Scope::kRequest:
      return "request";
    case Scope::kRequestOnly:
      break;
  }
  return "request only";
}

// Name of the documentation's section on the parameters of a struct.
const char* KindName(const DecodingOptions&) { return "decoding"; }
const char* KindName(const EngineOptions&) { return "engine"; }
const char* KindName(const RequestOptions&) { return "request"; }

// A default-constructed object of the struct that a member pointer belongs to.
template <class Value, class Owner>
Owner DefaultsOf(Value Owner::*) {
  return Owner();
}

py::dict DescribeParameter(const Parameter& parameter) {
  py::dict row;
  row["name"] = parameter.name;
  row["scope"] = ScopeName(parameter.scope);
  row["help"] = parameter.help;
  row["allowed"] = Allowed(parameter);
  row["example"] = parameter.example;
  row["choices"] = parameter.choices;
  py::list aliases;
  for (const Alias& alias : Aliases()) {
    if (alias.parameter == parameter.name) aliases.append(alias.name);
  }
  row["aliases"] = aliases;
  row["min"] = py::none();
  row["max"] = py::none();
  std::visit(
      [&](auto member) {
        const auto owner = DefaultsOf(member);
        const auto& value = owner.*member;
        using Value = std::decay_t<decltype(value)>;
        row["type"] = TypeName<Value>();
        row["kind"] = KindName(owner);
        row["default"] = value;
        if constexpr (HasRange<Value>()) {
          using Number = std::conditional_t<std::is_floating_point_v<Value>, double, std::int64_t>;
          row["min"] = static_cast<Number>(parameter.range.min);
          row["max"] = static_cast<Number>(parameter.range.max);
        }
      },
      parameter.member);
  return row;
}

py::list DescribeParameters() {
  py::list rows;
  for (const Parameter& parameter : Parameters()) rows.append(DescribeParameter(parameter));
  return rows;
}

// Values of the parameters that `Owner` holds, by parameter name.
template <class Owner>
py::dict Values(const Owner& options) {
  py::dict values;
  for (const Parameter& parameter : Parameters()) {
    std::visit(
        [&](auto member) {
          if constexpr (std::is_invocable_v<decltype(member), const Owner&>) {
            values[py::str(parameter.name)] = options.*member;
          }
        },
        parameter.member);
  }
  return values;
}

py::list Tensors(const std::vector<TensorSpec>& tensors) {
  py::list rows;
  for (const TensorSpec& tensor : tensors) {
    py::dict row;
    row["name"] = tensor.name;
    row["data_type"] = tensor.data_type;
    row["dims"] = tensor.dims;
    row["optional"] = tensor.optional;
    row["allow_ragged_batch"] = tensor.allow_ragged_batch;
    rows.append(row);
  }
  return rows;
}

py::dict ParseModelConfigToDict(std::string_view json) {
  const ModelConfig config = ParseModelConfig(json);
  py::dict result;
  result["name"] = config.name;
  result["max_batch_size"] = config.max_batch_size;
  result["inputs"] = Tensors(config.inputs);
  result["outputs"] = Tensors(config.outputs);
  result["decoding"] = Values(config.decoding);
  result["engine"] = Values(config.engine);
  result["default_model_filename"] = config.default_model_filename;
  result["warnings"] = config.warnings;
  return result;
}

py::dict CheckDecodingOptions(const py::dict& request, const py::dict& model) {
  DecodingOptions decoding;
  EngineOptions engine;
  RequestOptions of_request;
  SetModelParameters(model, &decoding, &engine);
  SetRequestParameters(request, engine, &decoding, &of_request);
  ValidateCombination(decoding, engine);
  py::dict values = Values(decoding);
  for (const auto& [name, value] : Values(of_request)) values[name] = value;
  return values;
}

bool EqualDecodingOptions(const py::dict& first, const py::dict& second) {
  DecodingOptions one, other;
  EngineOptions engine;
  SetModelParameters(first, &one, &engine);
  SetModelParameters(second, &other, &engine);
  return one == other;
}

ParameterValue ToParameterValue(const py::handle& value) {
  // A Python bool is also an int, so it is checked first.
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<std::int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  return value.cast<std::string>();
}

}  // namespace

void SetModelParameters(const py::dict& parameters, DecodingOptions* decoding,
                        EngineOptions* engine) {
  for (const auto& [name, value] : parameters) {
    SetModelParameter(name.cast<std::string>(), ToParameterValue(value), decoding, engine);
  }
}

void SetRequestParameters(const py::dict& parameters, const EngineOptions& engine,
                          DecodingOptions* decoding, RequestOptions* request) {
  RequestOptions unused;
  for (const auto& [name, value] : parameters) {
    SetRequestParameter(name.cast<std::string>(), ToParameterValue(value), engine, decoding,
                        request != nullptr ? request : &unused);
  }
}

void BindConfig(py::module_& module) {
  module.def(
      "sha256",
      [](const std::vector<py::bytes>& pieces) {
        Sha256 hash;
        for (const std::string piece : pieces) hash.Add(piece);
        return hash.HexDigest();
      },
      py::arg("pieces"), "SHA-256 of the concatenated pieces, in hexadecimal.");
  module.def("parameters", &DescribeParameters,
             "The table of parameters: one dict per row, in the order of the documentation.");
  module.def("parse_model_config", &ParseModelConfigToDict, py::arg("json"),
             "Reads and checks a model configuration (JSON text) as the backend does at load.");
  module.def("auto_complete", &AutoComplete, py::arg("json"),
             "The completed model configuration (JSON text), or None when nothing was missing.");
  module.def("check_decoding_options", &CheckDecodingOptions, py::arg("request"),
             py::arg("model") = py::dict(),
             "The options a request with these parameters runs with, on a model with those.");
  module.def("equal_decoding_options", &EqualDecodingOptions, py::arg("first"), py::arg("second"),
             "Whether rows with these parameters may share a call.");
}

}  // namespace ct2triton
