// The k nearest items, by counting.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "buffer.hpp"
#include "scan.hpp"
#include "scan_queries.hpp"

namespace ilhash {

namespace {

constexpr size_t kBatch = 128;  // queries that pass over the base together, at most

uint32_t code_of(uint64_t candidate) { return static_cast<uint32_t>(candidate); }
int32_t distance_of(uint64_t candidate) { return static_cast<int32_t>(candidate >> 32); }

// The k nearest items of one query, found by counting. Candidates are codes; they come in ascending order.
//
// `edge_` is the smallest distance within which k items were seen: nothing farther can be an answer. Of the codes at
// the edge itself only as many are needed as items are missing, those whose lists begin with the smallest rows: each of
// them has at least one item that comes before every item of a code that begins later.
class Nearest {
 public:
  // Candidates are kept in `storage` as long as they fit.
  Nearest(const CodeBase& base, size_t k, int32_t max_distance, uint64_t* storage, size_t capacity)
      : base_(&base), k_(k), edge_(std::min<int32_t>(max_distance, static_cast<int32_t>(base.n_bits))),
        items_(edge_ + 1, 0), codes_(edge_ + 1, 0), kept_(storage), capacity_(capacity) {}

  int32_t limit() const {
    if (k_ == 0) return -1;
    if (seen_ < k_ || !base_->ordered) return std::min(edge_, guess_);
    return std::min(codes_[edge_] >= missing_at_edge() ? edge_ - 1 : edge_, guess_);
  }

  // Looks no farther than a distance within which the answers are likely to lie. If they do not, `complete` tells, and
  // the search must be done again.
  void guess(int32_t distance) { guess_ = distance; }
  bool complete() const { return seen_ >= k_ || guess_ >= edge_; }

  void accept(const uint64_t* candidates, size_t n) {
    if (n == 0) return;
    if (n_kept_ + n > capacity_) make_room(n);
    uint64_t* to = kept_ + n_kept_;
    for (size_t i = 0; i < n; ++i) {
      const int32_t d = distance_of(candidates[i]);
      const size_t items = base_->n_items(code_of(candidates[i]));
      items_[d] += items;
      codes_[d] += items != 0;
      seen_ += d <= edge_ ? items : 0;
      *to = candidates[i];
      to += items != 0;
    }
    n_kept_ = static_cast<size_t>(to - kept_);
    while (edge_ > 0 && seen_ - items_[edge_] >= k_) seen_ -= items_[edge_--];
  }

  // Takes over what was found in a later part of the base.
  void absorb(const Nearest& later) { accept(later.kept_, later.n_kept_); }

  // To be called once, at the end: the candidates are given up, or the many of a large radius would lie beside the
  // answers of the whole batch.
  Matches matches() {
    drop_the_far();
    const auto levels = by_distance();
    overflow_.reset();
    Matches out;
    const size_t total = std::min(k_, seen_);
    out.distances.reserve(total);
    out.rows.reserve(total);
    for (int32_t d = 0; d <= edge_; ++d) {
      append_rows(*base_, levels.first.data() + levels.second[d], levels.first.data() + levels.second[d + 1],
                  total - out.rows.size(), out.rows);
      out.distances.resize(out.rows.size(), d);
    }
    return out;
  }

 private:
  size_t missing_at_edge() const { return k_ > seen_ - items_[edge_] ? k_ - (seen_ - items_[edge_]) : 0; }

  void make_room(size_t n) {
    drop_the_far();
    if (n_kept_ + n <= capacity_ / 4 * 3) return;  // or there would be no room again after the next few
    capacity_ = 2 * (n_kept_ + n);
    std::unique_ptr<uint64_t[]> larger(new uint64_t[capacity_]);  // not zeroed: what is not used takes no memory
    std::copy(kept_, kept_ + n_kept_, larger.get());
    overflow_ = std::move(larger);
    kept_ = overflow_.get();
  }

  void drop_the_far() {
    const size_t most_at_edge = seen_ < k_ ? n_kept_ : missing_at_edge();
    uint64_t* const begin = kept_;
    uint64_t* const end = begin + n_kept_;
    if (!base_->ordered && codes_[edge_] > most_at_edge) choose_at_edge(most_at_edge);
    size_t at_edge = 0;
    uint64_t* to = begin;
    for (const uint64_t* from = begin; from != end; ++from) {  // without branches: nobody could foresee them
      const int32_t d = distance_of(*from);
      at_edge += d == edge_;
      *to = *from;
      to += (d < edge_) | ((d == edge_) & (at_edge <= most_at_edge));
    }
    n_kept_ = static_cast<size_t>(to - begin);
    codes_[edge_] = std::min(at_edge, most_at_edge);
  }

