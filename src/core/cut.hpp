// What tie-aware precision at k needs to know of each query, kept up to date bit by bit.
//
// The k nearest of a query end somewhere among the points at one distance, the edge. Precision at k needs four whole
// numbers: how many points lie before the edge and on it, and how many of them are relevant. One more bit adds 0 or 1
// to every distance, so the edge e stays or becomes e + 1, and the four numbers follow from how many points at the
// distances e - 1, e and e + 1 differ from the query in that bit. So all bits of a pool can be tried at once: the codes
// of those points are added up by column, which takes a few logical operations per point and 64 bits of the pool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ilhash {

struct Cut {
  int32_t before, hits_before;  // points nearer than the edge, and relevant ones among them
  int32_t places, hits;         // points at the edge, and relevant ones among them
};

// Codes as rows of 64-bit words: bit j is bit j % 64 of word j / 64, padding is zero.
struct WordCodes {
  const uint64_t* words;
  size_t n, n_bits;
  size_t n_words() const { return (n_bits + 63) / 64; }
  bool bit(size_t row, size_t j) const { return words[row * n_words() + j / 64] >> (j % 64) & 1; }
};

class CutCounts {
 public:
  // relevant[q * n_base + i] says whether point i is relevant to query q; 1 <= k <= n_base. All distances are 0.
  CutCounts(const uint8_t* relevant, size_t n_queries, size_t n_base, size_t k);

  size_t n_queries() const { return cuts_.size(); }
  size_t n_base() const { return n_base_; }
  size_t n_bits() const { return n_bits_; }

  // One bit more: 0 or 1 for each base point and each query.
  void add(const uint8_t* base_bits, const uint8_t* query_bits, size_t n_threads);

  // The cut of each query, with the bits that were added.
  const std::vector<Cut>& cuts() const { return cuts_; }

  // out[q * pool.n_bits + j]: the cut of query q if bit j of the pool were added.
  void with_each(const WordCodes& pool, const WordCodes& queries, size_t n_threads, Cut* out) const;

 private:
  void renew(size_t query);

  size_t n_base_, k_, n_bits_ = 0;
  std::vector<uint8_t> relevant_;
  std::vector<uint16_t> distances_, edges_;
  std::vector<Cut> cuts_;
};

}  // namespace ilhash
