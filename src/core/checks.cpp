#include "checks.hpp"

#include <cmath>

#include "scan_kernels.hpp"

namespace ilhash {

namespace {

template <class T>
bool within(T value, T least, T most) {  // which no NaN is
  return value >= least && value <= most;
}

}  // namespace

void refuse(const char* message, const char* got, size_t n_bad, size_t n, size_t first) {
  throw std::invalid_argument(std::string(message) + ", got " + got + " in " + std::to_string(n_bad) + " of " +
                              std::to_string(n) + " places, the first at " + std::to_string(first));
}

void require_signs(Span<int8_t> values, const char* message) {
  bool signs = true;
  for (size_t i = 0; i < values.size; ++i) signs &= values[i] == 1 || values[i] == -1;
  require(signs, message);
}

// ------------------------------------------------------------------------------------------ drawing

void check_permuted(uint64_t n, uint64_t start, uint64_t count) {
  require(n <= INT64_MAX, "there must be fewer than 2^63 points");
  require(start <= n && count <= n - start, "start + count must not exceed n");
  require(count <= kMostEntries, "count must be at most 2^48");
}

uint64_t check_neighbourhoods(Span<int64_t> row_begin, Span<int32_t> columns) {
  const uint64_t n = require_csr(row_begin, columns.size, "row_begin must end at the number of columns");
  require_below(columns, n, "columns must be points of the graph");
  return n;
}

void check_sources(uint64_t n, uint64_t count) {
  require(n > 0 && n <= INT64_MAX, "there must be at least one source, and fewer than 2^63");
  require(count <= kMostEntries, "count must be at most 2^48");
}

// ------------------------------------------------------------------------------------------ graphs and the z-step

void check_classes(const std::vector<uint32_t>& class_sizes) {
  uint64_t n = 0;
  for (const uint32_t size : class_sizes) {
    require(size > 0, "class sizes must be positive");
    n += size;
    require(n < UINT32_MAX, "there must be fewer than 2^32 - 1 points");
  }
}

uint32_t check_label_sets(Span<uint32_t> row_begin, Span<uint32_t> labels, uint32_t n_labels) {
  const size_t n = require_csr(row_begin, labels.size, "row_begin must end at the number of labels");
  require_below(labels, n_labels, "labels must be smaller than their number");
  return static_cast<uint32_t>(n);
}

void check_neighbours(Grid<uint32_t> neighbours) {
  require(neighbours.n_rows < UINT32_MAX, "there must be fewer than 2^32 - 1 points");
  require(neighbours.n_columns < neighbours.n_rows, "there must be fewer neighbours than points");
  const auto n = static_cast<uint32_t>(neighbours.n_rows);
  std::vector<uint32_t> named_by(n, n);
  const uint32_t* at = neighbours.data;
  for (uint32_t i = 0; i < n; ++i)
    for (size_t j = 0; j < neighbours.n_columns; ++j) {
      const uint32_t m = *at++;
      require(m < n && m != i, "a neighbour must be another point of the set");
      require(named_by[m] != i, "a neighbour must be named once in its row");
      named_by[m] = i;
    }
}

namespace {

// Returns the number of points. A flow over an arc without its opposite would be written outside the graph.
template <class T>
uint32_t require_symmetric(Span<uint32_t> row_begin, Span<uint32_t> columns, Span<T> couplings) {
  constexpr const char* kLengths = "row_begin, columns and couplings must agree in length";
  require(columns.size < UINT32_MAX, "there must be fewer than 2^32 - 1 couplings");
  const auto n = static_cast<uint32_t>(require_csr(row_begin, columns.size, kLengths));
  require(columns.size == couplings.size, kLengths);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin[i]; a < row_begin[i + 1]; ++a) {
      require(columns[a] < n && columns[a] != i, "a column must be another point of the graph");
      require(a == row_begin[i] || columns[a - 1] < columns[a], "columns must be sorted and distinct in each row");
    }
  // Columns are sorted, so row by row the entries that mirror row i are met in the order of their own rows.
  std::vector<uint32_t> next(row_begin.begin(), row_begin.begin() + n);
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t a = row_begin[i]; a < row_begin[i + 1]; ++a) {
      const uint32_t mirror = next[columns[a]]++;
      require(mirror < row_begin[columns[a] + size_t{1}] && columns[mirror] == i && couplings[mirror] == couplings[a],
              "couplings must be symmetric");
    }
  return n;
}

}  // namespace

