// SPDX-License-Identifier: Apache-2.0
//
// Python bindings of the packed products, for tests and benchmarks/measure_products.py.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bindings.h"
#include "engine/compute/cpu/layer_packer.h"
#include "engine/compute/cpu/pack_weights.h"
#include "engine/compute/cpu/products/kernel_choice.h"
#include "engine/compute/cpu/products/packed_linear.h"
#include "engine/compute/cpu/row_kernel.h"
#include "engine/model/shared_weights.h"
#include "error.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

using products::ChoiceRules;
using products::ChosenLogit;
using products::PackedLinear;
using products::QuantizedRows;
using products::Rounding;
using products::WeightType;

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

constexpr std::pair<const char*, Rounding> kRoundings[] = {
    {"once", Rounding::kOnce}, {"twice", Rounding::kTwice}, {"signed", Rounding::kSigned}};

constexpr std::pair<const char*, Activation> kActivations[] = {
    {"none", Activation::kNone},       {"relu", Activation::kRelu},
    {"gelu", Activation::kGelu},       {"gelu_tanh", Activation::kGeluTanh},
    {"swish", Activation::kSwish},     {"gelu_sigmoid", Activation::kGeluSigmoid},
    {"sigmoid", Activation::kSigmoid}, {"tanh", Activation::kTanh}};

template <typename Table>
auto Named(const Table& table, const std::string& name) {
  for (const auto& [known, value] : table) {
    if (name == known) return value;
  }
  throw Error(ErrorCode::kInvalidArgument, "no value is called " + name);
}

void CheckShape(const py::array& array, std::vector<py::ssize_t> shape, const char* name) {
  if (std::vector<py::ssize_t>(array.shape(), array.shape() + array.ndim()) != shape) {
    throw Error(ErrorCode::kInvalidArgument, std::string("wrong shape of ") + name);
  }
}

constexpr std::pair<const char*, WeightType> kWeightTypes[] = {{"int8", WeightType::kInt8},
                                                               {"float32", WeightType::kFloat32}};

WeightType TypeOf(const py::array& weight) {
  return Named(kWeightTypes, py::str(weight.dtype()).cast<std::string>());
}

const products::Kernel& KernelFor(const py::array& weight, const std::string& name) {
  const WeightType type = TypeOf(weight);
  return name.empty() ? products::DefaultKernel(type) : products::KernelNamed(name, type);
}

// `weight` must be in C order.
PackedLinear Pack(const py::array& weight, const std::optional<Array<float>>& scale,
                  const std::optional<Array<float>>& bias, const products::Kernel& kernel) {
  if (weight.ndim() != 2) throw Error(ErrorCode::kInvalidArgument, "weight needs two dimensions");
  if (scale.has_value() != (kernel.weights == WeightType::kInt8)) {
    throw Error(ErrorCode::kInvalidArgument,
                "int8 weights have scales, and float32 ones have none");
  }
  if (scale) CheckShape(*scale, {weight.shape(0)}, "scale");
  if (bias) CheckShape(*bias, {weight.shape(0)}, "bias");
  return PackedLinear({kernel.weights, weight.data(), scale ? scale->data() : nullptr,
                       bias ? bias->data() : nullptr, weight.shape(0), weight.shape(1)},
                      kernel);
}

// A packed layer, applied to rows that Python passes in.
class PyPackedLinear {
 public:
  PyPackedLinear(const py::array& weight, const std::optional<Array<float>>& scale,
                 const std::optional<Array<float>>& bias, const std::string& kernel)
      : kernel_(KernelFor(weight, kernel)), layer_(Pack(weight, scale, bias, kernel_)) {}

  Array<float> Apply(const Array<float>& in, const std::string& activation,
                     const std::optional<Array<float>>& residual, const std::string& rounding,
                     int repeat) const {
    const auto rows = Quantize(in, rounding);
    Array<float> out({rows.rows(), layer_.outputs()});
    if (residual) CheckShape(*residual, {out.shape(0), out.shape(1)}, "residual");
    const Activation after = Named(kActivations, activation);
    float* to = out.mutable_data();
    const py::gil_scoped_release release;
    for (int i = 0; i < repeat; ++i)
      layer_.Apply(rows, to, after, residual ? residual->data() : nullptr);
    return out;
  }

  // [(output, logit, log total)], and the logits of the rows that ask for them.
  py::tuple Choose(const Array<float>& in, bool log_totals, const std::vector<bool>& with_logits,
                   const std::vector<std::vector<int64_t>>& forbidden, const std::string& rounding,
                   int repeat) const {
    const auto rows = Quantize(in, rounding);
    const auto count = static_cast<size_t>(rows.rows());
    std::vector<ChoiceRules> rules(count);
    std::vector<ChosenLogit> choices(count);
    py::list logits;
    for (size_t row = 0; row < count; ++row) {
      rules[row].log_total = log_totals;
      if (!forbidden.empty()) rules[row].forbidden = forbidden.at(row);
      if (with_logits.empty() || !with_logits.at(row)) {
        logits.append(py::none());
        continue;
      }
      Array<float> values(layer_.outputs());
      rules[row].logits = values.mutable_data();
      logits.append(values);
    }
    for (int i = 0; i < repeat; ++i) layer_.Choose(rows, rules, choices.data());
    py::list result;
    for (const auto& choice : choices) {
      result.append(py::make_tuple(choice.output, choice.logit, choice.log_total));
    }
    return py::make_tuple(result, logits);
  }

