// ilhash._core: what Python sees of the C++ core.
//
//   random.hpp    seeds, permutations without memory
//   graph.*       signed graphs of one bit's training set, and their blocks
//   mincut.*      exact min-cut of one block
//   zstep.*       min-cuts in turn until nothing changes
//   pair_loss.*   the loss of KSH over pairs, lowered bit by bit
//   scan*         search among packed codes, by counting distances
//   cut.*         what precision at k needs, bit by bit, and for every bit of a pool
//   vector*       kernels over long arrays, one build per instruction set
//   digits.*      elastic deformations of small images
//   trees.*       margins of decision trees
//   boosting.*    gradient boosted trees on binned features
//
// Inputs are never written; the GIL is released around all work.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "boosting.hpp"
#include "cut.hpp"
#include "digits.hpp"
#include "graph.hpp"
#include "pair_loss.hpp"
#include "random.hpp"
#include "scan.hpp"
#include "trees.hpp"
#include "vector.hpp"
#include "zstep.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace ilhash;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using WritableVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using WritableMatrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> values) {
  auto* const kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

template <class T>
Rows<T> as_rows(const nb::ndarray<T, nb::ndim<2>, nb::device::cpu>& x) {
  require(x.shape(1) <= 1 || x.stride(1) == 1, "the rows of a matrix must be contiguous");
  require(x.shape(0) <= 1 || x.stride(0) >= 0, "the rows of a matrix must not be reversed");
  return {x.data(), static_cast<size_t>(x.stride(0)), x.shape(0), x.shape(1)};
}

// ---------------------------------------------------------------------------------------------- drawing points

auto permuted(uint64_t n, uint64_t seed, uint64_t start, uint64_t count) {
  require(start <= n && count <= n - start, "start + count must not exceed n");
  std::vector<int64_t> out(count);
  {
    nb::gil_scoped_release release;
    const Permutation permutation(n, seed);
    for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(permutation(start + i));
  }
  return to_numpy(std::move(out));
}

// Points in the order of a seeded permutation, each followed by those of its neighbours that have not come yet;
// points without neighbours are left out. Stops after `count` points.
auto neighbourhood_order(Vector<int64_t> row_begin, Vector<int32_t> columns, uint64_t seed, uint64_t count) {
  require(row_begin.shape(0) > 0, "row_begin must have one entry more than there are rows");
  const uint64_t n = row_begin.shape(0) - 1;
  require(row_begin(n) == static_cast<int64_t>(columns.shape(0)), "row_begin must end at the number of columns");
  std::vector<int64_t> out;
  {
    nb::gil_scoped_release release;
    for (size_t a = 0; a < columns.shape(0); ++a)
      require(columns(a) >= 0 && static_cast<uint64_t>(columns(a)) < n, "a column is out of range");
    const Permutation permutation(n, seed);
    std::vector<bool> taken(n, false);
    const auto take = [&](int64_t point) {
      if (taken[point] || out.size() >= count) return;
      taken[point] = true;
      out.push_back(point);
    };
    for (uint64_t i = 0; i < n && out.size() < count; ++i) {
      const uint64_t centre = permutation(i);
      if (row_begin(centre) == row_begin(centre + 1)) continue;
      take(static_cast<int64_t>(centre));
      for (int64_t a = row_begin(centre); a < row_begin(centre + 1); ++a) take(columns(a));
    }
  }
  return to_numpy(std::move(out));
}

// ---------------------------------------------------------------------------------------------- graphs

SignedGraph from_classes(const std::vector<uint32_t>& class_sizes, uint32_t similar, uint32_t dissimilar,
                         uint64_t seed) {
  nb::gil_scoped_release release;
  require(std::all_of(class_sizes.begin(), class_sizes.end(), [](uint32_t s) { return s > 0; }),
          "class sizes must be positive");
  return graph_from_classes(class_sizes, similar, dissimilar, seed);
}

SignedGraph from_label_sets(Vector<uint32_t> row_begin, Vector<uint32_t> labels, uint32_t n_labels, uint32_t similar,
                            uint32_t dissimilar, uint64_t seed) {
  nb::gil_scoped_release release;
  require(row_begin.shape(0) > 0, "row_begin must have one entry more than there are rows");
  const auto n = static_cast<uint32_t>(row_begin.shape(0) - 1);
  require(row_begin(n) == labels.shape(0), "row_begin must end at the number of labels");
  for (size_t i = 0; i < labels.shape(0); ++i) require(labels(i) < n_labels, "a label is out of range");
  return graph_from_label_sets(row_begin.data(), labels.data(), n, n_labels, similar, dissimilar, seed);
}