uint32_t check_couplings(Span<uint32_t> row_begin, Span<uint32_t> columns, Span<double> couplings) {
  require_each(
      couplings, [](double w) { return !within(std::abs(w), 1e-280, 1e280); },
      "couplings must lie between 1e-280 and 1e280 in size", "others");
  return require_symmetric(row_begin, columns, couplings);
}

uint32_t check_signed_pairs(Span<uint32_t> row_begin, Span<uint32_t> columns, Span<int8_t> signs) {
  require_signs(signs, "signs must be -1 or +1");
  return require_symmetric(row_begin, columns, signs);
}

void check_bits(Span<int8_t> z, size_t n_points, const char* length, const char* values) {
  require(z.size == n_points, length);
  require_signs(z, values);
}

void check_field(Span<double> field, size_t n_points) {
  require(field.size == n_points, "field must have one value per point");
  require_each(
      field, [](double u) { return !within(u, -1e280, 1e280); }, "field must be finite, at most 1e280 in size",
      "others");
}

// ------------------------------------------------------------------------------------------ matrices

void check_gather(size_t n_rows, size_t n_columns, Span<int64_t> rows, const Maybe<Span<int32_t>>& columns,
                  size_t n_origin, size_t out_rows, size_t out_columns) {
  require(out_rows == rows.size, "out must have one row per drawn row");
  require(out_columns == (columns ? columns->size : n_columns), "out must have one column per feature");
  require(n_origin == out_columns, "origin must have one value per column of out");
  require_below(rows, n_rows, "drawn rows must be rows of the matrix");
  if (columns) require_below(*columns, n_columns, "features must be columns of the matrix");
}

void check_subsets(size_t n_rows, size_t n_columns, Grid<float> weights, Grid<int32_t> columns, size_t n_bias,
                   size_t out_rows, size_t out_columns) {
  const size_t n_bits = weights.n_rows;
  require(columns.n_rows == n_bits && columns.n_columns == weights.n_columns && n_bias == n_bits, "shapes differ");
  require(out_rows == n_rows && out_columns == n_bits, "out must have one row per row of x, one column per bit");
  require_below(columns.flat(), n_columns, "features must be columns of the matrix");
}

void check_svm(size_t n_rows, size_t n_columns, size_t n_shift, size_t n_factor, Span<float> y, double C,
               Grid<float> inverse) {
  require(n_columns > 0, "rows must have a last column of ones");
  require(n_shift == n_columns - 1 && n_factor == n_columns - 1, "one shift and factor per column but the last");
  require(y.size == n_rows, "y must have one value per row");
  require(n_rows < UINT32_MAX, "there must be fewer than 2^32 - 1 rows");
  require_each(
      y, [](float target) { return target != 1.0f && target != -1.0f; }, "y must hold -1 and +1 only", "others");
  require(C > 0 && C <= 1e280, "C must be positive and finite");
  require(inverse.n_rows == n_columns && inverse.n_columns == n_columns, "inverse must have a row per column of rows");
}

// ------------------------------------------------------------------------------------------ codes