  // The best outputs of each row: [(output, logit)].
  std::vector<std::vector<std::pair<int32_t, float>>> Best(
      const Array<float>& in, int32_t wanted, const std::vector<std::vector<int64_t>>& forbidden,
      int repeat) const {
    const auto rows = Quantize(in, "once");
    const auto count = static_cast<size_t>(rows.rows());
    std::vector<products::RankedOutput> top(count * static_cast<size_t>(wanted));
    std::vector<ChoiceRules> rules(count);
    std::vector<ChosenLogit> choices(count);
    for (size_t row = 0; row < count; ++row) {
      rules[row].log_total = true;
      if (!forbidden.empty()) rules[row].forbidden = forbidden.at(row);
      rules[row].top = &top[row * static_cast<size_t>(wanted)];
      rules[row].wanted = wanted;
    }
    for (int i = 0; i < repeat; ++i) layer_.Choose(rows, rules, choices.data());
    std::vector<std::vector<std::pair<int32_t, float>>> best(count);
    for (size_t row = 0; row < count; ++row) {
      for (int32_t i = 0; i < choices[row].found; ++i) {
        best[row].emplace_back(rules[row].top[i].output, rules[row].top[i].logit);
      }
    }
    return best;
  }

  // Packs the layer `scope`, such as "decoder/projection", of a model on disk.
  static PyPackedLinear OfFile(const std::string& directory, const std::string& scope,
                               const std::string& weights, size_t threads) {
    const auto type = Named(kWeightTypes, weights);
    const auto packed = PackWeights(
        ModelFile(directory), scope,
        type == WeightType::kInt8 ? ElementType::kInt8 : ElementType::kFloat32, nullptr, threads);
    return PyPackedLinear(packed->kernel(), *packed);
  }

  PyPackedLinear Select(const std::vector<int64_t>& outputs) const {
    return PyPackedLinear(kernel_, layer_.Select(outputs));
  }

  py::array Unpack() const {
    const bool floats = kernel_.weights == WeightType::kFloat32;
    py::array weights(floats ? py::dtype::of<float>() : py::dtype::of<int8_t>(),
                      {layer_.outputs(), layer_.inputs()});
    for (int64_t output = 0; output < layer_.outputs(); ++output) {
      layer_.UnpackRow(output, weights.mutable_data(output));
    }
    return weights;
  }
  Array<float> scales() const {
    Array<float> scales(layer_.outputs());
    for (int64_t i = 0; i < layer_.outputs(); ++i) scales.mutable_at(i) = layer_.scale(i);
    return scales;
  }
  size_t bytes() const { return layer_.bytes(); }
  std::string kernel() const { return kernel_.name; }

 private:
  PyPackedLinear(const products::Kernel& kernel, PackedLinear layer)
      : kernel_(kernel), layer_(std::move(layer)) {}

  QuantizedRows Quantize(const Array<float>& in, const std::string& rounding) const {
    CheckShape(in, {in.ndim() > 0 ? in.shape(0) : 0, layer_.inputs()}, "inputs");
    QuantizedRows rows;
    rows.Assign(kernel_, Named(kRoundings, rounding), in.data(), in.shape(0), in.shape(1));
    return rows;
  }

  const products::Kernel& kernel_;
  PackedLinear layer_;
};

// One layer of a model on disk, as the decode loop makes it.
class PyModelLayer {
 public:
  PyModelLayer(const std::string& directory, const std::string& compute_type,
               const std::string& scope, const std::string& activation)
      : weights_(SharedWeights(directory, {Device::Kind::kCpu, 0}, compute_type)),
        packer_(weights_->file(), weights_->loop_type(), /*threads=*/1),
        linear_(packer_.Make({scope, Named(kActivations, activation)})) {}

  Array<float> Apply(const Array<float>& in, const std::optional<Array<float>>& residual) const {
    CheckShape(in, {in.ndim() > 0 ? in.shape(0) : 0, inputs()}, "inputs");
    Array<float> out({in.shape(0), static_cast<py::ssize_t>(linear_->outputs())});
    if (residual) CheckShape(*residual, {out.shape(0), out.shape(1)}, "residual");
    linear_->Apply(in.data(), static_cast<size_t>(in.shape(0)), out.mutable_data(),
                   residual ? residual->data() : nullptr);
    return out;
  }

  void Select(const std::vector<int64_t>& outputs) { linear_ = linear_->Select(outputs); }
  py::ssize_t inputs() const { return static_cast<py::ssize_t>(linear_->inputs()); }
  std::string packing() const { return packer_.Description(); }

