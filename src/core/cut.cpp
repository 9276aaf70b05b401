#include "cut.hpp"

#include <algorithm>
#include <stdexcept>

#include "scan_queries.hpp"

namespace ilhash {

namespace {

// Counts of ones by column. Level l of the counter of a column is one bit of plane l, so that 64 columns are added up
// at once; seven rows at a time become three planes before they are added.
class ColumnCounts {
 public:
  explicit ColumnCounts(size_t n_words) : n_words_(n_words), planes_(kPlanes * n_words) {}

  // Counts the rows that `rows` names; counts[j] is then the number of ones in column j.
  void count(const uint64_t* words, const std::vector<uint32_t>& rows, size_t n_columns, uint32_t* counts) {
    std::fill(planes_.begin(), planes_.end(), 0);
    depth_ = 0;
    size_t i = 0;
    for (; i + 7 <= rows.size(); i += 7) {
      const uint64_t* seven[7];
      for (size_t r = 0; r < 7; ++r) seven[r] = words + rows[i + r] * n_words_;
      add_seven(seven, i + 7);
    }
    for (; i < rows.size(); ++i) add_one(words + rows[i] * n_words_, i + 1);
    std::fill(counts, counts + n_columns, 0u);
    for (size_t level = 0; level < depth_; ++level)
      for (size_t w = 0; w < n_words_; ++w) {
        const uint64_t plane = planes_[level * n_words_ + w];
        const size_t first = 64 * w, n = std::min<size_t>(64, n_columns - first);
        for (size_t j = 0; j < n; ++j) counts[first + j] += static_cast<uint32_t>(plane >> j & 1) << level;
      }
  }

 private:
  static constexpr size_t kPlanes = 32;  // rows are counted in 32 bits

  static uint64_t majority(uint64_t a, uint64_t b, uint64_t c) { return (a & b) | ((a ^ b) & c); }

  void reach(size_t n_rows) {
    while (depth_ < kPlanes && n_rows >> depth_) ++depth_;
  }

  void carry_on(size_t level, size_t w, uint64_t carry) {
    for (; carry && level < depth_; ++level) {
      uint64_t& plane = planes_[level * n_words_ + w];
      const uint64_t next = plane & carry;
      plane ^= carry;
      carry = next;
    }
  }

  void add_one(const uint64_t* row, size_t n_rows) {
    reach(n_rows);
    for (size_t w = 0; w < n_words_; ++w) carry_on(0, w, row[w]);
  }

  void add_seven(const uint64_t* const (&row)[7], size_t n_rows) {
    reach(n_rows);
    uint64_t *const ones = planes_.data(), *const twos = ones + n_words_, *const fours = twos + n_words_;
    for (size_t w = 0; w < n_words_; ++w) {
      const uint64_t a = row[0][w], b = row[1][w], c = row[2][w], d = row[3][w], e = row[4][w], f = row[5][w];
      const uint64_t abc = a ^ b ^ c, def = d ^ e ^ f, g = row[6][w];
      const uint64_t two1 = majority(a, b, c), two2 = majority(d, e, f), two3 = majority(abc, def, g);
      const uint64_t one = abc ^ def ^ g, two = two1 ^ two2 ^ two3, four = majority(two1, two2, two3);
      const uint64_t carry1 = ones[w] & one;
      ones[w] ^= one;
      const uint64_t carry2 = majority(twos[w], two, carry1);
      twos[w] ^= two ^ carry1;
      const uint64_t carry3 = majority(fours[w], four, carry2);
      fours[w] ^= four ^ carry2;
      carry_on(3, w, carry3);
    }
  }

  size_t n_words_, depth_ = 0;
  std::vector<uint64_t> planes_;
};

constexpr size_t kLevels = 3;  // distances e - 1, e and e + 1

// The points around the edge of one query: how many differ from the query in each bit of the pool.
class Edge {
 public:
  Edge(const WordCodes& pool, size_t k) : pool_(pool), k_(k), columns_(pool.n_words()) {
    for (auto& level : ones_)
      for (auto& counts : level) counts.resize(pool.n_bits);
  }

  void look_at(const uint16_t* distance, const uint8_t* relevant, unsigned edge, const Cut& now) {
    now_ = now;
    for (auto& level : rows_)
      for (auto& rows : level) rows.clear();
    for (size_t i = 0; i < pool_.n; ++i) {
      const unsigned level = distance[i] + 1u - edge;  // wraps to a large number where a point is nearer
      if (level < kLevels) rows_[level][relevant[i]].push_back(static_cast<uint32_t>(i));
    }
    for (size_t level = 0; level < kLevels; ++level)
      for (size_t r = 0; r < 2; ++r) columns_.count(pool_.words, rows_[level][r], pool_.n_bits, ones_[level][r].data());
  }