namespace {

size_t tiles_for(size_t n_codes) { return n_codes / kTile + (n_codes % kTile != 0); }
size_t blocks_for(size_t n_codes) { return (n_codes + kRangeCodes - 1) / kRangeCodes; }

// The bits of a code's last byte that are behind n_bits.
unsigned padding_of(size_t m, size_t n_bits) { return (1u << (8 * m - n_bits)) - 1; }

void require_width(size_t m, size_t n_bits) {
  require(n_bits > 0 && n_bits <= kMostBits, "the number of bits must lie between 1 and 65535");
  require(m == (n_bits + 7) / 8, "the width of the codes and the number of bits disagree");
}

void require_no_padding(Grid<uint8_t> codes, size_t n_bits, const char* message) {
  const unsigned padding = padding_of(codes.n_columns, n_bits);
  size_t n_bad = 0, first = 0;
  for (size_t c = 0; padding && c < codes.n_rows; ++c)
    if (codes.data[(c + 1) * codes.n_columns - 1] & padding) first = n_bad++ ? first : c;
  if (n_bad) refuse(message, "others", n_bad, codes.n_rows, first);
}

// The last byte of 64 codes stands together; what fills up the last tile is zero, too.
void require_no_padding(TileArray tiles, size_t n_bits) {
  const unsigned padding = padding_of(tiles.m, n_bits);
  size_t n_bad = 0, first = 0;
  for (size_t t = 0; padding && t < tiles.n_tiles; ++t) {
    const uint8_t* const last = tiles.data + ((t + 1) * tiles.m - 1) * kTile;
    unsigned found = 0;
    for (size_t c = 0; c < kTile; ++c) found |= last[c];
    if (found & padding) first = n_bad++ ? first : t;
  }
  if (n_bad) refuse("codes must have zeros behind their last bit", "others", n_bad, tiles.n_tiles, first);
}

Span<PivotRange> blocks_of(Grid<uint16_t> ranges) {
  static_assert(sizeof(PivotRange) == 3 * sizeof(uint16_t) && alignof(PivotRange) == alignof(uint16_t));
  return {reinterpret_cast<const PivotRange*>(ranges.data), ranges.n_rows};
}

PivotRanges ranges_of(const SegmentArrays& segment) {
  require(segment.pivots.has_value() == segment.ranges.has_value(), "pivots and ranges go together");
  if (!segment.pivots || !segment.ranges) return {};
  const Grid<uint8_t> pivots = *segment.pivots;
  const Grid<uint16_t> ranges = *segment.ranges;
  require(pivots.n_columns == segment.tiles.m, "pivots must have the width of the codes");
  require(ranges.n_columns == 3 && ranges.n_rows == blocks_for(segment.n_codes),
          "there must be one range of three numbers per 256 codes");
  const Span<PivotRange> blocks = blocks_of(ranges);
  bool inside = true;
  for (const PivotRange& block : blocks) inside &= block.pivot < pivots.n_rows;
  require(inside, "ranges must name pivots that there are");
  return {pivots.data, pivots.n_rows, blocks.data};
}

// Each of 0 .. n - 1 once, and ascending within each posting list.
void require_lists(const SegmentArrays& segment, Span<uint32_t> rows) {
  require_below(rows, rows.size, "rows must be smaller than their number");
  std::vector<bool> taken(rows.size, false);
  for (const uint32_t row : rows) {
    require(!taken[row], "no row must have two codes");
    taken[row] = true;
  }
  uint32_t before = 0;
  const bool ordered = !segment.pivots;
  for (size_t c = 0; c < segment.n_codes; ++c) {
    const uint32_t begin = segment.offsets ? (*segment.offsets)[c] : static_cast<uint32_t>(c);
    const uint32_t end = segment.offsets ? (*segment.offsets)[c + 1] : begin + 1;
    require(std::is_sorted(rows.begin() + begin, rows.begin() + end), "the rows of a code must ascend");
    require(!ordered || c == 0 || rows[begin] > before, "codes must stand in the order of their first rows");
    before = rows[begin];
  }
}

}  // namespace

CodeBase base_of(const SegmentArrays& segment, bool ordered) {
  const TileArray& tiles = segment.tiles;
  const auto &offsets = segment.offsets, &rows = segment.rows;
  require(segment.n_codes < UINT32_MAX, "there must be fewer than 2^32 - 1 codes");
  require(tiles.n_tiles == tiles_for(segment.n_codes) && tiles.codes_per_tile == kTile,
          "tiles and number of codes disagree");
  require_width(tiles.m, segment.n_bits);
  require(!offsets || rows, "offsets come with rows");
  require(!offsets || offsets->size == segment.n_codes + 1, "offsets must have one entry more than there are codes");
  require(!rows || rows->size == (offsets ? (*offsets)[segment.n_codes] : segment.n_codes),
          "rows and offsets disagree");
  return {tiles.data,
          static_cast<uint32_t>(segment.n_codes),
          tiles.m,
          segment.n_bits,
          offsets ? offsets->data : nullptr,
          rows ? rows->data : nullptr,
          ordered || !rows,
          ranges_of(segment)};
}