SignedGraph from_neighbours(nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> neighbours,
                            uint32_t dissimilar, uint64_t seed) {
  nb::gil_scoped_release release;
  const auto n = static_cast<uint32_t>(neighbours.shape(0)), k = static_cast<uint32_t>(neighbours.shape(1));
  require(k < n, "there must be fewer neighbours than points");
  std::vector<uint32_t> named_by(n, n);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t j = 0; j < k; ++j) {
      const uint32_t m = neighbours(i, j);
      require(m < n && m != i, "a neighbour must be another point of the set");
      require(named_by[m] != i, "a neighbour must be named once in its row");
      named_by[m] = i;
    }
  return graph_from_neighbours(neighbours.data(), n, k, dissimilar, seed);
}

// Returns the number of points. A flow over an arc without its opposite would be written outside the graph.
template <class T>
uint32_t require_symmetric(const Vector<uint32_t>& row_begin, const Vector<uint32_t>& columns,
                           const Vector<T>& couplings) {
  require(row_begin.shape(0) > 0, "row_begin must have one entry more than there are rows");
  const auto n = static_cast<uint32_t>(row_begin.shape(0) - 1);
  require(row_begin(n) == columns.shape(0) && columns.shape(0) == couplings.shape(0),
          "row_begin, columns and couplings must agree in length");
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin(i); a < row_begin(i + 1); ++a) {
      require(columns(a) < n && columns(a) != i, "a column must be another point of the graph");
      require(a == row_begin(i) || columns(a - 1) < columns(a), "columns must be sorted and distinct in each row");
    }
  // Columns are sorted, so row by row the entries that mirror row i are met in the order of their own rows.
  std::vector<uint32_t> next(row_begin.data(), row_begin.data() + n);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin(i); a < row_begin(i + 1); ++a) {
      const uint32_t mirror = next[columns(a)]++;
      require(mirror < row_begin(columns(a) + 1) && columns(mirror) == i && couplings(mirror) == couplings(a),
              "couplings must be symmetric");
    }
  return n;
}

SignedGraph from_couplings(Vector<uint32_t> row_begin, Vector<uint32_t> columns, Vector<double> couplings) {
  nb::gil_scoped_release release;
  for (size_t a = 0; a < couplings.shape(0); ++a)
    require(std::abs(couplings(a)) >= 1e-280 && std::abs(couplings(a)) <= 1e280,
            "couplings must lie between 1e-280 and 1e280 in size");
  const uint32_t n = require_symmetric(row_begin, columns, couplings);
  return graph_from_couplings(row_begin.data(), columns.data(), couplings.data(), n);
}

size_t n_attract(const SignedGraph& graph) {
  return graph.visit([](const auto& g) { return g.attract.count(); });
}

size_t n_repel(const SignedGraph& graph) {
  return graph.visit([](const auto& g) { return g.repel.count(); });
}

bool is_weighted(const SignedGraph& graph) {
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
    nb::gil_scoped_release release;
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
  require(z.shape(0) == graph.n(), "z must have one value per point");
  nb::gil_scoped_release release;
  double energy = 0;
  for_each_arc(graph, [&](uint32_t source, uint32_t target, double coupling) {
    energy -= coupling * z(source) * z(target);
  });
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
    nb::gil_scoped_release release;
    block = grow_blocks(graph);
  }
  return to_numpy(std::move(block));
}

// ---------------------------------------------------------------------------------------------- z-step

nb::tuple minimise(const SignedGraph& graph, Vector<int8_t> start, uint64_t seed, bool shuffle_blocks,
                   uint32_t max_sweeps, std::optional<Vector<double>> field) {
  require(start.shape(0) == graph.n(), "start must have one value per point");
  require(!field || field->shape(0) == graph.n(), "field must have one value per point");
  std::vector<int8_t> z(start.data(), start.data() + graph.n());
  ZStepResult result;
  {
    nb::gil_scoped_release release;
    for (const int8_t bit : z) require(bit == 1 || bit == -1, "start must hold -1 and +1 only");
    for (uint32_t n = 0; field && n < graph.n(); ++n) require(std::abs((*field)(n)) <= 1e280, "field must be finite");
    ZStepOptions options;
    options.seed = seed;
    options.shuffle_blocks = shuffle_blocks;
    options.max_sweeps = max_sweeps;
    options.field = field ? field->data() : nullptr;
    result = alternate(graph, graph.block().empty() ? grow_blocks(graph) : graph.block(), options, z.data());
  }
  return nb::make_tuple(to_numpy(std::move(z)), to_numpy(std::move(result.energies)), result.n_blocks,
                        result.converged);
}

// ---------------------------------------------------------------------------------------------- loss over pairs

