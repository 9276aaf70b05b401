// The z-step of one bit, and the loss of KSH over pairs, which takes z-steps of its own.
#include "../zstep.hpp"

#include <nanobind/stl/optional.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "../graph.hpp"
#include "../pair_loss.hpp"
#include "checks.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

nb::tuple as_tuple(std::vector<int8_t> z, ZStepResult result) {
  return nb::make_tuple(to_numpy(std::move(z)), to_numpy(std::move(result.energies)), result.n_blocks,
                        result.converged);
}

nb::tuple minimise(const SignedGraph& graph, Vector<int8_t> start, uint64_t seed, bool shuffle_blocks,
                   uint32_t max_sweeps, std::optional<Vector<double>> field) {
  require(start.shape(0) == graph.n(), "start must have one value per point");
  require(!field || field->shape(0) == graph.n(), "field must have one value per point");
  std::vector<int8_t> z = to_vector(start);
  ZStepResult result;
  {
    nb::gil_scoped_release release;
    require_signs(z, "start must hold -1 and +1 only");
    for (uint32_t n = 0; field && n < graph.n(); ++n) require(std::abs((*field)(n)) <= 1e280, "field must be finite");
    ZStepOptions options;
    options.seed = seed;
    options.shuffle_blocks = shuffle_blocks;
    options.max_sweeps = max_sweeps;
    options.field = field ? field->data() : nullptr;
    result = alternate(graph, graph.block().empty() ? grow_blocks(graph) : graph.block(), options, z.data());
  }
  return as_tuple(std::move(z), std::move(result));
}

PairLoss pair_loss_of(Vector<uint32_t> row_begin, Vector<uint32_t> columns, Vector<int8_t> signs) {
  nb::gil_scoped_release release;
  const uint32_t n = require_symmetric(row_begin, columns, signs);
  require_signs(signs, "signs must be -1 or +1");
  return PairLoss(graph_from_signs(row_begin.data(), columns.data(), signs.data(), n));
}

void require_bits(const PairLoss& loss, const Vector<int8_t>& z) {
  require(z.shape(0) == loss.n_points(), "z must have one value per point");
  require_signs(z, "z must hold -1 and +1 only");
}

void add_bit(PairLoss& loss, Vector<int8_t> z) {
  require_bits(loss, z);
  require(loss.n_bits() < PairLoss::kMostBits, "there are too many bits");
  nb::gil_scoped_release release;
  loss.add(z.data());
}

void remove_bit(PairLoss& loss, Vector<int8_t> z) {
  require_bits(loss, z);
  require(loss.n_bits() > 0, "there is no bit to remove");
  nb::gil_scoped_release release;
  loss.remove(z.data());
}

nb::tuple lower_bit(PairLoss& loss, Vector<int8_t> start, uint32_t n_bits, uint64_t seed, uint32_t max_sweeps) {
  require_bits(loss, start);
  require(n_bits > loss.n_bits() && n_bits <= PairLoss::kMostBits, "n_bits must count the codes' bits and one more");
  std::vector<int8_t> z = to_vector(start);
  ZStepResult result;
  {
    nb::gil_scoped_release release;
    ZStepOptions options;
    options.seed = seed;
    options.max_sweeps = max_sweeps;
    result = loss.lower(n_bits, options, z.data());
  }
  return as_tuple(std::move(z), std::move(result));
}

}  // namespace

void bind_zstep(nb::module_& m) {
  m.def("minimise", &minimise, "graph"_a, "start"_a, "seed"_a, "shuffle_blocks"_a, "max_sweeps"_a,
        "field"_a.none() = nb::none(), "z-step: (z, energy at the start and after each sweep, blocks, converged).");
  nb::class_<PairLoss>(m, "PairLoss", "The loss of KSH over signed pairs, for codes that change bit by bit.")
      .def_static("of_pairs", &pair_loss_of, "row_begin"_a, "columns"_a, "signs"_a)
      .def_prop_ro("n_bits", [](const PairLoss& loss) { return loss.n_bits(); })
      .def("add", &add_bit, "z"_a)
      .def("remove", &remove_bit, "z"_a)
      .def("value", [](const PairLoss& loss) { return loss.value(); })
      .def("lower", &lower_bit, "start"_a, "n_bits"_a, "seed"_a, "max_sweeps"_a, "One more bit, as minimise gives it.");
}

}  // namespace ilhash::bindings