void check_segment(const SegmentArrays& segment) {
  base_of(segment, false);
  require_no_padding(segment.tiles, segment.n_bits);
  if (segment.offsets) {
    const Span<uint32_t> offsets = *segment.offsets;
    bool ascend = offsets[0] == 0;
    for (size_t c = 0; c < segment.n_codes; ++c) ascend &= offsets[c] < offsets[c + 1];
    require(ascend, "offsets must begin at 0 and ascend");
  }
  if (segment.rows) require_lists(segment, *segment.rows);
  if (!segment.pivots || !segment.ranges) return;
  require_no_padding(*segment.pivots, segment.n_bits, "pivots must have zeros behind their last bit");
  require_each(
      blocks_of(*segment.ranges),
      [&](const PivotRange& range) { return range.nearest > range.farthest || range.farthest > segment.n_bits; },
      "ranges must hold distances that ascend and are at most the number of bits", "others");
}

void check_codes(Grid<uint8_t> codes) {
  require(codes.n_rows < UINT32_MAX, "there must be fewer than 2^32 - 1 codes");
  require(codes.n_columns > 0, "codes must have at least one byte");
}

void check_to_tiles(Grid<uint8_t> codes, const Maybe<Span<uint32_t>>& rows, TileArray tiles) {
  check_codes(codes);
  const size_t n = rows ? rows->size : codes.n_rows;
  require(tiles.n_tiles == tiles_for(n) && tiles.m == codes.n_columns && tiles.codes_per_tile == kTile,
          "tiles must have the shape (ceil(n / 64), bytes per code, 64)");
  if (rows) require_below(*rows, codes.n_rows, "rows must be rows of the codes");
}

void check_from_tiles(TileArray tiles, Span<uint32_t> codes, size_t n_out, size_t width) {
  require(tiles.m == width && tiles.codes_per_tile == kTile && n_out == codes.size,
          "out must have one row per code and the width of the codes");
  require_below(codes, tiles.n_tiles * kTile, "codes must be numbers of codes in the tiles");
}

void check_codes_to_order(Grid<uint8_t> codes, Span<uint32_t> rows, size_t n_bits) {
  require_width(codes.n_columns, n_bits);
  require(rows.size < UINT32_MAX, "there must be fewer than 2^32 - 1 codes");
  require_no_padding(codes, n_bits, "codes must have zeros behind their last bit");
  require_below(rows, codes.n_rows, "rows must be rows of the codes");
}

void check_queries(const CodeBase& base, Grid<uint8_t> queries) {
  require(queries.n_columns == base.m, "queries must have the width of the codes");
}

void check_weights(const CodeBase& base, Grid<uint8_t> queries, Grid<float> weights) {
  check_queries(base, queries);
  require(weights.n_rows == queries.n_rows && weights.n_columns == base.n_bits, "one weight per bit of each query");
  require_each(
      weights.flat(), [](float w) { return !within(w, 0.0f, 1e30f); }, "weights must lie between 0 and 1e30", "others");
}

// ------------------------------------------------------------------------------------------ precision, bit by bit

void check_cut_bits(const CutCounts& counts, Span<uint8_t> base_bits, Span<uint8_t> query_bits) {
  require(base_bits.size == counts.n_base() && query_bits.size == counts.n_queries(),
          "there must be one bit for each base point and each query");
}

CutPool check_cut_pool(const CutCounts& counts, Grid<uint64_t> pool, Grid<uint64_t> queries, size_t n_bits) {
  require(n_bits > 0 && n_bits <= kMostEntries, "the number of bits must lie between 1 and 2^48");
  const CutPool checked{{pool.data, pool.n_rows, n_bits}, {queries.data, queries.n_rows, n_bits}};
  require(pool.n_columns == checked.base.n_words() && queries.n_columns == checked.base.n_words(),
          "codes must have as many words as the bits fill");
  require(pool.n_rows == counts.n_base() && queries.n_rows == counts.n_queries(),
          "there must be one code for each base point and each query");
  return checked;
}