PairLoss pair_loss_of(Vector<uint32_t> row_begin, Vector<uint32_t> columns, Vector<int8_t> signs) {
  nb::gil_scoped_release release;
  const uint32_t n = require_symmetric(row_begin, columns, signs);
  for (size_t a = 0; a < signs.shape(0); ++a) require(signs(a) == 1 || signs(a) == -1, "signs must be -1 or +1");
  return PairLoss(graph_from_signs(row_begin.data(), columns.data(), signs.data(), n));
}

void require_bits(const PairLoss& loss, const Vector<int8_t>& z) {
  require(z.shape(0) == loss.n_points(), "z must have one value per point");
  for (size_t n = 0; n < z.shape(0); ++n) require(z(n) == 1 || z(n) == -1, "z must hold -1 and +1 only");
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
  std::vector<int8_t> z(start.data(), start.data() + start.shape(0));
  ZStepResult result;
  {
    nb::gil_scoped_release release;
    ZStepOptions options;
    options.seed = seed;
    options.max_sweeps = max_sweeps;
    result = loss.lower(n_bits, options, z.data());
  }
  return nb::make_tuple(to_numpy(std::move(z)), to_numpy(std::move(result.energies)), result.n_blocks,
                        result.converged);
}

// ---------------------------------------------------------------------------------------------- vectors

template <class T, auto kernel>
auto gather(Matrix<T> x, Vector<int64_t> rows, std::optional<Vector<int32_t>> columns, Vector<float> origin,
            WritableMatrix<float> out) {
  const Rows<const T> from = as_rows<const T>(x);
  const Rows<float> to = as_rows<float>(out);
  require(to.n_rows == rows.shape(0), "out must have one row per drawn row");
  require(to.n_columns == (columns ? columns->shape(0) : from.n_columns), "out must have one column per feature");
  require(origin.shape(0) == to.n_columns, "origin must have one value per column of out");
  std::vector<double> sum(to.n_columns, 0.0), squares(to.n_columns, 0.0);
  std::vector<float> scratch(2 * to.n_columns);
  {
    nb::gil_scoped_release release;
    for (size_t i = 0; i < rows.shape(0); ++i)
      require(rows(i) >= 0 && static_cast<size_t>(rows(i)) < from.n_rows, "a drawn row is out of range");
    for (size_t j = 0; columns && j < columns->shape(0); ++j)
      require((*columns)(j) >= 0 && static_cast<size_t>((*columns)(j)) < from.n_columns, "a feature is out of range");
    (vector_kernels().*kernel)(from, rows.data(), columns ? columns->data() : nullptr, origin.data(), to,
                               scratch.data(), sum.data(), squares.data());
  }
  return nb::make_tuple(to_numpy(std::move(sum)), to_numpy(std::move(squares)));
}

void rescale(WritableMatrix<float> x, Vector<float> shift, Vector<float> factor) {
  const Rows<float> rows = as_rows<float>(x);
  require(shift.shape(0) == rows.n_columns && factor.shape(0) == rows.n_columns, "one shift and factor per column");
  nb::gil_scoped_release release;
  vector_kernels().rescale(rows, shift.data(), factor.data());
}

double hinge(Vector<float> f, Vector<float> y, WritableVector<float> slack, WritableVector<float> pull,
             WritableVector<uint8_t> active) {
  const size_t n = f.shape(0);
  require(y.shape(0) == n && slack.shape(0) == n && pull.shape(0) == n && active.shape(0) == n, "lengths differ");
  nb::gil_scoped_release release;
  return vector_kernels().hinge(f.data(), y.data(), n, slack.data(), pull.data(), active.data());
}

nb::tuple hinge_slope(Vector<float> slack, Vector<float> y, Vector<float> direction, float t) {
  const size_t n = slack.shape(0);
  require(y.shape(0) == n && direction.shape(0) == n, "lengths differ");
  double slope = 0, curvature = 0;
  {
    nb::gil_scoped_release release;
    vector_kernels().hinge_slope(slack.data(), y.data(), direction.data(), n, t, &slope, &curvature);
  }
  return nb::make_tuple(slope, curvature);
}

void gram_times(Matrix<float> x, Vector<float> v, Vector<float> weight, WritableVector<float> product,
                WritableVector<float> image) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(v.shape(0) == rows.n_columns && image.shape(0) == rows.n_columns, "v and image: one value per column of x");
  require(weight.shape(0) == rows.n_rows && product.shape(0) == rows.n_rows, "weight and product: one value per row");
  nb::gil_scoped_release release;
  vector_kernels().gram_times(rows, v.data(), weight.data(), product.data(), image.data());
}

