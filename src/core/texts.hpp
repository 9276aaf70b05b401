// Texts in ascending order, one behind the other in one array of bytes (UTF-8): the ids of items, as files hold them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ilhash {

// Text i is bytes[ends[i] .. ends[i + 1]).
struct Texts {
  const uint8_t* bytes;
  size_t n_bytes;
  const int64_t* ends;  // n + 1 of them
  size_t n;
};

// What is wrong with texts that were read from a file, or nullptr: ends must begin at 0, not descend, and end with the
// bytes; texts must be UTF-8, ascend and be distinct.
const char* fault_of(const Texts& texts);

// The number of each wanted text among ascending ones, -1 where there is none. Throws std::invalid_argument where ends
// lead outside of the bytes.
void find_texts(const Texts& texts, const Texts& wanted, int64_t* found);

}  // namespace ilhash
