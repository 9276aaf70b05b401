// The z-step of one bit, and the loss of KSH over pairs, which takes z-steps of its own.
#include "../zstep.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../graph.hpp"
#include "../pair_loss.hpp"
#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

nb::tuple as_tuple(std::vector<int8_t> z, ZStepResult result) {
  return nb::make_tuple(to_numpy(std::move(z)), to_numpy(std::move(result.energies)), result.n_blocks,
                        result.converged);
}

void check_start(const Vector<int8_t>& start, size_t n_points) {
  check_bits(span(start), n_points, "start must have one value per point", "start must hold -1 and +1 only");
}

nb::tuple minimise(const SignedGraph& graph, Vector<int8_t> start, uint64_t seed, bool shuffle_blocks,
                   uint32_t max_sweeps, std::optional<Vector<double>> field) {
  std::vector<int8_t> z = to_vector(start);
  ZStepResult result;
  {
    const GilReleased released;
    check_start(start, graph.n());
    if (field) check_field(span(*field), graph.n());
    ZStepOptions options;
    options.seed = seed;
    options.shuffle_blocks = shuffle_blocks;
    options.max_sweeps = max_sweeps;
    options.field = field ? field->data() : nullptr;
    result = alternate(graph, graph.block().empty() ? grow_blocks(graph) : graph.block(), options, z.data());
  }
  return as_tuple(std::move(z), std::move(result));
}

using GuardedLoss = Guarded<PairLoss>;

std::unique_ptr<GuardedLoss> pair_loss_of(Vector<uint32_t> row_begin, Vector<uint32_t> columns, Vector<int8_t> signs) {
  const GilReleased released;
  const uint32_t n = check_signed_pairs(span(row_begin), span(columns), span(signs));
  return std::make_unique<GuardedLoss>(PairLoss(graph_from_signs(row_begin.data(), columns.data(), signs.data(), n)));
}

void check_bit(const PairLoss& loss, const Vector<int8_t>& z) {
  check_bits(span(z), loss.n_points(), "z must have one value per point", "z must hold -1 and +1 only");
}

void add_bit(GuardedLoss& guarded, Vector<int8_t> z) {
  guarded.use([&](PairLoss& loss) {
    check_bit(loss, z);
    loss.add(z.data());
  });
}

void remove_bit(GuardedLoss& guarded, Vector<int8_t> z) {
  guarded.use([&](PairLoss& loss) {
    check_bit(loss, z);
    loss.remove(z.data());
  });
}

nb::tuple lower_bit(GuardedLoss& guarded, Vector<int8_t> start, uint32_t n_bits, uint64_t seed, uint32_t max_sweeps) {
  std::vector<int8_t> z = to_vector(start);
  ZStepResult result = guarded.use([&](PairLoss& loss) {
    check_bit(loss, start);
    ZStepOptions options;
    options.seed = seed;
    options.max_sweeps = max_sweeps;
    return loss.lower(n_bits, options, z.data());
  });
  return as_tuple(std::move(z), std::move(result));
}

}  // namespace

void bind_zstep(nb::module_& m) {
  m.def("minimise", &minimise, "graph"_a, "start"_a, "seed"_a, "shuffle_blocks"_a, "max_sweeps"_a,
        "field"_a.none() = nb::none(), "z-step: (z, energy at the start and after each sweep, blocks, converged).");
  nb::class_<GuardedLoss>(m, "PairLoss", "The loss of KSH over signed pairs, for codes that change bit by bit.")
      .def_static("of_pairs", &pair_loss_of, "row_begin"_a, "columns"_a, "signs"_a)
      .def_prop_ro("n_bits", [](GuardedLoss& loss) { return loss.use([](PairLoss& l) { return l.n_bits(); }); })
      .def("add", &add_bit, "z"_a)
      .def("remove", &remove_bit, "z"_a)
      .def("value", [](GuardedLoss& loss) { return loss.use([](PairLoss& l) { return l.value(); }); })
      .def("lower", &lower_bit, "start"_a, "n_bits"_a, "seed"_a, "max_sweeps"_a, "One more bit, as minimise gives it.");
}

}  // namespace ilhash::bindings