  // Where lists do not begin in ascending order: of the codes at the edge, those with the smallest first rows to the
  // front of the kept ones (their order among themselves no longer matters).
  void choose_at_edge(size_t n) {
    uint64_t* const end = kept_ + n_kept_;
    uint64_t* const ties = std::partition(kept_, end, [&](uint64_t c) { return distance_of(c) != edge_; });
    const auto first_row = [&](uint64_t c) { return base_->first_row(code_of(c)); };
    if (n < static_cast<size_t>(end - ties))
      std::nth_element(ties, ties + n, end, [&](uint64_t a, uint64_t b) { return first_row(a) < first_row(b); });
  }

  // The kept codes sorted by distance, and where each distance begins.
  std::pair<std::vector<uint32_t>, std::vector<size_t>> by_distance() const {
    std::vector<size_t> begin(edge_ + 2, 0);
    for (size_t i = 0; i < n_kept_; ++i) ++begin[distance_of(kept_[i]) + 1];
    for (int32_t d = 0; d <= edge_; ++d) begin[d + 1] += begin[d];
    std::vector<uint32_t> sorted(n_kept_);
    std::vector<size_t> next(begin);
    for (size_t i = 0; i < n_kept_; ++i) sorted[next[distance_of(kept_[i])]++] = code_of(kept_[i]);
    return {std::move(sorted), std::move(begin)};
  }

  const CodeBase* base_;
  size_t k_;
  int32_t edge_;
  int32_t guess_ = INT32_MAX;
  size_t seen_ = 0;  // items within the edge
  std::vector<size_t> items_, codes_;
  uint64_t* kept_;
  size_t capacity_, n_kept_ = 0;
  std::unique_ptr<uint64_t[]> overflow_;  // where kept_ points once the storage is outgrown
};

// The states of some queries, and the storage they share. The storage stays with the thread for the next batch.
class Batch {
 public:
  Batch(const CodeBase& base, size_t n_queries, size_t k, int32_t max_distance)
      : capacity_(std::min(2 * std::min(k, kLargestStored) + 2 * kMostBlockCodes, base.n_codes + kMostBlockCodes)),
        storage_(n_queries * capacity_) {
    queries_.reserve(n_queries);
    for (size_t q = 0; q < n_queries; ++q)
      queries_.emplace_back(base, k, max_distance, storage_.data() + q * capacity_, capacity_);
  }
  Nearest& operator[](size_t q) { return queries_[q]; }
  size_t size() const { return queries_.size(); }

  // What `other` found for its only query is what query q is to answer.
  void replace(size_t q, Batch& other) {
    queries_[q] = std::move(other.queries_[0]);
    replaced_.push_back(std::move(other.storage_));
  }

