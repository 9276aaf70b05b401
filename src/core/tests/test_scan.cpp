// Tests of the scan against slow, obvious twins, to be run under AddressSanitizer and UBSan, once with the portable
// kernels and once with those of the vector instructions that ILHASH_SIMD names (see the Makefile).
//
// Arrays have exactly the size they must have, so that a read behind the end is noticed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "interruption.hpp"
#include "random.hpp"
#include "scan.hpp"
#include "scan_queries.hpp"
#include "vector.hpp"

using namespace ilhash;

namespace {

using Code = std::vector<uint8_t>;
using Codes = std::vector<Code>;

// ------------------------------------------------------------------------------------------ codes to search

enum class Kind { kUniform, kFewDistinct, kCluster, kOpposites, kConstant };
constexpr Kind kKinds[] = {Kind::kUniform, Kind::kFewDistinct, Kind::kCluster, Kind::kOpposites, Kind::kConstant};

bool bit_of(const Code& code, size_t bit) { return code[bit / 8] >> (7 - bit % 8) & 1; }
void flip(Code& code, size_t bit) { code[bit / 8] = static_cast<uint8_t>(code[bit / 8] ^ (128u >> bit % 8)); }

Code random_code(Random& random, size_t n_bits) {
  Code code((n_bits + 7) / 8);
  for (uint8_t& byte : code) byte = static_cast<uint8_t>(random.next() >> 17);
  if (n_bits % 8) code.back() = static_cast<uint8_t>(code.back() & (0xFF00u >> n_bits % 8));  // padding bits are 0
  return code;
}

Code opposite(Code code, size_t n_bits) {
  for (size_t bit = 0; bit < n_bits; ++bit) flip(code, bit);
  return code;
}

Codes random_codes(Random& random, Kind kind, size_t n, size_t n_bits) {
  Codes pool;
  for (size_t i = 0; i < 7; ++i) pool.push_back(random_code(random, n_bits));
  pool[1] = opposite(pool[0], n_bits);
  Codes codes;
  for (size_t i = 0; i < n; ++i) switch (kind) {
      case Kind::kUniform: codes.push_back(random_code(random, n_bits)); break;
      case Kind::kFewDistinct: codes.push_back(pool[random.below(7)]); break;
      case Kind::kCluster:
        codes.push_back(pool[random.below(2)]);
        for (uint32_t flips = random.below(5); flips; --flips)
          flip(codes.back(), random.below(static_cast<uint32_t>(n_bits)));
        break;
      case Kind::kOpposites: codes.push_back(pool[random.below(2)]); break;
      case Kind::kConstant: codes.push_back(pool[0]); break;
    }
  return codes;
}

std::vector<uint8_t> flat(const Codes& codes) {
  std::vector<uint8_t> bytes;
  for (const Code& code : codes) bytes.insert(bytes.end(), code.begin(), code.end());
  bytes.shrink_to_fit();
  return bytes;
}

// Queries that lie near, far and opposite to codes of the base.
Codes queries_for(Random& random, const Codes& codes, size_t n, size_t n_bits) {
  Codes queries;
  for (size_t q = 0; q < n; ++q) {
    const bool any = !codes.empty() && q % 4 != 3;
    Code query = any ? codes[random.below(static_cast<uint32_t>(codes.size()))] : random_code(random, n_bits);
    if (q % 4 == 1) query = opposite(query, n_bits);
    if (q % 4 == 2) flip(query, random.below(static_cast<uint32_t>(n_bits)));
    queries.push_back(query);
  }
  return queries;
}

// ------------------------------------------------------------------------------------------ bases

enum class Lists { kNone, kAll, kFiltered, kShuffled };

// A base and what it means: the code and the row of each item.
struct Base {
  size_t n_bits;
  Codes codes;
  std::vector<uint8_t> tiles;
  std::vector<uint32_t> offsets, rows;
  bool lists, ordered;
  std::vector<std::pair<uint32_t, uint32_t>> items;  // (code, row)