 private:
  const std::shared_ptr<const Weights> weights_;
  LayerPacker packer_;
  std::unique_ptr<Linear> linear_;
};

// `beta` is absent for an RMS norm.
Array<float> PyNorm(const std::string& kernels, const Array<float>& row, const Array<float>& gamma,
                    const std::optional<Array<float>>& beta, float epsilon) {
  CheckShape(gamma, {row.size()}, "gamma");
  if (beta) CheckShape(*beta, {row.size()}, "beta");
  Array<float> out(row.size());
  const RowFunctions& functions = *RowKernelNamed(kernels).rows;
  const auto size = static_cast<size_t>(row.size());
  if (beta) {
    functions.layer_norm(row.data(), gamma.data(), beta->data(), epsilon, size, out.mutable_data());
  } else {
    functions.rms_norm(row.data(), gamma.data(), epsilon, size, out.mutable_data());
  }
  return out;
}

Array<float> PyLogSoftmax(const std::string& kernels, const Array<float>& row) {
  Array<float> out(row.size());
  std::copy_n(row.data(), row.size(), out.mutable_data());
  RowKernelNamed(kernels).rows->log_softmax(out.mutable_data(), static_cast<size_t>(out.size()));
  return out;
}

std::vector<std::string> ProductKernels(const std::string& weights) {
  std::vector<std::string> names;
  for (const auto* kernel : products::KernelsFor(Named(kWeightTypes, weights)))
    names.emplace_back(kernel->name);
  return names;
}

}  // namespace

void BindProducts(py::module_& module) {
  module.def("norm", &PyNorm, py::arg("kernels"), py::arg("row"), py::arg("gamma"), py::arg("beta"),
             py::arg("epsilon"), "Layer norm of a row; without beta, its RMS norm.");
  module.def("log_softmax", &PyLogSoftmax, py::arg("kernels"), py::arg("row"),
             "Log-probabilities of a row of logits.");
  module.def("kernels", &ProductKernels, py::arg("weights") = "int8",
             "Names of the kernels that run here, fastest first.");
  py::class_<PyPackedLinear>(module, "PackedLinear", "A linear layer, packed once.")
      .def(py::init<const py::array&, const std::optional<Array<float>>&,
                    const std::optional<Array<float>>&, const std::string&>(),
           py::arg("weight"), py::arg("scale") = py::none(), py::arg("bias") = py::none(),
           py::arg("kernel") = "",
           "Pack weights [outputs, inputs], as CTranslate2 keeps them: int8 with scales, or "
           "float32. No kernel: the default one.")
      .def("apply", &PyPackedLinear::Apply, py::arg("inputs"), py::arg("activation") = "none",
           py::arg("residual") = py::none(), py::arg("rounding") = "once", py::arg("repeat") = 1,
           "The layer's outputs, [rows, outputs]. `repeat`: do the product so often, to time it.")
      .def("choose", &PyPackedLinear::Choose, py::arg("inputs"), py::arg("log_totals") = false,
           py::arg("with_logits") = std::vector<bool>(),
           py::arg("forbidden") = std::vector<std::vector<int64_t>>(), py::arg("rounding") = "once",
           py::arg("repeat") = 1,
           "([(output, logit, log total)], [logits or None]): each row's greedy choice.")
      .def("best", &PyPackedLinear::Best, py::arg("inputs"), py::arg("wanted"),
           py::arg("forbidden") = std::vector<std::vector<int64_t>>(), py::arg("repeat") = 1,
           "[[(output, logit)]]: each row's best outputs, best first.")
      .def("select", &PyPackedLinear::Select, py::arg("outputs"),
           "A layer of some of its outputs, in this order.")
      .def_static("of_file", &PyPackedLinear::OfFile, py::arg("directory"), py::arg("scope"),
                  py::arg("weights"), py::arg("threads") = 1,
                  "A layer of a model on disk, its weights converted to int8 or float32.")
      .def_property_readonly("scales", &PyPackedLinear::scales)
      .def("unpack", &PyPackedLinear::Unpack, "The weights as they were before.")
      .def_property_readonly("bytes", &PyPackedLinear::bytes)
      .def_property_readonly("kernel", &PyPackedLinear::kernel);
  py::class_<PyModelLayer>(module, "ModelLayer", "A linear layer of a model, as loops have it.")
      .def(py::init<const std::string&, const std::string&, const std::string&,
                    const std::string&>(),
           py::arg("model_directory"), py::arg("compute_type"), py::arg("scope"),
           py::arg("activation") = "none")
      .def("apply", &PyModelLayer::Apply, py::arg("inputs"), py::arg("residual") = py::none(),
           "The layer's outputs, [rows, outputs].")
      .def("select", &PyModelLayer::Select, py::arg("outputs"),
           "Keep these outputs, in this order.")
      .def_property_readonly("inputs", &PyModelLayer::inputs)
      .def_property_readonly("packing", &PyModelLayer::packing);
}

}  // namespace ct2triton
