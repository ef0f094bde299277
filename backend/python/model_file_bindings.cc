// SPDX-License-Identifier: Apache-2.0
//
// Python bindings of the reader of model files, for tests.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>

#include "bindings.h"
#include "engine/model/model_file.h"
#include "engine/model/vocabulary.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

// {name: (type, shape, offset)}. Names of the same variable have the same offset.
py::dict Variables(const ModelFile& file) {
  py::dict variables;
  for (const auto& [name, variable] : file.variables()) {
    variables[py::str(name)] = py::make_tuple(
        ElementName(variable->type), py::tuple(py::cast(variable->shape)), variable->offset);
  }
  return variables;
}

py::bytes Read(const ModelFile& file, const std::string& name) {
  const Variable& variable = file.Get(name);
  std::string bytes(variable.bytes, '\0');
  file.Read(variable, 0, variable.bytes, bytes.data());
  return bytes;
}

py::array_t<float> Floats(const ModelFile& file, const std::string& name) {
  const auto floats = file.Floats(name);
  return py::array_t<float>(static_cast<py::ssize_t>(floats.size()), floats.data());
}

// ([token of each id], [id of each of these tokens, then the id of a token that does not exist]).
py::tuple Describe(const Vocabulary& vocabulary) {
  py::list tokens, ids;
  for (int64_t id = 0; id < static_cast<int64_t>(vocabulary.size()); ++id) {
    tokens.append(py::bytes(vocabulary.to_token(id)));
    ids.append(vocabulary.by_name(id));
  }
  ids.append(vocabulary.to_id("\x01"));
  return py::make_tuple(tokens, ids);
}

// (source vocabulary, target vocabulary, whether both are the same object).
py::tuple ReadBoth(const std::string& directory, const std::string& unknown) {
  const auto read = ReadVocabularies(directory, unknown);
  return py::make_tuple(Describe(*read.source), Describe(*read.target), read.source == read.target);
}

}  // namespace

void BindModelFile(py::module_& module) {
  module.def("vocabularies", &ReadBoth, py::arg("directory"), py::arg("unknown") = "<unk>");
  py::class_<ModelFile>(module, "ModelFile")
      .def(py::init<const std::string&>(), py::arg("directory"))
      .def_property_readonly("variables", &Variables)
      .def("read", &Read)
      .def("floats", &Floats)
      .def("attribute", &ModelFile::Attribute)
      .def("require_current_format", &ModelFile::RequireCurrentFormat)
      .def("require_unchanged", &ModelFile::RequireUnchanged);
}

}  // namespace ct2triton