  CodeBase view() const {
    return {tiles.data(),
            static_cast<uint32_t>(codes.size()),
            (n_bits + 7) / 8,
            n_bits,
            lists ? offsets.data() : nullptr,
            lists ? rows.data() : nullptr,
            ordered,
            {}};
  }
};

void set_tiles(Base& base) {
  const size_t m = (base.n_bits + 7) / 8;
  base.tiles.assign((base.codes.size() + kTile - 1) / kTile * kTile * m, 0xEE);
  fill_tiles(flat(base.codes).data(), nullptr, base.codes.size(), m, base.tiles.data());
}

// The rows with each code, the codes in the order of their first rows.
std::vector<std::pair<Code, std::vector<uint32_t>>> grouped(const Codes& codes) {
  std::map<Code, size_t> number;
  std::vector<std::pair<Code, std::vector<uint32_t>>> groups;
  for (uint32_t row = 0; row < codes.size(); ++row) {
    const size_t g = number.emplace(codes[row], groups.size()).first->second;
    if (g == groups.size()) groups.push_back({codes[row], {}});
    groups[g].second.push_back(row);
  }
  return groups;
}

Base make_base(Random& random, const Codes& codes, size_t n_bits, Lists lists) {
  Base base{n_bits, {}, {}, {}, {}, lists != Lists::kNone, lists == Lists::kNone || lists == Lists::kAll, {}};
  if (!base.lists) {
    base.codes = codes;
    for (uint32_t row = 0; row < codes.size(); ++row) base.items.push_back({row, row});
  } else {
    auto groups = grouped(codes);
    if (lists == Lists::kShuffled)
      for (size_t g = groups.size(); g > 1; --g)
        std::swap(groups[g - 1], groups[random.below(static_cast<uint32_t>(g))]);
    base.offsets.push_back(0);
    for (const auto& group : groups) {
      base.codes.push_back(group.first);
      for (const uint32_t row : group.second)
        if (lists != Lists::kFiltered || random.below(3) == 0) base.rows.push_back(row);
      for (size_t i = base.offsets.back(); i < base.rows.size(); ++i)
        base.items.push_back({static_cast<uint32_t>(base.codes.size() - 1), base.rows[i]});
      base.offsets.push_back(static_cast<uint32_t>(base.rows.size()));
    }
    base.rows.shrink_to_fit();
    base.offsets.shrink_to_fit();
  }
  set_tiles(base);
  return base;
}

// ------------------------------------------------------------------------------------------ tiles and groups

void test_tiles(Random& random, const Codes& codes, size_t n_bits) {
  Base base{n_bits, codes, {}, {}, {}, false, true, {}};
  set_tiles(base);
  const size_t m = (n_bits + 7) / 8;
  bool right = true;
  for (size_t i = 0; i < base.tiles.size(); ++i) {
    const size_t c = i / (m * kTile) * kTile + i % kTile, j = i / kTile % m;
    right &= base.tiles[i] == (c < codes.size() ? codes[c][j] : 0);
  }
  CHECK(right);
  std::vector<uint8_t> back(codes.size() * m);
  read_tiles(base.tiles.data(), nullptr, codes.size(), m, back.data());
  CHECK(back == flat(codes));
  if (codes.empty()) return;

  std::vector<uint32_t> some(70);
  Codes chosen;
  for (uint32_t& row : some) chosen.push_back(codes[row = random.below(static_cast<uint32_t>(codes.size()))]);
  back.assign(some.size() * m, 0);
  read_tiles(base.tiles.data(), some.data(), some.size(), m, back.data());
  CHECK(back == flat(chosen));
  std::vector<uint8_t> tiles(2 * kTile * m);
  fill_tiles(flat(codes).data(), some.data(), some.size(), m, tiles.data());
  read_tiles(tiles.data(), nullptr, some.size(), m, back.data());
  CHECK(back == flat(chosen));
}

void test_groups(const Codes& codes, size_t n_bits) {
  const Groups found = group_codes(flat(codes).data(), codes.size(), (n_bits + 7) / 8);
  const auto wanted = grouped(codes);
  std::vector<uint32_t> representative, offsets{0}, rows;
  for (const auto& group : wanted) {
    representative.push_back(group.second.front());
    rows.insert(rows.end(), group.second.begin(), group.second.end());
    offsets.push_back(static_cast<uint32_t>(rows.size()));
  }
  if (wanted.size() == codes.size()) offsets.clear(), rows.clear();  // all distinct: no lists
  CHECK(found.representative == representative);
  CHECK(found.offsets == offsets);
  CHECK(found.rows == rows);
}

// ------------------------------------------------------------------------------------------ nearest

int32_t distance(const Code& a, const Code& b) {
  int32_t d = 0;
  for (size_t j = 0; j < a.size(); ++j)
    for (unsigned x = a[j] ^ b[j]; x; x >>= 1) d += x & 1;
  return d;
}

// All items in the order (distance, row).
std::vector<std::pair<int32_t, uint32_t>> ranking(const Base& base, const Code& query) {
  std::vector<int32_t> of_code;
  for (const Code& code : base.codes) of_code.push_back(distance(code, query));
  std::vector<std::pair<int32_t, uint32_t>> ranked;
  for (const auto& item : base.items) ranked.push_back({of_code[item.first], item.second});
  std::sort(ranked.begin(), ranked.end());
  return ranked;
}

bool is_beginning(const Matches& found, const std::vector<std::pair<int32_t, uint32_t>>& ranked, size_t k,
                  int32_t max_distance) {
  size_t n = 0;
  for (; n < ranked.size() && n < k && ranked[n].first <= max_distance; ++n)
    if (n >= found.rows.size() || found.rows[n] != ranked[n].second || found.distances[n] != ranked[n].first)
      return false;
  return found.rows.size() == n && found.distances.size() == n;
}

void test_nearest(Random& random, const Base& base, const Codes& queries, size_t n_threads) {
  const std::vector<uint8_t> bytes = flat(queries);
  const auto n_bits = static_cast<int32_t>(base.n_bits);
  const size_t n = base.items.size(), beyond = std::numeric_limits<size_t>::max();
  std::vector<std::vector<std::pair<int32_t, uint32_t>>> ranked;
  for (const Code& query : queries) ranked.push_back(ranking(base, query));
  const auto some = [&](size_t most) { return size_t{random.below(static_cast<uint32_t>(most) + 1)}; };
  const std::pair<size_t, int32_t> asked[] = {{1, n_bits},
                                              {10, n_bits},
                                              {some(n), n_bits},
                                              {n, n_bits},
                                              {beyond, n_bits},
                                              {0, n_bits},
                                              {beyond, 0},
                                              {3, static_cast<int32_t>(some(base.n_bits))},
                                              {beyond, n_bits - 1},
                                              {some(n), static_cast<int32_t>(some(base.n_bits))},
                                              {5, std::numeric_limits<int32_t>::max()}};
  for (const auto& [k, max_distance] : asked) {
    const auto found = nearest(base.view(), bytes.data(), queries.size(), k, max_distance, n_threads);
    CHECK(found.size() == queries.size());
    for (size_t q = 0; q < queries.size(); ++q) CHECK(is_beginning(found[q], ranked[q], k, max_distance));
  }
}

// Each limit from 0 to n_bits, and what lies outside.
void test_every_distance(size_t n_bits) {
  Random random(n_bits);
  Codes codes = random_codes(random, Kind::kUniform, 100, n_bits);
  for (size_t i = 0; i < 20; ++i) codes.push_back(opposite(codes[i], n_bits));
  for (const Lists lists : {Lists::kNone, Lists::kFiltered}) {
    const Base base = make_base(random, codes, n_bits, lists);
    const Codes queries = queries_for(random, codes, 7, n_bits);
    std::vector<std::vector<std::pair<int32_t, uint32_t>>> ranked;
    for (const Code& query : queries) ranked.push_back(ranking(base, query));
    for (int32_t limit = 0; limit <= static_cast<int32_t>(n_bits) + 1; ++limit) {
      const auto found = nearest(base.view(), flat(queries).data(), queries.size(), 1000, limit, 1);
      for (size_t q = 0; q < queries.size(); ++q) CHECK(is_beginning(found[q], ranked[q], 1000, limit));
    }
  }
}

// Many codes at few distances, so that the k-th lies among ties in most blocks, and lists of very different lengths.
void test_ties(size_t n_bits, Lists lists) {
  Random random(n_bits);
  Codes codes = random_codes(random, Kind::kUniform, 3000, n_bits);
  for (size_t i = 0; i < codes.size(); i += 2) codes[i] = codes[i / 2 % 40];
  const Base base = make_base(random, codes, n_bits, lists);
  const Codes queries = queries_for(random, codes, 8, n_bits);
  for (const Code& query : queries) {
    const auto ranked = ranking(base, query);
    for (const size_t k : {1, 2, 3, 5, 8, 20, 50, 51, 52, 53, 200, 1000, 2000}) {
      const auto found = nearest(base.view(), query.data(), 1, k, static_cast<int32_t>(n_bits), 1).front();
      CHECK(is_beginning(found, ranked, k, static_cast<int32_t>(n_bits)));
    }
  }
}

// ------------------------------------------------------------------------------------------ kernels

// What `collect` finds, with another limit for each query and no more room than it may use.
void test_collect(Random& random, const Codes& codes, size_t n_bits, size_t n_queries) {
  const Base base = make_base(random, codes, n_bits, Lists::kNone);
  const Codes queries = queries_for(random, codes, n_queries, n_bits);
  const std::vector<uint8_t> bytes = flat(queries);
  const size_t m = base.view().m;
  const Queries tables(bytes.data(), n_queries, base.n_bits);
  const Queries::Group group = tables.group(0);
  const uint32_t first_code = 4294967295u - 10000;
  std::vector<int32_t> limits(kQueryGroup, -1);
  for (size_t q = 0; q < n_queries; ++q) limits[q] = static_cast<int32_t>(random.below(2 * n_bits + 2)) - 1;
  limits[0] = static_cast<int32_t>(n_bits) - static_cast<int32_t>(random.below(3));
  std::vector<std::vector<uint64_t>> found(kQueryGroup, std::vector<uint64_t>(codes.size() + kCollectSlack));
  uint64_t* const to[kQueryGroup] = {found[0].data(), found[1].data(), found[2].data(), found[3].data()};
  size_t n_found[kQueryGroup];
  scan_kernels().collect(base.tiles.data(), codes.size(), m, group.n_kernel, group.tables, group.codes, limits.data(),
                         first_code, to, n_found);
  for (size_t q = 0; q < n_queries; ++q) {
    std::vector<uint64_t> wanted;
    for (uint32_t c = 0; c < codes.size(); ++c)
      if (const int32_t d = distance(codes[c], queries[q]); d <= limits[q])
        wanted.push_back(static_cast<uint64_t>(d) << 32 | (first_code + c));
    found[q].resize(n_found[q]);
    CHECK(found[q] == wanted);
  }
}

// ------------------------------------------------------------------------------------------ weighted

double weighted_distance(const Code& a, const Code& b, const float* weights, size_t n_bits) {
  double d = 0;
  for (size_t bit = 0; bit < n_bits; ++bit)
    if (bit_of(a, bit) != bit_of(b, bit)) d += double{weights[bit]};
  return d;
}

enum class Weights { kDyadic, kZeroOrOne, kZero, kEqual, kSpread };
constexpr Weights kWeights[] = {Weights::kDyadic, Weights::kZeroOrOne, Weights::kZero, Weights::kEqual,
                                Weights::kSpread};

// Sums of all but the spread ones are exact, so that equality means equality.
std::vector<float> random_weights(Random& random, Weights kind, size_t n) {
  std::vector<float> weights(n);
  for (float& w : weights) switch (kind) {
      case Weights::kDyadic: w = static_cast<float>(random.below(256)) / 64.0f; break;
      case Weights::kZeroOrOne: w = random.below(2) ? 1.0f : 0.0f; break;
      case Weights::kZero: w = 0.0f; break;
      case Weights::kEqual: w = 0.375f; break;
      case Weights::kSpread: w = std::pow(10.0f, static_cast<float>(random.below(41)) - 20.0f); break;
    }
  return weights;
}

void check_weighted(const WeightedMatches& found, std::vector<std::pair<float, uint32_t>> items, size_t k) {
  std::sort(items.begin(), items.end());
  items.resize(std::min(items.size(), k));
  CHECK(found.rows.size() == items.size() && found.distances.size() == items.size());
  bool right = found.rows.size() == items.size();
  for (size_t i = 0; right && i < items.size(); ++i)
    right = found.rows[i] == items[i].second && found.distances[i] == items[i].first;
  CHECK(right);
}

// Where sums are rounded: each distance is right within rounding, and so is the distance at each rank.
void check_nearly(const WeightedMatches& found, std::vector<std::pair<float, uint32_t>> items, size_t k) {
  constexpr float kTolerance = 1e-6f;
  const auto near = [](float a, float b) { return std::abs(a - b) <= kTolerance * std::max(a, b); };
  std::map<uint32_t, float> distance_of_row;
  for (const auto& item : items) distance_of_row[item.second] = item.first;
  std::sort(items.begin(), items.end());
  const size_t n = std::min(items.size(), k);
  CHECK(found.rows.size() == n && found.distances.size() == n);
  bool right = found.rows.size() == n;
  for (size_t i = 0; right && i < n; ++i) {
    const auto at = distance_of_row.find(found.rows[i]);
    right = at != distance_of_row.end() && near(at->second, found.distances[i]) &&
            near(items[i].first, found.distances[i]) && (i == 0 || found.distances[i - 1] <= found.distances[i]);
    if (right) distance_of_row.erase(at);  // no row twice
  }
  CHECK(right);
}

void test_weighted(Random& random, const Base& base, const Codes& queries, Weights kind, size_t n_threads) {
  const std::vector<uint8_t> bytes = flat(queries);
  const std::vector<float> weights = random_weights(random, kind, queries.size() * base.n_bits);
  const size_t n = base.items.size(), beyond = std::numeric_limits<size_t>::max();
  std::vector<std::vector<std::pair<float, uint32_t>>> items(queries.size());
  for (size_t q = 0; q < queries.size(); ++q) {
    std::vector<float> of_code;
    for (const Code& code : base.codes)
      of_code.push_back(
          static_cast<float>(weighted_distance(code, queries[q], weights.data() + q * base.n_bits, base.n_bits)));
    for (const auto& item : base.items) items[q].push_back({of_code[item.first], item.second});
  }
  for (const size_t k : {size_t{0}, size_t{1}, size_t{7}, n / 2, n, beyond}) {
    const auto found = nearest_weighted(base.view(), bytes.data(), weights.data(), queries.size(), k, n_threads);
    CHECK(found.size() == queries.size());
    for (size_t q = 0; q < queries.size(); ++q)
      kind == Weights::kSpread ? check_nearly(found[q], items[q], k) : check_weighted(found[q], items[q], k);
  }
}

// Distances that differ by less than a float can tell are ties: rows ascend among them.
void test_weighted_order() {
  Random random(3);
  const Codes codes = random_codes(random, Kind::kUniform, 700, 64);
  std::vector<float> weights(64, 1e-4f);
  weights[0] = 1e4f;
  for (const Lists lists : {Lists::kNone, Lists::kShuffled}) {
    const Base base = make_base(random, codes, 64, lists);
    for (const size_t k : {1, 30, 650}) {
      const auto found = nearest_weighted(base.view(), codes[0].data(), weights.data(), 1, k, 1).front();
      std::vector<std::pair<float, uint32_t>> items;
      for (const auto& item : base.items)
        items.push_back(
            {static_cast<float>(weighted_distance(base.codes[item.first], codes[0], weights.data(), 64)), item.second});
      check_weighted(found, items, k);
    }
  }
}

// 100,000 codes at the same distance, of which few are wanted, take no time to speak of.
void test_weighted_all_alike() {
  Random random(4);
  const Codes codes = random_codes(random, Kind::kUniform, 100000, 64);
  const Base base = make_base(random, codes, 64, Lists::kNone);
  const std::vector<float> weights(64, 0.0f);
  const auto found = nearest_weighted(base.view(), codes[0].data(), weights.data(), 1, 3, 1).front();
  CHECK(found.rows == (std::vector<uint32_t>{0, 1, 2}));
}

// ------------------------------------------------------------------------------------------ histograms

void test_histograms(Random& random, const Codes& codes, size_t n_bits, size_t n_queries, size_t n_threads) {
  const Base base = make_base(random, codes, n_bits, Lists::kNone);
  const Codes queries = queries_for(random, codes, n_queries, n_bits);
  const auto n = static_cast<int64_t>(codes.size());
  const auto some = [&] { return int64_t{random.below(static_cast<uint32_t>(n) + 1)}; };
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> begin(n_queries), end(n_queries);
  for (size_t q = 0; q < n_queries; ++q) {
    begin[q] = some(), end[q] = some();
    if (q % 6 == 1) begin[q] = end[q];                                 // nothing
    if (q % 6 == 2 && begin[q] < end[q]) std::swap(begin[q], end[q]);  // less than nothing
    if (q % 6 == 3) begin[q] = 0, end[q] = n;                          // all
    if (q % 6 == 4) begin[q] = kFirst, end[q] = kLast;                 // more than all
    if (q % 6 == 5) begin[q] = kLast, end[q] = kFirst;
  }
  std::vector<int64_t> counts(n_queries * (n_bits + 1), 77), hits(counts), wanted_counts(counts.size()),
      wanted_hits(counts.size());
  for (size_t q = 0; q < n_queries; ++q)
    for (int64_t c = 0; c < n; ++c) {
      const size_t at = q * (n_bits + 1) + static_cast<size_t>(distance(codes[static_cast<size_t>(c)], queries[q]));
      ++wanted_counts[at];
      wanted_hits[at] += begin[q] <= c && c < end[q];
    }
  distance_histograms(base.view(), flat(queries).data(), n_queries, begin.data(), end.data(), n_threads, counts.data(),
                      hits.data());
  CHECK(counts == wanted_counts);
  CHECK(hits == wanted_hits);
}

// Padding that is not zero, as in a damaged file: nothing is written outside the histograms, nothing counted twice.
void test_dirty_padding() {
  for (const size_t n_bits : {1, 3, 4, 5, 7, 9, 60, 65, 247, 250, 257, 301}) {
    Random random(n_bits);
    const Codes codes = random_codes(random, Kind::kUniform, 75, n_bits);
    const Codes queries = queries_for(random, codes, 7, n_bits);
    Base dirty = make_base(random, codes, n_bits, Lists::kNone);
    Codes asked = queries;
    const auto padding = [&] { return static_cast<uint8_t>(random.below(1u << (8 - n_bits % 8) % 8)); };
    for (Code& code : dirty.codes) code.back() |= padding();
    for (Code& code : asked) code.back() |= padding();
    set_tiles(dirty);

    std::vector<int64_t> counts(7 * (n_bits + 1)), hits(counts), wanted(counts), begin(7, 0), end(7, 1);
    distance_histograms(dirty.view(), flat(asked).data(), 7, begin.data(), end.data(), 1, counts.data(), hits.data());
    const auto found = nearest(dirty.view(), flat(asked).data(), 7, 40, static_cast<int32_t>(n_bits), 1);
    const Base clean = make_base(random, codes, n_bits, Lists::kNone);
    for (size_t q = 0; q < 7; ++q) {
      for (const Code& code : codes) ++wanted[q * (n_bits + 1) + static_cast<size_t>(distance(code, queries[q]))];
      CHECK(is_beginning(found[q], ranking(clean, queries[q]), 40, static_cast<int32_t>(n_bits)));
    }
    CHECK(counts == wanted);
  }
}

// ------------------------------------------------------------------------------------------ damage

template <class Search>
bool refused(const Search& search) {
  try {
    search();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// Lists that point outside the rows or run backwards are never followed.
void test_damaged_offsets() {
  Random random(11);
  const Codes codes = random_codes(random, Kind::kFewDistinct, 3000, 32);
  const Codes queries = queries_for(random, codes, 5, 32);
  const std::vector<float> weights(5 * 32, 1.0f);
  const auto searches_refused = [&](const Base& base, size_t n_threads) {
    const CodeBase view = base.view();
    return refused([&] { nearest(view, flat(queries).data(), 5, 9999, 32, n_threads); }) &&
           refused([&] { nearest_weighted(view, flat(queries).data(), weights.data(), 5, 9999, n_threads); });
  };
  for (const Lists lists : {Lists::kAll, Lists::kFiltered}) {
    const Base sound = make_base(random, codes, 32, lists);
    CHECK(!searches_refused(sound, 1));
    for (const size_t n_threads : {1, 2})
      for (const uint32_t wrong : {0u, 3001u, 0x80000000u, 0xFFFFFFFFu}) {
        Base base = sound;
        base.offsets[2] = wrong;
        CHECK(searches_refused(base, n_threads));
      }
  }
}

// ------------------------------------------------------------------------------------------ threads

// A thread that the system refuses after the second, or the memory for it.
struct RareThread {
  static int left;
  static bool memory;
  template <class Run>
  explicit RareThread(const Run& run) : thread(begin(run)) {}
  template <class Run>
  static std::thread begin(const Run& run) {
    if (left == 0 && !memory) throw std::bad_alloc();
    if (left-- == 0) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::thread(run);
  }
  void join() { thread.join(); }
  std::thread thread;
};
int RareThread::left = 0;
bool RareThread::memory = true;

void test_threads() {
  for (const size_t n : {0, 1, 2, 50}) {
    for (const size_t n_threads : {0, 1, 3, 70}) {
      std::vector<std::atomic<int>> done(n);
      in_parallel(n, n_threads, [&](size_t i) { ++done[i]; });
      CHECK(std::all_of(done.begin(), done.end(), [](int times) { return times == 1; }));
    }
    for (const int granted : {0, 2, 10, 12}) {
      RareThread::left = granted % 10;
      RareThread::memory = granted >= 10;
      std::vector<std::atomic<int>> done(n);
      in_parallel<RareThread>(n, 5, [&](size_t i) { ++done[i]; });
      CHECK(std::all_of(done.begin(), done.end(), [](int times) { return times == 1; }));
    }
  }
  for (const size_t n_threads : {1, 3}) {
    std::string heard;
    try {
      in_parallel(20, n_threads, [](size_t i) {
        if (i >= 7) throw std::runtime_error("from a thread");
      });
    } catch (const std::runtime_error& error) {
      heard = error.what();
    }
    CHECK(heard == "from a thread");
    size_t starved = 0;
    try {
      in_parallel(20, n_threads, [](size_t) { throw std::bad_alloc(); });
    } catch (const std::bad_alloc&) {
      ++starved;
    }
    CHECK(starved == 1);
  }
}

// Whoever called is asked between two pieces of work, no other thread is, and what it throws ends the work.
struct Stop {};
std::thread::id asked_in;
void test_interruption() {
  for (const size_t n_threads : {1, 3}) {
    std::atomic<size_t> done{0};
    bool stopped = false;
    interruption_check = [] {
      asked_in = std::this_thread::get_id();
      throw Stop{};
    };
    try {
      in_parallel(1000, n_threads, [&](size_t) {
        ++done;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    } catch (const Stop&) {
      stopped = true;
    }
    interruption_check = nullptr;
    CHECK(stopped && done < 1000);
    CHECK(asked_in == std::this_thread::get_id());
  }
}

// Few queries, and a part of the base for each thread.
void test_shared_base() {
  Random random(6);
  const Codes codes = random_codes(random, Kind::kUniform, 7000, 20);
  const Codes queries = queries_for(random, codes, 6, 20);
  for (const Lists lists : {Lists::kNone, Lists::kAll, Lists::kFiltered, Lists::kShuffled}) {
    const Base base = make_base(random, codes, 20, lists);
    CHECK(base.codes.size() >= 3 * kMostBlockCodes);
    test_nearest(random, base, queries, 3);
  }
}

// More threads than anybody has, and none: the same answers.
void test_senseless_numbers_of_threads() {
  Random random(5);
  const Codes codes = random_codes(random, Kind::kUniform, 9000, 16);
  const Base base = make_base(random, codes, 16, Lists::kAll);
  const Codes queries = queries_for(random, codes, 6, 16);
  for (const size_t n_threads : {size_t{0}, size_t{1000}, size_t{1} << 61, std::numeric_limits<size_t>::max()}) {
    test_nearest(random, base, queries, n_threads);
    test_weighted(random, base, queries, Weights::kDyadic, n_threads);
    test_histograms(random, Codes(codes.begin(), codes.begin() + 100), 16, 30, n_threads);
  }
}

// ------------------------------------------------------------------------------------------ all together

void test_width(size_t n_bits, size_t n, size_t n_queries, size_t n_threads) {
  Random random(n_bits * 1000003 + n * 17 + n_queries);
  const Kind kind = kKinds[random.below(5)];
  const Codes codes = random_codes(random, kind, n, n_bits);
  test_tiles(random, codes, n_bits);
  test_groups(codes, n_bits);
  test_collect(random, codes, n_bits, 1 + n_queries % 4);
  test_histograms(random, codes, n_bits, n_queries, n_threads);
  const Codes queries = queries_for(random, codes, n_queries, n_bits);
  for (const Lists lists : {Lists::kNone, Lists::kAll, Lists::kFiltered, Lists::kShuffled}) {
    const Base base = make_base(random, codes, n_bits, lists);
    test_nearest(random, base, queries, n_threads);
    test_weighted(random, base, queries, kWeights[random.below(5)], n_threads);
  }
}

// Codes that crowd get an order with ranges, which hold every code of their blocks and change no answer.
void test_pivots(size_t n_bits) {
  Random random(n_bits);
  const size_t m = (n_bits + 7) / 8;
  Codes codes, pool;
  for (size_t i = 0; i < 6; ++i) pool.push_back(random_code(random, n_bits));
  for (size_t i = 0; i < 20000; ++i) {
    codes.push_back(pool[random.below(6)]);
    for (size_t bit = 0; bit < n_bits; ++bit)
      if (random.below(12) == 0) flip(codes.back(), static_cast<uint32_t>(bit));
  }
  const std::vector<uint8_t> bytes = flat(codes);
  std::vector<uint32_t> rows(codes.size());
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  const PivotOrder found = order_by_pivots(bytes.data(), rows.data(), rows.size(), m, n_bits);
  CHECK(found.order.size() == codes.size());
  std::vector<bool> met(codes.size(), false);
  for (size_t i = 0; i < found.order.size(); ++i) {
    met[found.order[i]] = true;
    const PivotRange range = found.ranges[i / kRangeCodes];
    const Code pivot(found.pivots.begin() + static_cast<std::ptrdiff_t>(range.pivot * m),
                     found.pivots.begin() + static_cast<std::ptrdiff_t>((range.pivot + 1) * m));
    const auto d = distance(codes[found.order[i]], pivot);
    CHECK(static_cast<int64_t>(d) >= range.nearest && static_cast<int64_t>(d) <= range.farthest);
  }
  CHECK(std::find(met.begin(), met.end(), false) == met.end());
  std::vector<uint8_t> plain((codes.size() + kTile - 1) / kTile * kTile * m), ordered(plain.size());
  fill_tiles(bytes.data(), nullptr, codes.size(), m, plain.data());
  fill_tiles(bytes.data(), found.order.data(), codes.size(), m, ordered.data());
  const auto n = static_cast<uint32_t>(codes.size());
  const CodeBase scanned{plain.data(), n, m, n_bits, nullptr, nullptr, true, {}};
  const PivotRanges ranges{found.pivots.data(), found.pivots.size() / m, found.ranges.data()};
  const CodeBase by_pivots{ordered.data(), n, m, n_bits, nullptr, found.order.data(), false, ranges};
  std::vector<uint8_t> queries = flat(queries_for(random, codes, 9, n_bits));
  // Padding of a query does not count: neither in distances to codes, nor in those to pivots.
  for (size_t q = 1; q <= 9; ++q) queries[q * m - 1] |= static_cast<uint8_t>((1u << (8 * m - n_bits)) - 1);
  for (const size_t k : {size_t{1}, size_t{10}, size_t{3000}})
    for (const int32_t radius : {0, 2, static_cast<int32_t>(n_bits)}) {
      const auto expected = nearest(scanned, queries.data(), 9, k, radius, 1);
      const auto answers = nearest(by_pivots, queries.data(), 9, k, radius, 2);
      for (size_t q = 0; q < 9; ++q)
        CHECK(answers[q].rows == expected[q].rows && answers[q].distances == expected[q].distances);
    }
}

}  // namespace

int main() {
  std::printf("vector kernels: %s\n", vector_level());
  constexpr size_t kSizes[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 513};
  for (size_t n_bits = 1; n_bits <= 80; ++n_bits)
    for (const size_t i : {0, 1}) {
      const size_t n = kSizes[(2 * n_bits + i) % 11], n_queries = 1 + (n_bits + 4 * i) % 9;
      test_width(n_bits, n, n_queries, 1 + n_bits % 3);
    }
  for (const size_t n_bits : {247, 248, 249, 254, 255, 256, 257, 264, 496, 497, 511, 512, 1000})
    test_width(n_bits, 150, 1 + n_bits % 9, 1 + n_bits % 3);
  for (const size_t n_bits : {2048, 4096, 5000}) test_width(n_bits, 65, 3 + n_bits % 9, 1);
  for (const size_t n_bits : {3, 24, 64, 256}) test_width(n_bits, 5000, 5, 2);
  test_width(kMostBits, 2, 2, 1);
  test_width(40, 300, 130, 3);
  test_width(256, 100, 130, 2);
  for (const size_t n_bits : {1, 7, 8, 9, 64, 255, 256, 257}) test_every_distance(n_bits);
  for (const size_t n_bits : {24, 67, 300}) test_pivots(n_bits);
  for (const size_t n_bits : {6, 10, 14, 20})
    for (const Lists lists : {Lists::kNone, Lists::kAll, Lists::kFiltered, Lists::kShuffled}) test_ties(n_bits, lists);
  test_weighted_order();
  test_weighted_all_alike();
  test_dirty_padding();
  test_damaged_offsets();
  test_threads();
  test_interruption();
  test_shared_base();
  test_senseless_numbers_of_threads();
  return testing::all_passed("scan");
}
