// The z-step on a label graph without its arcs (see label_graph.hpp), for as long as every cut puts a whole class on
// one side: what a class then does to all points is a count times its side. zstep.hpp has the general path, and the
// same result wherever both go.
#pragma once
#include <cstdint>
#include <optional>

#include "label_graph.hpp"
#include "zstep.hpp"

namespace ilhash {

// No result, and z as it was, where a cut would leave a class on both sides. The options must have neither field nor
// weights.
std::optional<ZStepResult> alternate_classes(const LabelGraph& graph, const ZStepOptions& options, int8_t* z);

}  // namespace ilhash
