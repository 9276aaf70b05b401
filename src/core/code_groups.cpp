// Tiles, and equal codes brought together.
#include <algorithm>
#include <cstring>
#include <queue>
#include <stdexcept>
#include <utility>

#include "random.hpp"
#include "scan.hpp"
#include "scan_queries.hpp"

namespace ilhash {

void CodeBase::throw_broken_list() {
  throw std::invalid_argument("offsets must ascend and must not exceed the number of rows");
}

void fill_tiles(const uint8_t* codes, const uint32_t* rows, size_t n_codes, size_t m, uint8_t* tiles) {
  for (size_t first = 0; first < n_codes; first += kTile, tiles += m * kTile) {
    const size_t n = std::min(kTile, n_codes - first);
    if (n < kTile) std::memset(tiles, 0, m * kTile);
    for (size_t c = 0; c < n; ++c) {
      const uint8_t* const code = codes + (rows ? size_t{rows[first + c]} : first + c) * m;
      for (size_t j = 0; j < m; ++j) tiles[j * kTile + c] = code[j];
    }
  }
}

void read_tiles(const uint8_t* tiles, const uint32_t* codes, size_t n_codes, size_t m, uint8_t* out) {
  for (size_t i = 0; i < n_codes; ++i, out += m) {
    const size_t code = codes ? codes[i] : i;
    const uint8_t* const from = tiles + code / kTile * m * kTile + code % kTile;
    for (size_t j = 0; j < m; ++j) out[j] = from[j * kTile];
  }
}

namespace {

uint64_t hash_of(const uint8_t* code, size_t m) {
  uint64_t hash = 0x9E3779B97F4A7C15ULL * m;
  for (size_t j = 0; j < m; j += 8) {
    uint64_t word = 0;
    std::memcpy(&word, code + j, std::min<size_t>(8, m - j));
    hash = (hash ^ word) * 0x9FB21C651E98DF25ULL;
    hash ^= hash >> 32;
  }
  return mix64(hash);
}

// Numbers equal codes alike, in the order of their first rows. Open addressing; a slot holds half the hash and the
// number of the code, so other codes are hardly ever read.
class CodeNumbers {
 public:
  CodeNumbers(const uint8_t* codes, size_t n, size_t m) : codes_(codes), m_(m) {
    size_t size = 64;
    while (size < 2 * n) size *= 2;
    slots_.assign(size, 0);
  }

  void expect(uint64_t hash) const {
#if defined(__GNUC__)
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
#else
    (void)hash;
#endif
  }

  uint32_t number(uint32_t row, uint64_t hash) {
    const uint64_t tag = hash >> 32 << 32;
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      const uint64_t slot = slots_[at];
      const auto code = static_cast<uint32_t>(slot) - 1;  // zero: an empty slot
      if (static_cast<uint32_t>(slot) == 0) {
        representative.push_back(row);
        slots_[at] = tag | representative.size();
        return static_cast<uint32_t>(representative.size() - 1);
      }
      if ((slot >> 32 << 32) == tag &&
          std::memcmp(codes_ + size_t{row} * m_, codes_ + size_t{representative[code]} * m_, m_) == 0)
        return code;
    }
  }

  std::vector<uint32_t> representative;

 private:
  const uint8_t* codes_;
  size_t m_;
  std::vector<uint64_t> slots_;
};

}  // namespace

Groups group_codes(const uint8_t* codes, size_t n, size_t m) {
  constexpr size_t kAhead = 32;  // rows whose slots are on their way from memory
  Groups out;
  CodeNumbers numbers(codes, n, m);
  std::vector<uint32_t> code_of_row(n);
  uint64_t hashes[kAhead];
  for (size_t first = 0; first < n; first += kAhead) {
    const size_t count = std::min(kAhead, n - first);
    for (size_t i = 0; i < count; ++i) numbers.expect(hashes[i] = hash_of(codes + (first + i) * m, m));
    for (size_t i = 0; i < count; ++i)
      code_of_row[first + i] = numbers.number(static_cast<uint32_t>(first + i), hashes[i]);
  }
  out.representative = std::move(numbers.representative);
  if (out.representative.size() == n) return out;
  out.offsets.assign(out.representative.size() + 1, 0);
  for (const uint32_t code : code_of_row) ++out.offsets[code + 1];
  for (size_t c = 0; c < out.representative.size(); ++c) out.offsets[c + 1] += out.offsets[c];
  std::vector<uint32_t> next(out.offsets.begin(), out.offsets.end() - 1);
  out.rows.resize(n);
  for (size_t row = 0; row < n; ++row) out.rows[next[code_of_row[row]]++] = static_cast<uint32_t>(row);
  return out;
}

void append_rows(const CodeBase& base, const uint32_t* code, const uint32_t* end, size_t n,
                 std::vector<uint32_t>& out) {
  if (!base.offsets) {
    const size_t n_all = static_cast<size_t>(end - code), start = out.size();
    for (; code != end; ++code) out.push_back(base.first_row(*code));
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(start);
    if (n < n_all) {
      if (!base.ordered) std::nth_element(first, first + static_cast<std::ptrdiff_t>(n), out.end());
      out.resize(start + n);
    }
    if (!base.ordered) std::sort(out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    return;
  }
  using List = std::pair<const uint32_t*, const uint32_t*>;
  const auto list_of = [&](uint32_t c) { return List(base.rows + base.offsets[c], base.rows + base.offsets[c + 1]); };
  if (end - code == 1) {
    const List list = list_of(*code);
    out.insert(out.end(), list.first, list.first + std::min<size_t>(n, static_cast<size_t>(list.second - list.first)));
    return;
  }
  size_t n_all = 0;
  for (const uint32_t* c = code; c != end; ++c) n_all += base.n_items(*c);
  if (n_all <= 8 * n) {  // few more than are wanted: choosing among all of them is faster than merging lists
    const size_t start = out.size();
    for (; code != end; ++code) out.insert(out.end(), list_of(*code).first, list_of(*code).second);
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(start);
    if (n < n_all) {
      std::nth_element(first, first + static_cast<std::ptrdiff_t>(n), out.end());
      out.resize(start + n);
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    return;
  }
  const auto later = [](const List& a, const List& b) { return *a.first > *b.first; };
  std::priority_queue<List, std::vector<List>, decltype(later)> heads(later);
  for (; code != end; ++code)
    if (base.n_items(*code)) heads.push(list_of(*code));
  for (; n && !heads.empty(); --n) {
    List list = heads.top();
    heads.pop();
    out.push_back(*list.first);
    if (++list.first != list.second) heads.push(list);
  }
}

}  // namespace ilhash