// ------------------------------------------------------------------------------------------ trees

void check_trees(const TreeTable& table, size_t n_features, size_t max_depth) {
  require_no_fault(fault_of(table, n_features));
  const auto is_nan = [](double v) { return std::isnan(v); };
  const auto is_no_number = [](double v) { return !std::isfinite(v); };
  require_each(Span<double>{table.threshold.data(), table.size()}, is_nan, "thresholds of trees must be numbers",
               "NaN");
  require_each(Span<double>{table.value.data(), table.size()}, is_no_number, "values of trees must be finite",
               "NaN or infinity");
  require(std::isfinite(table.bias), "the bias of trees must be finite");
  const std::vector<int32_t> heights = heights_of(table);
  for (const int32_t root : table.roots)
    require(static_cast<size_t>(heights[static_cast<size_t>(root)]) <= max_depth, "a tree is deeper than it may be");
}

void check_tree_sources(const std::vector<TreeMargins::Source>& sources, size_t n_features) {
  require(n_features > 0 && n_features < (uint64_t{1} << 31), "rows must have features, fewer than 2^31");
  const auto outside = [&](int32_t column) { return column < 0 || static_cast<size_t>(column) >= n_features; };
  for (const TreeMargins::Source& source : sources) {
    const std::vector<int32_t>& columns = source.columns;
    require(std::none_of(columns.begin(), columns.end(), outside), "a feature of trees must be one of the rows");
    require_no_fault(fault_of(source.table, columns.empty() ? n_features : columns.size()));
  }
}

void check_bin_edges(Span<uint32_t> edge_begin, Span<double> edges, size_t n_features) {
  require(
      require_csr(edge_begin, edges.size, "edge_begin must lead through all edges, feature by feature") == n_features,
      "edge_begin must have one entry more than there are features");
  for (size_t j = 0; j < n_features; ++j) {
    require(edge_begin[j + 1] - edge_begin[j] <= 255, "a feature must have at most 255 edges");
    for (size_t e = edge_begin[j]; e < edge_begin[j + 1]; ++e)
      require(std::isfinite(edges[e]) && (e == edge_begin[j] || edges[e - 1] < edges[e]),
              "the edges of a feature must be finite and ascend");
  }
}

BinnedFeatures check_boosting(Grid<uint8_t> bins, Span<uint32_t> edge_begin, Span<double> edges, Span<int8_t> z,
                              const BoostingOptions& options) {
  const size_t n_features = bins.n_rows, n_rows = bins.n_columns;
  require(n_rows > 0 && n_rows < (uint64_t{1} << 31), "there must be rows, fewer than 2^31");
  require(n_features < (uint64_t{1} << 31), "there must be fewer than 2^31 features");
  require(z.size == n_rows, "z must have one value per row");
  require_signs(z, "z must hold -1 and +1 only");
  // Within these limits no margin leaves the numbers: 2^31 trees of 2^31 rows add up to less than 1e220.
  require(options.rate > 0 && options.rate <= 1e100, "the rate must lie between 0 and 1e100");
  require(options.penalty >= 1e-100 && options.penalty <= 1e100, "the penalty must lie between 1e-100 and 1e100");
  require(options.n_trees < (uint32_t{1} << 31), "there must be fewer than 2^31 trees");
  check_bin_edges(edge_begin, edges, n_features);
  for (size_t j = 0; j < n_features; ++j) {
    const uint8_t* const own = bins.data + j * n_rows;
    require(*std::max_element(own, own + n_rows) <= edge_begin[j + 1] - edge_begin[j],
            "a bin must be at most the number of its feature's edges");
  }
  return {bins.data, static_cast<uint32_t>(n_rows), static_cast<uint32_t>(n_features), edge_begin.data, edges.data};
}

}  // namespace ilhash