void project_subsets(Matrix<float> x, nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> weights,
                     nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> columns,
                     Vector<float> bias, WritableMatrix<float> out) {
  const Rows<const float> from = as_rows<const float>(x);
  const Rows<float> to = as_rows<float>(out);
  const size_t n_bits = weights.shape(0), d = weights.shape(1);
  require(columns.shape(0) == n_bits && columns.shape(1) == d && bias.shape(0) == n_bits, "shapes differ");
  require(to.n_rows == from.n_rows && to.n_columns == n_bits, "out must have one row per row of x, one column per bit");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < n_bits * d; ++i)
    require(columns.data()[i] >= 0 && static_cast<size_t>(columns.data()[i]) < from.n_columns,
            "a feature is out of range");
  std::vector<float> tile(from.n_columns * kProjectTile, 0.0f);
  vector_kernels().project_subsets(from, weights.data(), columns.data(), bias.data(), n_bits, d, tile.data(), to);
}

// ---------------------------------------------------------------------------------------------- codes

using Codes = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tiles = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Weights = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

size_t tiles_for(size_t n_codes) { return (n_codes + kTile - 1) / kTile; }

nb::tuple group(Codes codes) {
  require(codes.shape(0) < UINT32_MAX, "there must be fewer than 2^32 - 1 codes");
  require(codes.shape(1) > 0, "codes must have at least one byte");
  Groups groups;
  {
    nb::gil_scoped_release release;
    groups = group_codes(codes.data(), codes.shape(0), codes.shape(1));
  }
  return nb::make_tuple(to_numpy(std::move(groups.representative)), to_numpy(std::move(groups.offsets)),
                        to_numpy(std::move(groups.rows)));
}

void to_tiles(Codes codes, std::optional<Vector<uint32_t>> rows,
              nb::ndarray<uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> tiles) {
  const size_t n = rows ? rows->shape(0) : codes.shape(0);
  require(tiles.shape(0) == tiles_for(n) && tiles.shape(1) == codes.shape(1) && tiles.shape(2) == kTile,
          "tiles must have the shape (ceil(n / 64), bytes per code, 64)");
  nb::gil_scoped_release release;
  for (size_t i = 0; rows && i < n; ++i) require((*rows)(i) < codes.shape(0), "a row is out of range");
  fill_tiles(codes.data(), rows ? rows->data() : nullptr, n, codes.shape(1), tiles.data());
}

void from_tiles(Tiles tiles, Vector<uint32_t> codes,
                nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
  require(tiles.shape(1) == out.shape(1) && tiles.shape(2) == kTile && out.shape(0) == codes.shape(0),
          "out must have one row per code and the width of the codes");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < codes.shape(0); ++i) require(codes(i) < tiles.shape(0) * kTile, "a code is out of range");
  read_tiles(tiles.data(), codes.data(), codes.shape(0), tiles.shape(1), out.data());
}

using List = std::optional<Vector<uint32_t>>;

CodeBase as_base(const Tiles& tiles, size_t n_codes, size_t n_bits, const List& offsets = {}, const List& rows = {},
                 bool ordered = true) {
  require(n_codes < UINT32_MAX, "there must be fewer than 2^32 - 1 codes");
  require(tiles.shape(0) == tiles_for(n_codes) && tiles.shape(2) == kTile, "tiles and number of codes disagree");
  require(n_bits > 0 && n_bits <= kMostBits, "the number of bits must lie between 1 and 65535");
  require(tiles.shape(1) == (n_bits + 7) / 8, "tiles and number of bits disagree");
  require(!offsets || rows, "offsets come with rows");
  require(!offsets || offsets->shape(0) == n_codes + 1, "offsets must have one entry more than there are codes");
  require(!rows || rows->shape(0) == (offsets ? (*offsets)(n_codes) : n_codes), "rows and offsets disagree");
  return {tiles.data(), static_cast<uint32_t>(n_codes), tiles.shape(1), n_bits, offsets ? offsets->data() : nullptr,
          rows ? rows->data() : nullptr, ordered || !rows, {}};
}

using RingTable = nb::ndarray<const uint16_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(Ring) == 3 * sizeof(uint16_t));

Rings as_rings(const CodeBase& base, const std::optional<Codes>& pivots, const std::optional<RingTable>& rings) {
  require(pivots.has_value() == rings.has_value(), "pivots and rings go together");
  if (!pivots) return {};
  require(pivots->shape(1) == base.m, "pivots must have the width of the codes");
  require(rings->shape(0) == (base.n_codes + kRingCodes - 1) / kRingCodes, "there must be one ring per 256 codes");
  const auto* const blocks = reinterpret_cast<const Ring*>(rings->data());
  for (size_t b = 0; b < rings->shape(0); ++b) require(blocks[b].pivot < pivots->shape(0), "a pivot is out of range");
  return {pivots->data(), pivots->shape(0), blocks};
}

