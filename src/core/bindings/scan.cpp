// Packed codes: grouped, put into tiles, searched, counted by distance.
#include "../scan.hpp"

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

using Codes = Table<uint8_t>;
using Tiles = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using List = std::optional<Vector<uint32_t>>;
using RangeTable = Table<uint16_t>;

TileArray tile_array(const Tiles& tiles) { return {tiles.data(), tiles.shape(0), tiles.shape(1), tiles.shape(2)}; }

nb::tuple group(Codes codes) {
  check_codes(grid(codes));
  Groups groups;
  {
    const GilReleased released;
    groups = group_codes(codes.data(), codes.shape(0), codes.shape(1));
  }
  return nb::make_tuple(to_numpy(std::move(groups.representative)), to_numpy(std::move(groups.offsets)),
                        to_numpy(std::move(groups.rows)));
}

void to_tiles(Codes codes, List rows, nb::ndarray<uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> tiles) {
  const GilReleased released;
  check_to_tiles(grid(codes), maybe_span(rows), {tiles.data(), tiles.shape(0), tiles.shape(1), tiles.shape(2)});
  const size_t n = rows ? rows->shape(0) : codes.shape(0);
  fill_tiles(codes.data(), rows ? rows->data() : nullptr, n, codes.shape(1), tiles.data());
}

void from_tiles(Tiles tiles, Vector<uint32_t> codes, WritableTable<uint8_t> out) {
  const GilReleased released;
  check_from_tiles(tile_array(tiles), span(codes), out.shape(0), out.shape(1));
  read_tiles(tiles.data(), codes.data(), codes.shape(0), tiles.shape(1), out.data());
}

void check_arrays(Tiles tiles, size_t n_codes, size_t n_bits, List offsets, List rows, std::optional<Codes> pivots,
                  std::optional<RangeTable> ranges) {
  const GilReleased released;
  check_segment({tile_array(tiles), n_codes, n_bits, maybe_span(offsets), maybe_span(rows), maybe_grid(pivots),
                 maybe_grid(ranges)});
}

nb::tuple codes_by_pivots(Codes codes, Vector<uint32_t> rows, size_t n_bits) {
  PivotOrder found;
  {
    const GilReleased released;
    check_codes_to_order(grid(codes), span(rows), n_bits);
    found = order_by_pivots(codes.data(), rows.data(), rows.shape(0), codes.shape(1), n_bits);
  }
  std::vector<uint16_t> ranges;
  for (const PivotRange& range : found.ranges)
    ranges.insert(ranges.end(), {range.pivot, range.nearest, range.farthest});
  return nb::make_tuple(to_numpy(std::move(found.order)), to_numpy(std::move(found.pivots)),
                        to_numpy(std::move(ranges)));
}

// All answers one behind the other: (offsets, rows, distances). Each is given up once it was copied: a radius may find
// most of the base for every query.
template <class Answers>
nb::tuple as_lists(Answers answers) {
  std::vector<int64_t> begins(answers.size() + 1, 0), rows;
  std::decay_t<decltype(answers[0].distances)> distances;
  {
    const GilReleased released;
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
                        std::optional<RangeTable> ranges) {
  const CodeBase base = base_of({tile_array(tiles), n_codes, n_bits, maybe_span(offsets), maybe_span(rows),
                                 maybe_grid(pivots), maybe_grid(ranges)},
                                ordered);
  check_queries(base, grid(queries));
  require(max_distance >= 0, "max_distance must not be negative");
  std::vector<Matches> answers;
  {
    const GilReleased released;
    answers = nearest(base, queries.data(), queries.shape(0), k, max_distance, n_threads);
  }
  return as_lists(std::move(answers));
}

nb::tuple nearest_weighted_items(Tiles tiles, size_t n_codes, size_t n_bits, List offsets, List rows, bool ordered,
                                 Codes queries, Table<float> weights, size_t k, size_t n_threads) {
  const CodeBase base =
      base_of({tile_array(tiles), n_codes, n_bits, maybe_span(offsets), maybe_span(rows), {}, {}}, ordered);
  std::vector<WeightedMatches> answers;
  {
    const GilReleased released;
    check_weights(base, grid(queries), grid(weights));
    answers = nearest_weighted(base, queries.data(), weights.data(), queries.shape(0), k, n_threads);
  }
  return as_lists(std::move(answers));
}

void histograms(Tiles tiles, size_t n_codes, size_t n_bits, Codes queries, Vector<int64_t> begin, Vector<int64_t> end,
                size_t n_threads, WritableTable<int64_t> counts, WritableTable<int64_t> hits) {
  const CodeBase base = base_of({tile_array(tiles), n_codes, n_bits, {}, {}, {}, {}}, true);
  const size_t n = queries.shape(0);
  check_queries(base, grid(queries));
  require(begin.shape(0) == n && end.shape(0) == n, "begin and end must have one entry per query");
  require(counts.shape(0) == n && counts.shape(1) == n_bits + 1 && hits.shape(0) == n && hits.shape(1) == n_bits + 1,
          "counts and hits must have the shape (queries, bits + 1)");
  const GilReleased released;
  distance_histograms(base, queries.data(), n, begin.data(), end.data(), n_threads, counts.data(), hits.data());
}

}  // namespace

void bind_scan(nb::module_& m) {
  m.def("check_segment", &check_arrays, "tiles"_a.noconvert(), "n_codes"_a, "n_bits"_a, "offsets"_a.noconvert().none(),
        "rows"_a.noconvert().none(), "pivots"_a.noconvert().none(), "ranges"_a.noconvert().none(),
        "Raise ValueError unless the arrays are what an index writes: see check_segment in checks.hpp.");
  m.def("group_codes", &group, "codes"_a,
        "Equal codes together: (first row of each distinct code, offsets, rows); no lists if all are distinct.");
  m.def("to_tiles", &to_tiles, "codes"_a, "rows"_a.none(), "tiles"_a.noconvert());
  m.def("from_tiles", &from_tiles, "tiles"_a, "codes"_a, "out"_a.noconvert());
  m.def("nearest", &nearest_items, "tiles"_a, "n_codes"_a, "n_bits"_a, "offsets"_a.none(), "rows"_a.none(), "ordered"_a,
        "queries"_a, "k"_a, "max_distance"_a, "n_threads"_a, "pivots"_a.none() = nb::none(),
        "ranges"_a.none() = nb::none(),
        "The k nearest items of each query within max_distance: (offsets, rows, distances).");
  m.def("order_by_pivots", &codes_by_pivots, "codes"_a, "rows"_a, "n_bits"_a,
        "An order of distinct codes, its pivots and ranges (flat); empty where it would not pay.");
  m.def("nearest_weighted", &nearest_weighted_items, "tiles"_a, "n_codes"_a, "n_bits"_a, "offsets"_a.none(),
        "rows"_a.none(), "ordered"_a, "queries"_a, "weights"_a, "k"_a, "n_threads"_a,
        "The k nearest items where bit j counts weights[q, j]: (offsets, rows, distances).");
  m.def("distance_histograms", &histograms, "tiles"_a, "n_codes"_a, "n_bits"_a, "queries"_a, "begin"_a, "end"_a,
        "n_threads"_a, "counts"_a.noconvert(), "hits"_a.noconvert());
}

}  // namespace ilhash::bindings