 private:
  static constexpr size_t kLargestStored = 10000;
  size_t capacity_;
  Buffer<uint64_t> storage_;
  std::vector<Nearest> queries_;
  std::vector<Buffer<uint64_t>> replaced_;
};

void look_at(const CodeBase& base, size_t first, size_t n, const Queries::Group& group, Batch& states,
             std::vector<uint64_t>& scratch) {
  int32_t limit[kQueryGroup];
  uint64_t* found[kQueryGroup];
  size_t n_found[kQueryGroup];
  for (size_t q = 0; q < kQueryGroup; ++q) {
    limit[q] = q < group.n ? states[group.first + q].limit() : -1;
    found[q] = scratch.data() + q * scratch.size() / kQueryGroup;
  }
  scan_kernels().collect(base.tiles + first * base.m, n, base.m, group.n_kernel, group.tables, group.codes, limit,
                         static_cast<uint32_t>(first), found, n_found);
  for (size_t q = 0; q < group.n; ++q) states[group.first + q].accept(found[q], n_found[q]);
}

void pass(const CodeBase& base, size_t from, size_t to, const Queries& queries, Batch& states) {
  std::vector<uint64_t> scratch(kQueryGroup * (block_codes(base.m) + kCollectSlack));
  walk(base, from, to, queries.n_groups(),
       [&](size_t first, size_t n, size_t g) { look_at(base, first, n, queries.group(g), states, scratch); });
}

// Where many neighbours are wanted, a sample of the tiles tells early how far they lie: without it, the first codes
// would all be candidates, and with it hardly more than are wanted.
void guess_from_sample(const CodeBase& base, const Queries& queries, size_t k, Batch& states) {
  const size_t n_tiles = base.n_codes / kTile;  // whole ones
  const size_t n_sample = std::min<size_t>(128, std::max<size_t>(16, n_tiles / 64));
  const double expected = static_cast<double>(k * n_sample * kTile) / base.n_codes;
  if (n_tiles < 4 * n_sample || expected < 3) return;
  const auto wanted = static_cast<size_t>(expected + 3 * std::sqrt(expected) + 1);
  if (wanted >= n_sample * kTile / 2) return;
  uint16_t distances[kQueryGroup][kTile];
  uint16_t* const to[kQueryGroup] = {distances[0], distances[1], distances[2], distances[3]};
  for (size_t g = 0; g < queries.n_groups(); ++g) {
    const Queries::Group group = queries.group(g);
    std::vector<uint32_t> counts(kQueryGroup * (base.n_bits + 1), 0);
    for (size_t t = 0; t < n_sample; ++t) {
      const uint8_t* const tile = base.tiles + t * n_tiles / n_sample * base.m * kTile;
      scan_kernels().distances_wide(tile, 1, base.m, group.n_kernel, group.tables, to);
      for (size_t q = 0; q < group.n; ++q)
        for (const uint16_t d : distances[q]) ++counts[q * (base.n_bits + 1) + d];
    }
    for (size_t q = 0; q < group.n; ++q) {
      int32_t distance = 0;
      const uint32_t* const at = counts.data() + q * (base.n_bits + 1);
      for (size_t seen = at[0]; seen < wanted; seen += at[++distance]) continue;
      states[group.first + q].guess(distance);
    }
  }
}

void pass_with_guess(const CodeBase& base, const Queries& queries, size_t k, int32_t max_distance, Batch& states) {
  guess_from_sample(base, queries, k, states);
  pass(base, 0, base.n_codes, queries, states);
  for (size_t q = 0; q < states.size(); ++q)
    if (!states[q].complete()) {  // one in some hundreds
      Batch again(base, 1, k, max_distance);
      const Queries alone(queries.code(q), 1, base.n_bits);
      pass(base, 0, base.n_codes, alone, again);
      states.replace(q, again);
    }
}

// Few queries, several threads: each thread takes a part of the base, and the parts are put together in their order.
void pass_in_parts(const CodeBase& base, const Queries& queries, std::vector<Batch>& parts) {
  const size_t n_tiles = (base.n_codes + kTile - 1) / kTile, n = parts.size();
  const size_t part = (n_tiles + n - 1) / n * kTile;
  const auto begin = [&](size_t i) { return std::min<size_t>(i * part, base.n_codes); };
  in_parallel(n, n, [&](size_t i) { pass(base, begin(i), begin(i + 1), queries, parts[i]); });
  for (size_t i = 1; i < n; ++i)
    for (size_t q = 0; q < parts[0].size(); ++q) parts[0][q].absorb(parts[i][q]);
}

// The blocks of the base, those first whose ranges promise the nearest codes, and the bound that each range gives.
struct BlockOrder {
  std::vector<uint32_t> blocks;
  std::vector<uint32_t> until;  // until[d]: where the blocks with a bound above d begin