nb::tuple together(Codes codes, Vector<uint32_t> rows, size_t n_bits) {
  require(codes.shape(1) == (n_bits + 7) / 8 && n_bits <= kMostBits, "codes and number of bits disagree");
  Neighbourhoods found;
  {
    nb::gil_scoped_release release;
    for (size_t i = 0; i < rows.shape(0); ++i) require(rows(i) < codes.shape(0), "a row is out of range");
    found = bring_neighbours_together(codes.data(), rows.data(), rows.shape(0), codes.shape(1), n_bits);
  }
  std::vector<uint16_t> rings;
  for (const Ring& ring : found.rings) rings.insert(rings.end(), {ring.pivot, ring.nearest, ring.farthest});
  return nb::make_tuple(to_numpy(std::move(found.order)), to_numpy(std::move(found.pivots)),
                        to_numpy(std::move(rings)));
}

// All answers one behind the other: (offsets, rows, distances). Each is given up once it was copied: a radius may find
// most of the base for every query.
template <class Answers>
nb::tuple as_lists(Answers answers) {
  std::vector<int64_t> begins(answers.size() + 1, 0), rows;
  std::decay_t<decltype(answers[0].distances)> distances;
  {
    nb::gil_scoped_release release;
    for (size_t q = 0; q < answers.size(); ++q)
      begins[q + 1] = begins[q] + static_cast<int64_t>(answers[q].rows.size());
    distances.reserve(static_cast<size_t>(begins.back()));
    rows.reserve(static_cast<size_t>(begins.back()));
    for (auto& one : answers) {
      distances.insert(distances.end(), one.distances.begin(), one.distances.end());
      rows.insert(rows.end(), one.rows.begin(), one.rows.end());
      one = {};
    }
  }
  return nb::make_tuple(to_numpy(std::move(begins)), to_numpy(std::move(rows)), to_numpy(std::move(distances)));
}

nb::tuple nearest_items(Tiles tiles, size_t n_codes, size_t n_bits, List offsets, List rows, bool ordered,
                        Codes queries, size_t k, int32_t max_distance, size_t n_threads, std::optional<Codes> pivots,
                        std::optional<RingTable> rings) {
  CodeBase base = as_base(tiles, n_codes, n_bits, offsets, rows, ordered);
  base.rings = as_rings(base, pivots, rings);
  require(queries.shape(1) == base.m, "queries must have the width of the codes");
  require(max_distance >= 0, "max_distance must not be negative");
  std::vector<Matches> answers;
  {
    nb::gil_scoped_release release;
    answers = nearest(base, queries.data(), queries.shape(0), k, max_distance, n_threads);
  }
  return as_lists(std::move(answers));
}

nb::tuple nearest_weighted_items(Tiles tiles, size_t n_codes, size_t n_bits, List offsets, List rows, bool ordered,
                                 Codes queries, Weights weights, size_t k, size_t n_threads) {
  const CodeBase base = as_base(tiles, n_codes, n_bits, offsets, rows, ordered);
  require(queries.shape(1) == base.m, "queries must have the width of the codes");
  require(weights.shape(0) == queries.shape(0) && weights.shape(1) == n_bits, "one weight per bit of each query");
  std::vector<WeightedMatches> answers;
  {
    nb::gil_scoped_release release;
    for (size_t i = 0; i < weights.size(); ++i)
      require(weights.data()[i] >= 0 && weights.data()[i] <= 1e30f, "weights must lie between 0 and 1e30");
    answers = nearest_weighted(base, queries.data(), weights.data(), queries.shape(0), k, n_threads);
  }
  return as_lists(std::move(answers));
}

void histograms(Tiles tiles, size_t n_codes, size_t n_bits, Codes queries, Vector<int64_t> begin, Vector<int64_t> end,
                size_t n_threads, nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> counts,
                nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> hits) {
  const CodeBase base = as_base(tiles, n_codes, n_bits);
  const size_t n = queries.shape(0);
  require(queries.shape(1) == base.m, "queries must have the width of the codes");
  require(begin.shape(0) == n && end.shape(0) == n, "begin and end must have one entry per query");
  require(counts.shape(0) == n && counts.shape(1) == n_bits + 1 && hits.shape(0) == n && hits.shape(1) == n_bits + 1,
          "counts and hits must have the shape (queries, bits + 1)");
  nb::gil_scoped_release release;
  distance_histograms(base, queries.data(), n, begin.data(), end.data(), n_threads, counts.data(), hits.data());
}

