// SPDX-License-Identifier: Apache-2.0
// Python bindings of the tokenizers, for the Python client and for tests against SentencePiece.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>

#include "bindings.h"
#include "text/code_points.h"
#include "text/flat_model.h"
#include "text/tokenizer.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

Side ToSide(bool of_targets) { return of_targets ? Side::kTarget : Side::kSource; }

void BindPieces(py::module_& module) {
  py::class_<Pieces>(module, "Pieces", "Text to the ids of its pieces and back.")
      .def(py::init([](const std::string& folder, const std::string& rules, bool of_targets) {
             auto pieces =
                 Pieces::Read(folder, TokenRules::Parse(rules, "rules"), ToSide(of_targets));
             return std::unique_ptr<Pieces>(const_cast<Pieces*>(pieces.release()));
           }),
           py::arg("folder"), py::arg("rules"), py::kw_only(), py::arg("of_targets") = false)
      .def("encode",
           [](const Pieces& pieces, std::string_view text) { return pieces.Encode(text); })
      .def("decode",
           [](const Pieces& pieces, const std::vector<int>& ids) {
             return pieces.Decode(ids.data(), ids.size(), std::numeric_limits<int>::max());
           })
      .def_property_readonly("space_id", &Pieces::space_id)
      .def_property_readonly("text_ids", &Pieces::TextIds);
}

void BindTokenizer(py::module_& module) {
  py::class_<Tokenizer, std::shared_ptr<Tokenizer>>(module, "Tokenizer",
                                                    "Text to rows of ids and back.")
      .def(py::init([](const std::string& folder) {
             return std::const_pointer_cast<Tokenizer>(Tokenizer::Load(folder));
           }),
           py::arg("folder"))
      .def(
          "language",
          [](const Tokenizer& tokenizer, std::string_view name, bool of_targets) {
            return tokenizer.Language(name, ToSide(of_targets));
          },
          py::arg("name"), py::kw_only(), py::arg("of_targets") = false)
      .def("source", &Tokenizer::Source, py::arg("text"), py::arg("source_language") = "",
           py::arg("target_language") = "")
      .def(
          "count_ids",
          [](const Tokenizer& tokenizer, const std::vector<std::string>& texts,
             const std::string& source_language, const std::string& target_language) {
            py::gil_scoped_release release;
            size_t ids = 0;
            for (const std::string& text : texts) {
              ids += tokenizer.Source(text, source_language, target_language).size();
            }
            return ids;
          },
          py::arg("texts"), py::arg("source_language") = "", py::arg("target_language") = "",
          "Ids of all rows of texts: what measures the tokenizer without Python's objects.")
      .def(
          "source_places",
          [](const Tokenizer& tokenizer, std::string_view text, std::string_view source,
             std::string_view target) {
            const size_t ids = tokenizer.Source(text, source, target).size();
            std::vector<std::pair<size_t, size_t>> places;
            for (const Span& place : tokenizer.SourcePlaces(text, source, target, ids)) {
              places.emplace_back(place.begin, place.end);
            }
            return places;
          },
          py::arg("text"), py::arg("source_language") = "", py::arg("target_language") = "")
      .def("prefix", &Tokenizer::Prefix, py::arg("target_language") = "")
      .def("prefix_length", &Tokenizer::PrefixLength, py::arg("target_language") = "")
      .def("text",
           [](const Tokenizer& tokenizer, const std::vector<int>& ids) {
             return tokenizer.Text(ids.data(), ids.size());
           })
      .def("settled_text", [](const Tokenizer& tokenizer, const std::vector<int>& ids) {
        return tokenizer.SettledText(ids.data(), ids.size());
      });
}

}  // namespace

void BindText(py::module_& module) {
  BindPieces(module);
  BindTokenizer(module);
  module.def("invalid_utf8", [](const py::bytes& text) { return InvalidUtf8(std::string(text)); });
  module.def("flat_model", [](const py::bytes& model) {
    return py::bytes(FlatModel(ParsePieceList(std::string(model))));
  });
}

}  // namespace ct2triton