  // The cut if bit j, which the query has or has not, were added.
  Cut with(size_t j, bool own) const {
    // Points at a distance that differ from the query in bit j, and those that do not; r: relevant or not.
    const auto leaving = [&](size_t level, size_t r) {
      const auto ones = static_cast<int32_t>(ones_[level][r][j]);
      return own ? static_cast<int32_t>(rows_[level][r].size()) - ones : ones;
    };
    const auto staying = [&](size_t level, size_t r) {
      return static_cast<int32_t>(rows_[level][r].size()) - leaving(level, r);
    };
    const int32_t hits_to_edge = now_.hits_before + staying(1, 1),
                  to_edge = now_.before + staying(1, 0) + staying(1, 1);
    if (static_cast<size_t>(to_edge) < k_) {  // the edge moves on
      const int32_t hits = leaving(1, 1) + staying(2, 1);
      return {to_edge, hits_to_edge, leaving(1, 0) + staying(2, 0) + hits, hits};
    }
    const int32_t hits_before = now_.hits_before - leaving(0, 1);
    const int32_t before = now_.before - leaving(0, 0) - leaving(0, 1);
    return {before, hits_before, to_edge - before, hits_to_edge - hits_before};
  }

 private:
  WordCodes pool_;
  size_t k_;
  Cut now_{};
  ColumnCounts columns_;
  std::vector<uint32_t> rows_[kLevels][2], ones_[kLevels][2];  // by distance, and irrelevant or relevant
};

}  // namespace

CutCounts::CutCounts(const uint8_t* relevant, size_t n_queries, size_t n_base, size_t k)
    : n_base_(n_base), k_(k), relevant_(relevant, relevant + n_queries * n_base), distances_(n_queries * n_base),
      edges_(n_queries), cuts_(n_queries) {
  if (k < 1 || k > n_base) throw std::invalid_argument("k must lie between 1 and the number of base points");
  if (n_base > INT32_MAX) throw std::invalid_argument("there must be fewer than 2^31 base points");
  for (uint8_t& value : relevant_) value = value != 0;
  for (size_t query = 0; query < n_queries; ++query) renew(query);
}

// Moves the edge on where fewer than k points are left up to it, and counts anew.
void CutCounts::renew(size_t query) {
  const uint16_t* const distance = distances_.data() + query * n_base_;
  const uint8_t* const relevant = relevant_.data() + query * n_base_;
  const auto count = [&](uint16_t edge) {
    uint32_t before = 0, hits_before = 0, places = 0, hits = 0;
    for (size_t i = 0; i < n_base_; ++i) {
      const uint32_t nearer = distance[i] < edge, at = distance[i] == edge, r = relevant[i];
      before += nearer;
      hits_before += nearer & r;
      places += at;
      hits += at & r;
    }
    return Cut{static_cast<int32_t>(before), static_cast<int32_t>(hits_before), static_cast<int32_t>(places),
               static_cast<int32_t>(hits)};
  };
  Cut cut = count(edges_[query]);
  while (static_cast<size_t>(cut.before) + static_cast<size_t>(cut.places) < k_) cut = count(++edges_[query]);
  cuts_[query] = cut;
}

void CutCounts::add(const uint8_t* base_bits, const uint8_t* query_bits, size_t n_threads) {
  if (n_bits_ == kMostBits) throw std::invalid_argument("there must be at most 65,535 bits");
  in_parallel(n_queries(), sensible_threads(n_threads), [&](size_t query) {
    uint16_t* const distance = distances_.data() + query * n_base_;
    const unsigned own = query_bits[query] != 0;
    for (size_t i = 0; i < n_base_; ++i) distance[i] = static_cast<uint16_t>(distance[i] + ((base_bits[i] != 0) ^ own));
    renew(query);
  });
  ++n_bits_;
}

void CutCounts::with_each(const WordCodes& pool, const WordCodes& queries, size_t n_threads, Cut* out) const {
  constexpr size_t kAtOnce = 16;  // queries that share the memory of an Edge
  in_parallel((n_queries() + kAtOnce - 1) / kAtOnce, sensible_threads(n_threads), [&](size_t group) {
    Edge edge(pool, k_);
    const size_t last = std::min((group + 1) * kAtOnce, n_queries());
    for (size_t query = group * kAtOnce; query < last; ++query) {
      edge.look_at(distances_.data() + query * n_base_, relevant_.data() + query * n_base_, edges_[query],
                   cuts_[query]);
      for (size_t j = 0; j < pool.n_bits; ++j) out[query * pool.n_bits + j] = edge.with(j, queries.bit(query, j));
    }
  });
}

}  // namespace ilhash