// ---------------------------------------------------------------------------------------------- bit by bit

using Cuts = nb::ndarray<int32_t, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

CutCounts make_cut_counts(Table<uint8_t> relevant, size_t k) {
  nb::gil_scoped_release release;
  return CutCounts(relevant.data(), relevant.shape(0), relevant.shape(1), k);
}

void cut_add(CutCounts& counts, Vector<uint8_t> base_bits, Vector<uint8_t> query_bits, size_t n_threads) {
  require(base_bits.shape(0) == counts.n_base() && query_bits.shape(0) == counts.n_queries(),
          "there must be one bit for each base point and each query");
  nb::gil_scoped_release release;
  counts.add(base_bits.data(), query_bits.data(), n_threads);
}

void cut_now(const CutCounts& counts, Cuts out) {
  require(out.ndim() == 2 && out.shape(0) == counts.n_queries() && out.shape(1) == 4, "out must be (queries, 4)");
  nb::gil_scoped_release release;
  const std::vector<Cut>& cuts = counts.cuts();
  std::copy(cuts.begin(), cuts.end(), reinterpret_cast<Cut*>(out.data()));
}

void cut_with_each(const CutCounts& counts, Table<uint64_t> pool, Table<uint64_t> queries, size_t n_bits,
                   size_t n_threads, Cuts out) {
  const WordCodes base{pool.data(), pool.shape(0), n_bits}, own{queries.data(), queries.shape(0), n_bits};
  require(n_bits > 0 && pool.shape(1) == base.n_words() && queries.shape(1) == base.n_words(),
          "codes must have as many words as the bits fill");
  require(base.n == counts.n_base() && own.n == counts.n_queries(),
          "there must be one code for each base point and each query");
  require(out.ndim() == 3 && out.shape(0) == own.n && out.shape(1) == n_bits && out.shape(2) == 4,
          "out must be (queries, bits, 4)");
  nb::gil_scoped_release release;
  counts.with_each(base, own, n_threads, reinterpret_cast<Cut*>(out.data()));
}

// ---------------------------------------------------------------------------------------------- infinite digits

using Limits = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t>;

Deformation deformation_of(const Limits& limits) {
  const auto made = std::apply([](auto... values) { return Deformation{values...}; }, limits);
  if (const char* const fault = fault_of(made)) throw std::invalid_argument(fault);
  return made;
}

auto digit_sources(uint64_t n, uint64_t seed, uint64_t start, uint64_t count) {
  require(n > 0, "there must be at least one source");
  std::vector<int64_t> out(count);
  {
    nb::gil_scoped_release release;
    for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(source_of(n, seed, start + i));
  }
  return to_numpy(std::move(out));
}

void digit_images(nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> sources,
                  const Limits& limits, uint64_t seed, uint64_t start,
                  nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
  const Deformation deformation = deformation_of(limits);
  const auto pixels = static_cast<size_t>(deformation.side) * static_cast<size_t>(deformation.side);
  require(sources.shape(0) > 0, "there must be at least one source");
  require(sources.shape(1) == pixels && out.shape(1) == pixels, "rows must be images of side x side pixels");
  nb::gil_scoped_release release;
  Deformer deformer(deformation);
  for (size_t i = 0; i < out.shape(0); ++i) {
    const uint64_t source = source_of(sources.shape(0), seed, start + i);
    deformer.image(sources.data() + source * pixels, seed, start + i, out.data() + i * pixels);
  }
}

void digit_fields(const Limits& limits, uint64_t seed, uint64_t start,
                  nb::ndarray<int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> out) {
  const Deformation deformation = deformation_of(limits);
  const auto pixels = static_cast<size_t>(deformation.side) * static_cast<size_t>(deformation.side);
  require(out.shape(1) == 2 && out.shape(2) == pixels, "out must hold two values per pixel of each image");
  nb::gil_scoped_release release;
  Deformer deformer(deformation);
  for (size_t i = 0; i < out.shape(0); ++i) {
    int32_t* const field = out.data() + 2 * i * pixels;
    deformer.field(seed, start + i, field, field + pixels);
  }
}

// ---------------------------------------------------------------------------------------------- trees

template <class T>
std::vector<T> to_vector(const Vector<T>& values) {
  return std::vector<T>(values.data(), values.data() + values.shape(0));
}

