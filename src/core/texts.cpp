#include "texts.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ilhash {

namespace {

struct Text {
  const uint8_t* begin;
  size_t size;
};

Text text_at(const Texts& texts, size_t i) {
  const int64_t begin = texts.ends[i], end = texts.ends[i + 1];
  if (begin < 0 || begin > end || static_cast<uint64_t>(end) > texts.n_bytes)
    throw std::invalid_argument("ends of texts must not descend, and must lie within the texts");
  return {texts.bytes + begin, static_cast<size_t>(end - begin)};
}

// Negative, zero or positive, by bytes: the order of UTF-8 is that of its characters.
int order(const Text& a, const Text& b) {
  const size_t shared = std::min(a.size, b.size);
  const int first = shared ? std::memcmp(a.begin, b.begin, shared) : 0;
  return first != 0 ? first : (a.size > b.size) - (a.size < b.size);
}

// Bytes that follow the first one of a character, or -1 where no character begins so; bounds are for the second byte.
int n_following(uint8_t first, uint8_t* lowest, uint8_t* highest) {
  *lowest = 0x80;
  *highest = 0xBF;
  if (first < 0x80) return 0;
  if (first < 0xC2) return -1;  // the middle of a character, or one byte written as two
  if (first < 0xE0) return 1;
  if (first < 0xF0) {
    if (first == 0xE0) *lowest = 0xA0;   // shorter forms exist
    if (first == 0xED) *highest = 0x9F;  // surrogates are no characters
    return 2;
  }
  if (first > 0xF4) return -1;
  if (first == 0xF0) *lowest = 0x90;
  if (first == 0xF4) *highest = 0x8F;  // there is nothing beyond U+10FFFF
  return 3;
}

bool is_utf8(const Text& text) {
  for (size_t i = 0; i < text.size;) {
    uint8_t lowest = 0, highest = 0;
    const int following = n_following(text.begin[i], &lowest, &highest);
    if (following < 0 || static_cast<size_t>(following) >= text.size - i) return false;
    ++i;
    for (int k = 0; k < following; ++k, ++i) {
      const uint8_t byte = text.begin[i];
      if (byte < (k == 0 ? lowest : 0x80) || byte > (k == 0 ? highest : 0xBF)) return false;
    }
  }
  return true;
}

}  // namespace

const char* fault_of(const Texts& texts) {
  if (texts.ends[0] != 0 || !std::is_sorted(texts.ends, texts.ends + texts.n + 1) ||
      static_cast<uint64_t>(texts.ends[texts.n]) != texts.n_bytes)
    return "ends of texts must begin at 0, must not descend, and must end where the texts end";
  for (size_t i = 0; i < texts.n; ++i) {
    if (!is_utf8(text_at(texts, i))) return "texts must be UTF-8";
    if (i > 0 && order(text_at(texts, i - 1), text_at(texts, i)) >= 0) return "texts must ascend and be distinct";
  }
  return nullptr;
}

void find_texts(const Texts& texts, const Texts& wanted, int64_t* found) {
  for (size_t w = 0; w < wanted.n; ++w) {
    const Text text = text_at(wanted, w);
    size_t first = 0, last = texts.n;
    while (first < last) {
      const size_t middle = first + (last - first) / 2;
      if (order(text_at(texts, middle), text) < 0)
        first = middle + 1;
      else
        last = middle;
    }
    const bool there = first < texts.n && order(text_at(texts, first), text) == 0;
    found[w] = there ? static_cast<int64_t>(first) : -1;
  }
}

}  // namespace ilhash
