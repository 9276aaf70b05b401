// Tests of ids that are texts against slow, obvious twins, to be run under AddressSanitizer and UBSan. Arrays have
// exactly the size they must have, so that a read behind the end is noticed.
#include <algorithm>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "random.hpp"
#include "texts.hpp"

using namespace ilhash;

namespace {

struct Joined {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> ends{0};

  explicit Joined(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      bytes.insert(bytes.end(), text.begin(), text.end());
      ends.push_back(static_cast<int64_t>(bytes.size()));
    }
    bytes.shrink_to_fit();
    ends.shrink_to_fit();
  }
  Texts view() const { return {bytes.data(), bytes.size(), ends.data(), ends.size() - 1}; }
};

std::string random_text(Random& random) {
  static const std::string pieces[] = {"a", "b", std::string(1, '\0'), "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  std::string text;
  for (size_t n = random.below(6); n > 0; --n) text += pieces[random.below(6)];
  return text;
}

void finds_what_a_set_has() {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::set<std::string> held;
    for (size_t n = random.below(40); n > 0; --n) held.insert(random_text(random));
    const std::vector<std::string> sorted(held.begin(), held.end());
    std::vector<std::string> wanted;
    for (int i = 0; i < 20; ++i) wanted.push_back(random_text(random));
    const Joined texts(sorted), some(wanted);
    CHECK(fault_of(texts.view()) == nullptr);
    std::vector<int64_t> found(wanted.size());
    find_texts(texts.view(), some.view(), found.data());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto at = std::find(sorted.begin(), sorted.end(), wanted[i]);
      CHECK(found[i] == (at == sorted.end() ? -1 : at - sorted.begin()));
    }
  }
}

void refuses_what_is_no_utf8() {
  for (const char* const wrong : {"\x80", "\xC1\x81", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
                                  "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xFF"})
    CHECK(fault_of(Joined({wrong}).view()) != nullptr);
  CHECK(fault_of(Joined({"\xC2\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}).view()) == nullptr);
}

void refuses_what_leads_elsewhere() {
  for (const std::vector<int64_t>& ends : {std::vector<int64_t>{0, 9}, {0, 3, 2}, {1, 3}, {-1, 3}, {0, 2}, {0, 4, 3}}) {
    Joined texts({"abc"});
    texts.ends = ends;
    CHECK(fault_of(texts.view()) != nullptr);
    std::vector<int64_t> found(1);
    try {
      find_texts(texts.view(), Joined({"abd"}).view(), found.data());
      CHECK(true);  // what was met on the way was sound
    } catch (const std::invalid_argument&) {
      CHECK(true);
    }
  }
  CHECK(fault_of(Joined({"b", "a"}).view()) != nullptr);
  CHECK(fault_of(Joined({"a", "a"}).view()) != nullptr);
  CHECK(fault_of(Joined({}).view()) == nullptr);
}

}  // namespace

int main() {
  finds_what_a_set_has();
  refuses_what_is_no_utf8();
  refuses_what_leads_elsewhere();
  return testing::all_passed("test_texts");
}
