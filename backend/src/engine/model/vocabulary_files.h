// SPDX-License-Identifier: Apache-2.0
//
// What a decoder may choose from, as files of a model directory say: vmap.txt, shortlists.json.
#pragma once

#include <optional>
#include <string>

#include "engine/model/weights.h"

namespace ct2triton {

// CTranslate2 reads from the first line of the map without asking whether there is one.
void RequireMapLine(const std::string& directory);

// None where there is no such file.
std::optional<VocabularyMap> ReadVocabularyMap(const Weights& weights);

// None where there is no such file. Throws Error where there is a vocabulary map, too.
VocabularyLists ReadVocabularyLists(const Weights& weights);

}  // namespace ct2triton