  BlockOrder(const CodeBase& base, const uint8_t* query) : until(base.n_bits + 2, 0) {
    const PivotRanges& ranges = base.ranges;
    std::vector<int32_t> to_pivot(ranges.n_pivots, 0);
    const unsigned counted = 0xFFu << (8 * base.m - base.n_bits);  // in the last byte: padding does not count
    for (size_t p = 0; p < ranges.n_pivots; ++p)
      for (size_t j = 0; j < base.m; ++j) {
        unsigned bits = query[j] ^ unsigned { ranges.pivots[p * base.m + j] };
        if (j + 1 == base.m) bits &= counted;
        for (; bits; bits &= bits - 1) ++to_pivot[p];
      }
    const size_t n_blocks = (base.n_codes + kRangeCodes - 1) / kRangeCodes;
    std::vector<uint16_t> bound(n_blocks);
    for (size_t b = 0; b < n_blocks; ++b) {
      const PivotRange range = ranges.blocks[b];
      const int32_t d = to_pivot[range.pivot];
      // Never beyond the counters, whatever a file says of its pivots and ranges.
      bound[b] = static_cast<uint16_t>(
          std::min(std::max({0, d - range.farthest, range.nearest - d}), static_cast<int32_t>(base.n_bits)));
    }
    for (const uint16_t d : bound) ++until[d + 1];
    for (size_t d = 0; d + 1 < until.size(); ++d) until[d + 1] += until[d];
    blocks.resize(n_blocks);
    for (size_t b = 0; b < n_blocks; ++b) blocks[until[bound[b]]++] = static_cast<uint32_t>(b);
  }
};

// Searches by pivots; gives up, with false, when so many blocks would have to be looked at that the scan of everything,
// whose queries share their loads, is faster.
bool search_by_pivots(const CodeBase& base, const uint8_t* query, Nearest& state) {
  constexpr size_t kGiveUp = 3;  // looks at no more than a third of the base
  const BlockOrder order(base, query);
  const Queries alone(query, 1, base.n_bits);
  const Queries::Group group = alone.group(0);
  uint64_t found[kRangeCodes + kCollectSlack];
  uint64_t* const to = found;
  size_t at = 0;
  for (int32_t bound = 0; bound <= state.limit(); ++bound)
    for (; at < order.until[static_cast<size_t>(bound)] && bound <= state.limit(); ++at) {
      if (kGiveUp * at > order.blocks.size()) return false;
      const size_t first = size_t{order.blocks[at]} * kRangeCodes, n = std::min(kRangeCodes, base.n_codes - first);
      const int32_t limit = state.limit();
      size_t n_found = 0;
      scan_kernels().collect(base.tiles + first * base.m, n, base.m, 1, group.tables, group.codes, &limit,
                             static_cast<uint32_t>(first), &to, &n_found);
      state.accept(found, n_found);
    }
  return true;
}

// Answers what pivots can answer quickly; returns the numbers of the other queries.
std::vector<size_t> answer_by_pivots(const CodeBase& base, const uint8_t* queries, size_t n_queries, size_t k,
                                     int32_t max_distance, size_t n_threads, std::vector<Matches>& out) {
  constexpr size_t kAtOnce = 8;
  std::vector<uint8_t> answered(n_queries, 0);
  in_parallel((n_queries + kAtOnce - 1) / kAtOnce, n_threads, [&](size_t i) {
    const size_t first = i * kAtOnce, n = std::min(kAtOnce, n_queries - first);
    Batch states(base, n, k, max_distance);
    for (size_t q = 0; q < n; ++q)
      if (search_by_pivots(base, queries + (first + q) * base.m, states[q])) {
        out[first + q] = states[q].matches();
        answered[first + q] = 1;
      }
  });
  std::vector<size_t> others;
  for (size_t q = 0; q < n_queries; ++q)
    if (!answered[q]) others.push_back(q);
  return others;
}

std::vector<Matches> scan(const CodeBase& base, const uint8_t* queries, size_t n_queries, size_t k,
                          int32_t max_distance, size_t n_threads) {
  std::vector<Matches> out(n_queries);
  // With fewer groups of four than threads, threads share the base; otherwise they share the queries.
  const bool share_base =
      n_threads > 1 && n_queries < kQueryGroup * n_threads && base.n_codes >= n_threads * kMostBlockCodes;
  // A few batches for each thread, or all would wait for the slowest; but small ones read the base too often.
  const size_t share = n_threads > 1 ? std::max<size_t>(kBatch / 4, n_queries / (4 * n_threads)) : n_queries;
  const size_t batch = std::min(kBatch, share_base ? n_queries : (share + kQueryGroup - 1) / kQueryGroup * kQueryGroup);
  in_parallel((n_queries + batch - 1) / batch, share_base ? 1 : n_threads, [&](size_t i) {
    const size_t first = i * batch, n = std::min(batch, n_queries - first);
    const Queries group(queries + first * base.m, n, base.n_bits);
    const size_t n_parts = share_base ? n_threads : 1;
    std::vector<Batch> parts;
    parts.reserve(n_parts);
    for (size_t part = 0; part < n_parts; ++part) parts.emplace_back(base, n, k, max_distance);
    if (share_base)
      pass_in_parts(base, group, parts);
    else
      pass_with_guess(base, group, k, max_distance, parts[0]);
    for (size_t q = 0; q < n; ++q) out[first + q] = parts[0][q].matches();
  });
  return out;
}

}  // namespace

std::vector<Matches> nearest(const CodeBase& base, const uint8_t* queries, size_t n_queries, size_t k,
                             int32_t max_distance, size_t n_threads) {
  if (n_queries == 0) return {};
  n_threads = sensible_threads(n_threads);
  k = std::min(k, base.n_items());
  if (!base.ranges.pivots) return scan(base, queries, n_queries, k, max_distance, n_threads);
  std::vector<Matches> out(n_queries);
  const std::vector<size_t> others = answer_by_pivots(base, queries, n_queries, k, max_distance, n_threads, out);
  if (others.empty()) return out;
  std::vector<uint8_t> codes;
  for (const size_t q : others) codes.insert(codes.end(), queries + q * base.m, queries + (q + 1) * base.m);
  std::vector<Matches> rest = scan(base, codes.data(), others.size(), k, max_distance, n_threads);
  for (size_t i = 0; i < others.size(); ++i) out[others[i]] = std::move(rest[i]);
  return out;
}

}  // namespace ilhash