void margins_of_trees(Vector<int32_t> feature, Vector<double> threshold, Vector<int32_t> left, Vector<int32_t> right,
                      Vector<double> value, Vector<int32_t> roots, double bias, Matrix<float> x,
                      WritableVector<float> out) {
  const Rows<const float> rows = as_rows<const float>(x);
  require(out.shape(0) == rows.n_rows, "out must have one value per row");
  nb::gil_scoped_release release;
  const TreeTable table{to_vector(feature), to_vector(left),  to_vector(right), to_vector(roots),
                        to_vector(threshold), to_vector(value), bias};
  require(rows.n_columns > 0, "rows must have features");
  if (const char* const fault = fault_of(table, rows.n_columns)) throw std::invalid_argument(fault);
  tree_margins(table, rows, out.data());
}

nb::tuple boosted_trees(nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> bins,
                        Vector<uint32_t> edge_begin, Vector<double> edges, Vector<int8_t> z, uint32_t n_trees,
                        uint32_t depth, uint32_t n_tried, double rate, double penalty, uint64_t seed) {
  const size_t n_features = bins.shape(0), n_rows = bins.shape(1);
  require(n_rows > 0 && n_rows < (uint64_t{1} << 31), "there must be rows, fewer than 2^31");
  require(edge_begin.shape(0) == n_features + 1 && edge_begin(0) == 0 && edge_begin(n_features) == edges.shape(0),
          "edge_begin must lead through all edges, feature by feature");
  require(z.shape(0) == n_rows, "z must have one value per row");
  require(penalty > 0, "the penalty must be positive");
  std::vector<double> margins(n_rows);
  TreeTable table;
  {
    nb::gil_scoped_release release;
    for (size_t i = 0; i < n_rows; ++i) require(z(i) == 1 || z(i) == -1, "z must hold -1 and +1 only");
    for (size_t j = 0; j < n_features; ++j) {
      require(edge_begin(j) <= edge_begin(j + 1) && edge_begin(j + 1) - edge_begin(j) <= 255,
              "a feature must have at most 255 edges");
      const uint8_t* const own = bins.data() + j * n_rows;
      require(*std::max_element(own, own + n_rows) <= edge_begin(j + 1) - edge_begin(j), "a bin is out of range");
    }
    const BinnedFeatures x{bins.data(), static_cast<uint32_t>(n_rows), static_cast<uint32_t>(n_features),
                           edge_begin.data(), edges.data()};
    table = boost(x, z.data(), {n_trees, depth, n_tried, rate, penalty, seed}, margins.data());
  }
  return nb::make_tuple(to_numpy(std::move(table.feature)), to_numpy(std::move(table.threshold)),
                        to_numpy(std::move(table.left)), to_numpy(std::move(table.right)),
                        to_numpy(std::move(table.value)), to_numpy(std::move(table.roots)), table.bias,
                        to_numpy(std::move(margins)));
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of ilhash: signed graphs, alternating min-cut, vector kernels.";
  m.def("simd", [] { return std::string(vector_level()); }, "The instruction set in use.");
  m.def("permuted", &permuted, "n"_a, "seed"_a, "start"_a, "count"_a,
        "Entries start .. start + count of a seeded permutation of 0 .. n-1, in constant memory.");
  m.def("neighbourhood_order", &neighbourhood_order, "row_begin"_a, "columns"_a, "seed"_a, "count"_a,
        "Points in a seeded order, each followed by its neighbours that have not come yet.");

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
      .def("degrees", &graph_degrees, "Number of arcs at each point.")
      .def("energy", &graph_energy, "z"_a, "E(z) = -sum over ordered pairs of w z z.")
      .def("mean_pull", &mean_pull, "Mean over points of the sum of |w| around them.")
      .def("grown_blocks", &grown_blocks, "Block of each point, by breadth-first growth.");

  m.def("minimise", &minimise, "graph"_a, "start"_a, "seed"_a, "shuffle_blocks"_a, "max_sweeps"_a,
        "field"_a.none() = nb::none(), "z-step: (z, energy at the start and after each sweep, blocks, converged).");

  nb::class_<PairLoss>(m, "PairLoss", "The loss of KSH over signed pairs, for codes that change bit by bit.")
      .def_static("of_pairs", &pair_loss_of, "row_begin"_a, "columns"_a, "signs"_a)
      .def_prop_ro("n_bits", [](const PairLoss& loss) { return loss.n_bits(); })
      .def("add", &add_bit, "z"_a)
      .def("remove", &remove_bit, "z"_a)
      .def("value", [](const PairLoss& loss) { return loss.value(); })
      .def("lower", &lower_bit, "start"_a, "n_bits"_a, "seed"_a, "max_sweeps"_a, "One more bit, as minimise gives it.");

  m.def("gather_f32", &gather<float, &VectorKernels::gather_f32>, "x"_a.noconvert(), "rows"_a, "columns"_a.none(),
        "origin"_a, "out"_a.noconvert());
  m.def("gather_f64", &gather<double, &VectorKernels::gather_f64>, "x"_a.noconvert(), "rows"_a, "columns"_a.none(),
        "origin"_a, "out"_a.noconvert());
  m.def("gather_u8", &gather<uint8_t, &VectorKernels::gather_u8>, "x"_a.noconvert(), "rows"_a, "columns"_a.none(),
        "origin"_a, "out"_a.noconvert());
  m.def("rescale", &rescale, "x"_a.noconvert(), "shift"_a, "factor"_a);
  m.def("hinge", &hinge, "f"_a, "y"_a, "slack"_a.noconvert(), "pull"_a.noconvert(), "active"_a.noconvert());
  m.def("hinge_slope", &hinge_slope, "slack"_a, "y"_a, "direction"_a, "t"_a);
  m.def("gram_times", &gram_times, "x"_a.noconvert(), "v"_a, "weight"_a, "product"_a.noconvert(),
        "image"_a.noconvert());
  m.def("project_subsets", &project_subsets, "x"_a.noconvert(), "weights"_a, "columns"_a, "bias"_a,
        "out"_a.noconvert());

  m.def("group_codes", &group, "codes"_a,
        "Equal codes together: (first row of each distinct code, offsets, rows); no lists if all are distinct.");
  m.def("to_tiles", &to_tiles, "codes"_a, "rows"_a.none(), "tiles"_a.noconvert());
  m.def("from_tiles", &from_tiles, "tiles"_a, "codes"_a, "out"_a.noconvert());
  m.def("nearest", &nearest_items, "tiles"_a, "n_codes"_a, "n_bits"_a, "offsets"_a.none(), "rows"_a.none(),
        "ordered"_a, "queries"_a, "k"_a, "max_distance"_a, "n_threads"_a, "pivots"_a.none() = nb::none(),
        "rings"_a.none() = nb::none(),
        "The k nearest items of each query within max_distance: (offsets, rows, distances).");
  m.def("bring_neighbours_together", &together, "codes"_a, "rows"_a, "n_bits"_a,
        "An order of distinct codes, its pivots and rings (flat); empty where it would not pay.");
  m.def("nearest_weighted", &nearest_weighted_items, "tiles"_a, "n_codes"_a, "n_bits"_a, "offsets"_a.none(),
        "rows"_a.none(), "ordered"_a, "queries"_a, "weights"_a, "k"_a, "n_threads"_a,
        "The k nearest items where bit j counts weights[q, j]: (offsets, rows, distances).");
  m.def("distance_histograms", &histograms, "tiles"_a, "n_codes"_a, "n_bits"_a, "queries"_a, "begin"_a, "end"_a,
        "n_threads"_a, "counts"_a.noconvert(), "hits"_a.noconvert());
  nb::class_<CutCounts>(m, "CutCounts", "What precision at k needs to know of each query, bit by bit.")
      .def("add", &cut_add, "base_bits"_a, "query_bits"_a, "n_threads"_a, "One bit more.")
      .def("now", &cut_now, "out"_a.noconvert(),
           "For each query: points before the edge, relevant ones among them, points at the edge, relevant ones.")
      .def("with_each", &cut_with_each, "pool"_a, "queries"_a, "n_bits"_a, "n_threads"_a, "out"_a.noconvert(),
           "The same for each query and bit of a pool, if that bit were added.");
  m.def("cut_counts", &make_cut_counts, "relevant"_a, "k"_a, "Counts of no bits yet: all points are at distance 0.");
  m.def("digit_sources", &digit_sources, "n"_a, "seed"_a, "start"_a, "count"_a,
        "Which of n sources the images start .. start + count are made from.");
  m.def("digit_images", &digit_images, "sources"_a.noconvert(), "limits"_a, "seed"_a, "start"_a,
        "out"_a.noconvert(), "Images start, start + 1, ... into the rows of out.");
  m.def("digit_fields", &digit_fields, "limits"_a, "seed"_a, "start"_a, "out"_a.noconvert(),
        "Displacements of the pixels of images start, start + 1, ..., rightwards and downwards, in 1/1024 pixel.");
  m.def("tree_margins", &margins_of_trees, "feature"_a, "threshold"_a, "left"_a, "right"_a, "value"_a, "roots"_a,
        "bias"_a, "x"_a.noconvert(), "out"_a.noconvert());
  m.def("boosted_trees", &boosted_trees, "bins"_a, "edge_begin"_a, "edges"_a, "z"_a, "n_trees"_a, "depth"_a,
        "n_tried"_a, "rate"_a, "penalty"_a, "seed"_a,
        "(feature, threshold, left, right, value, roots, bias, margins of the rows).");
}
