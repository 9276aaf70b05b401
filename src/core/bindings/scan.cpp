// Packed codes: grouped, put into tiles, searched, counted by distance.
#include "../scan.hpp"

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "checks.hpp"
#include "module.hpp"

namespace ilhash::bindings {

namespace {

using Codes = Table<uint8_t>;
using Tiles = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using List = std::optional<Vector<uint32_t>>;

size_t tiles_for(size_t n_codes) { return (n_codes + kTile - 1) / kTile; }

void require_few_codes(size_t n_codes) { require(n_codes < UINT32_MAX, "there must be fewer than 2^32 - 1 codes"); }

void require_rows_of(const Codes& codes, const Vector<uint32_t>& rows) {
  require_below(rows, codes.shape(0), "a row is out of range");
}

void require_width(const Codes& queries, const CodeBase& base) {
  require(queries.shape(1) == base.m, "queries must have the width of the codes");
}

nb::tuple group(Codes codes) {
  require_few_codes(codes.shape(0));
  require(codes.shape(1) > 0, "codes must have at least one byte");
  Groups groups;
  {
    nb::gil_scoped_release release;
    groups = group_codes(codes.data(), codes.shape(0), codes.shape(1));
  }
  return nb::make_tuple(to_numpy(std::move(groups.representative)), to_numpy(std::move(groups.offsets)),
                        to_numpy(std::move(groups.rows)));
}

void to_tiles(Codes codes, List rows, nb::ndarray<uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> tiles) {
  const size_t n = rows ? rows->shape(0) : codes.shape(0);
  require(tiles.shape(0) == tiles_for(n) && tiles.shape(1) == codes.shape(1) && tiles.shape(2) == kTile,
          "tiles must have the shape (ceil(n / 64), bytes per code, 64)");
  nb::gil_scoped_release release;
  if (rows) require_rows_of(codes, *rows);
  fill_tiles(codes.data(), rows ? rows->data() : nullptr, n, codes.shape(1), tiles.data());
}

void from_tiles(Tiles tiles, Vector<uint32_t> codes, WritableTable<uint8_t> out) {
  require(tiles.shape(1) == out.shape(1) && tiles.shape(2) == kTile && out.shape(0) == codes.shape(0),
          "out must have one row per code and the width of the codes");
  nb::gil_scoped_release release;
  require_below(codes, tiles.shape(0) * kTile, "a code is out of range");
  read_tiles(tiles.data(), codes.data(), codes.shape(0), tiles.shape(1), out.data());
}

CodeBase as_base(const Tiles& tiles, size_t n_codes, size_t n_bits, const List& offsets = {}, const List& rows = {},
                 bool ordered = true) {
  require_few_codes(n_codes);
  require(tiles.shape(0) == tiles_for(n_codes) && tiles.shape(2) == kTile, "tiles and number of codes disagree");
  require(n_bits > 0 && n_bits <= kMostBits, "the number of bits must lie between 1 and 65535");
  require(tiles.shape(1) == (n_bits + 7) / 8, "tiles and number of bits disagree");
  require(!offsets || rows, "offsets come with rows");
  require(!offsets || offsets->shape(0) == n_codes + 1, "offsets must have one entry more than there are codes");
  require(!rows || rows->shape(0) == (offsets ? (*offsets)(n_codes) : n_codes), "rows and offsets disagree");
  return {tiles.data(),
          static_cast<uint32_t>(n_codes),
          tiles.shape(1),
          n_bits,
          offsets ? offsets->data() : nullptr,
          rows ? rows->data() : nullptr,
          ordered || !rows,
          {}};
}

using RangeTable = nb::ndarray<const uint16_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(PivotRange) == 3 * sizeof(uint16_t));

PivotRanges as_ranges(const CodeBase& base, const std::optional<Codes>& pivots,
                      const std::optional<RangeTable>& ranges) {
  require(pivots.has_value() == ranges.has_value(), "pivots and ranges go together");
  if (!pivots) return {};
  require(pivots->shape(1) == base.m, "pivots must have the width of the codes");
  require(ranges->shape(0) == (base.n_codes + kRangeCodes - 1) / kRangeCodes, "there must be one range per 256 codes");
  const auto* const blocks = reinterpret_cast<const PivotRange*>(ranges->data());
  for (size_t b = 0; b < ranges->shape(0); ++b) require(blocks[b].pivot < pivots->shape(0), "a pivot is out of range");
  return {pivots->data(), pivots->shape(0), blocks};
}

nb::tuple codes_by_pivots(Codes codes, Vector<uint32_t> rows, size_t n_bits) {
  require(codes.shape(1) == (n_bits + 7) / 8 && n_bits <= kMostBits, "codes and number of bits disagree");
  PivotOrder found;
  {
    nb::gil_scoped_release release;
    require_rows_of(codes, rows);
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
                        std::optional<RangeTable> ranges) {
  CodeBase base = as_base(tiles, n_codes, n_bits, offsets, rows, ordered);
  base.ranges = as_ranges(base, pivots, ranges);
  require_width(queries, base);
  require(max_distance >= 0, "max_distance must not be negative");
  std::vector<Matches> answers;
  {
    nb::gil_scoped_release release;
    answers = nearest(base, queries.data(), queries.shape(0), k, max_distance, n_threads);
  }
  return as_lists(std::move(answers));
}

nb::tuple nearest_weighted_items(Tiles tiles, size_t n_codes, size_t n_bits, List offsets, List rows, bool ordered,
                                 Codes queries, Table<float> weights, size_t k, size_t n_threads) {
  const CodeBase base = as_base(tiles, n_codes, n_bits, offsets, rows, ordered);
  require_width(queries, base);
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
                size_t n_threads, WritableTable<int64_t> counts, WritableTable<int64_t> hits) {
  const CodeBase base = as_base(tiles, n_codes, n_bits);
  const size_t n = queries.shape(0);
  require_width(queries, base);
  require(begin.shape(0) == n && end.shape(0) == n, "begin and end must have one entry per query");
  require(counts.shape(0) == n && counts.shape(1) == n_bits + 1 && hits.shape(0) == n && hits.shape(1) == n_bits + 1,
          "counts and hits must have the shape (queries, bits + 1)");
  nb::gil_scoped_release release;
  distance_histograms(base, queries.data(), n, begin.data(), end.data(), n_threads, counts.data(), hits.data());
}

}  // namespace

void bind_scan(nb::module_& m) {
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
