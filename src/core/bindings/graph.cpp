// Signed graphs: made of classes, label sets, neighbours or couplings, and what can be asked of them.
#include "../graph.hpp"

#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

SignedGraph from_classes(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar,
                         uint64_t seed) {
  const GilReleased released;
  check_classes(class_sizes);
  return graph_from_classes(class_sizes, similar, dissimilar, seed);
}

SignedGraph from_label_sets(Vector<uint32_t> row_begin, Vector<uint32_t> labels, uint32_t n_labels, uint32_t similar,
                            uint32_t dissimilar, uint64_t seed) {
  const GilReleased released;
  const uint32_t n = check_label_sets(span(row_begin), span(labels), n_labels);
  return graph_from_label_sets(row_begin.data(), labels.data(), n, n_labels, similar, dissimilar, seed);
}

SignedGraph from_neighbours(Table<uint32_t> neighbours, uint32_t dissimilar, uint64_t seed) {
  const GilReleased released;
  check_neighbours(grid(neighbours));
  const auto n = static_cast<uint32_t>(neighbours.shape(0)), k = static_cast<uint32_t>(neighbours.shape(1));
  return graph_from_neighbours(neighbours.data(), n, k, dissimilar, seed);
}

SignedGraph from_couplings(Vector<uint32_t> row_begin, Vector<uint32_t> columns, Vector<double> couplings) {
  const GilReleased released;
  const uint32_t n = check_couplings(span(row_begin), span(columns), span(couplings));
  return graph_from_couplings(row_begin.data(), columns.data(), couplings.data(), n);
}

size_t n_attract(const SignedGraph& graph) {
  return graph.visit([](const auto& g) { return g.attract.count(); });
}

size_t n_repel(const SignedGraph& graph) {
  return graph.visit([](const auto& g) { return g.repel.count(); });
}

// Whether a point has an arc at all.
auto connected(const SignedGraph& signed_graph) {
  std::vector<uint8_t> out(signed_graph.n(), 1);
  {
    const GilReleased released;
    // Of several points with labels, each has somebody to choose.
    if (!signed_graph.labels() || signed_graph.n() < 2)
      signed_graph.visit([&](const auto& graph) {
        for (uint32_t n = 0; n < graph.n; ++n)
          out[n] = graph.attract.end[n] > graph.attract.begin[n] || graph.repel.end[n] > graph.repel.begin[n];
      });
  }
  return to_numpy(std::move(out));
}

bool is_weighted(const SignedGraph& graph) {
  if (graph.labels()) return false;
  return graph.visit([](const auto& g) { return g.weighted; });
}

// visitor(source, target, coupling) for all arcs, the attracting ones first.
template <class Visitor>
void for_each_arc(const SignedGraph& signed_graph, Visitor visitor) {
  signed_graph.visit([&](const auto& graph) {
    for (const bool attracts : {true, false}) {
      const auto& arcs = attracts ? graph.attract : graph.repel;
      for (uint32_t n = 0; n < graph.n; ++n)
        for (uint32_t a = arcs.begin[n]; a < arcs.end[n]; ++a)
          visitor(n, uint32_t{arcs.target[a]}, (attracts ? 1.0 : -1.0) * (graph.weighted ? arcs.weight[a] : 1.0));
    }
  });
}

auto graph_triplets(const SignedGraph& graph) {
  std::vector<uint32_t> sources, targets;
  std::vector<double> couplings;
  {
    const GilReleased released;
    for_each_arc(graph, [&](uint32_t source, uint32_t target, double coupling) {
      sources.push_back(source);
      targets.push_back(target);
      couplings.push_back(coupling);
    });
  }
  return nb::make_tuple(to_numpy(std::move(sources)), to_numpy(std::move(targets)), to_numpy(std::move(couplings)));
}

auto graph_degrees(const SignedGraph& signed_graph) {
  std::vector<uint32_t> degree(signed_graph.n());
  signed_graph.visit([&](const auto& graph) {
    for (uint32_t n = 0; n < graph.n; ++n)
      degree[n] = graph.attract.end[n] - graph.attract.begin[n] + graph.repel.end[n] - graph.repel.begin[n];
  });
  return to_numpy(std::move(degree));
}

double graph_energy(const SignedGraph& graph, Vector<int8_t> z) {
  check_bits(span(z), graph.n(), "z must have one value per point", "z must hold -1 and +1 only");
  const GilReleased released;
  double energy = 0;
  for_each_arc(graph,
               [&](uint32_t source, uint32_t target, double coupling) { energy -= coupling * z(source) * z(target); });
  return energy;
}

double mean_pull(const SignedGraph& graph) {
  double total = 0;
  for_each_arc(graph, [&](uint32_t, uint32_t, double coupling) { total += std::abs(coupling); });
  return graph.n() ? total / graph.n() : 0.0;
}

auto grown_blocks(const SignedGraph& graph) {
  std::vector<uint32_t> block;
  {
    const GilReleased released;
    block = grow_blocks(graph);
  }
  return to_numpy(std::move(block));
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<SignedGraph>(m, "SignedGraph", "Couplings between the points of one training set, by sign.")
      .def_static("from_classes", &from_classes, "class_sizes"_a, "similar"_a, "dissimilar"_a, "seed"_a)
      .def_static("from_label_sets", &from_label_sets, "row_begin"_a, "labels"_a, "n_labels"_a, "similar"_a,
                  "dissimilar"_a, "seed"_a)
      .def_static("from_neighbours", &from_neighbours, "neighbours"_a, "dissimilar"_a, "seed"_a)
      .def_static("from_couplings", &from_couplings, "row_begin"_a, "columns"_a, "couplings"_a)
      .def_prop_ro("n_points", [](const SignedGraph& g) { return g.n(); })
      .def_prop_ro("n_attract", &n_attract)
      .def_prop_ro("n_repel", &n_repel)
      .def_prop_ro("weighted", &is_weighted)
      .def("triplets", &graph_triplets, "All arcs: source, target, coupling.")
      .def("connected", &connected, "Whether a point has an arc, as 0 or 1.")
      .def("degrees", &graph_degrees, "Number of arcs at each point.")
      .def("energy", &graph_energy, "z"_a, "E(z) = -sum over ordered pairs of w z z.")
      .def("mean_pull", &mean_pull, "Mean over points of the sum of |w| around them.")
      .def("grown_blocks", &grown_blocks, "Block of each point, by breadth-first growth.");
}

}  // namespace ilhash::bindings
