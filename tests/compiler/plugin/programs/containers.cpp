// The standard containers, as objects in tracked memory with elements there as well, and other
// features of C++: exceptions, virtual functions, objects constructed in place.
#include <cstdint>
#include <deque>
#include <forward_list>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracked.h"

namespace {

// Allocates tracked memory from its end on, and never reuses it.
std::size_t next_offset = 8192;
template <typename T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <typename U>
  Allocator(const Allocator<U>&) {}
  T* allocate(std::size_t count) {
    const std::size_t at = (next_offset + 15) / 16 * 16;
    next_offset = at + count * sizeof(T);
    if (next_offset > tracked_bytes()) throw std::bad_alloc();
    return reinterpret_cast<T*>(tracked_begin() + at);
  }
  void deallocate(T*, std::size_t) {}
  friend bool operator==(const Allocator&, const Allocator&) { return true; }
  friend bool operator!=(const Allocator&, const Allocator&) { return false; }
};
template <typename T>
T* in_place() {
  return new (tracked_begin() + 64) T();
}
void next_kind() {
  tracked_check("end of a kind", 0);
  next_offset = 8192;
}

using String = std::basic_string<char, std::char_traits<char>, Allocator<char>>;

void vectors() {
  auto* vector = in_place<std::vector<std::uint64_t, Allocator<std::uint64_t>>>();
  for (unsigned i = 0; i < 300; ++i) {
    vector->insert(vector->begin() + tracked_random(static_cast<unsigned>(vector->size()) + 1), i);
    tracked_commit("vector insert");
    if (i % 3 == 0)
      vector->erase(vector->begin() + tracked_random(static_cast<unsigned>(vector->size())));
    tracked_commit("vector erase");
  }
  auto* bits = new (tracked_begin() + 1024) std::vector<bool, Allocator<bool>>(500);
  for (unsigned i = 0; i < 100; ++i) {
    (*bits)[tracked_random(500)].flip();
    tracked_commit("vector of bool");
  }
  next_kind();
}

template <typename Map>
void map(const char* name) {
  auto* map = in_place<Map>();
  for (unsigned i = 0; i < 500; ++i) {
    (*map)[tracked_random(200)] = i + 1;
    tracked_commit(name);
    if (i % 2 == 0) map->erase(tracked_random(200));
    tracked_commit(name);
  }
  map->clear();
  tracked_commit(name);
  next_kind();
}

void lists() {
  auto* list = in_place<std::list<unsigned, Allocator<unsigned>>>();
  auto* other = new (tracked_begin() + 256) std::list<unsigned, Allocator<unsigned>>();
  auto* forward = new (tracked_begin() + 512) std::forward_list<unsigned, Allocator<unsigned>>();
  for (unsigned i = 0; i < 200; ++i) {
    list->insert(std::next(list->begin(), tracked_random(static_cast<unsigned>(list->size()) + 1)),
                 tracked_random(100));
    tracked_commit("list insert");
    if (i % 4 == 0) list->pop_front();
    other->push_front(i);
    forward->push_front(i);
    tracked_commit("list push");
    if (i % 20 == 0) list->splice(std::next(list->begin(), 3), *other);
    tracked_commit("list splice");
    if (i % 30 == 0) list->sort();
    tracked_commit("list sort");
    if (i % 10 == 0) list->reverse(), forward->sort();
    tracked_commit("list reverse");
    if (i % 7 == 0) list->swap(*other), tracked_commit("list swap"), list->swap(*other);
    tracked_commit("list swap");
  }
  next_kind();
}

void strings() {
  auto* plain = in_place<std::string>();  // its object is tracked, its heap is not
  auto* string = new (tracked_begin() + 256) String();
  auto* map = new (tracked_begin() + 512)
      std::map<String, String, std::less<>, Allocator<std::pair<const String, String>>>();
  for (unsigned i = 0; i < 150; ++i) {
    *plain = std::to_string(i * 7919);
    tracked_commit("string assigned");
    plain->append("abc").insert(2, "xy").replace(0, 1, "zzz");
    tracked_commit("string changed");
    string->push_back(static_cast<char>('a' + i % 26));
    tracked_commit("string push_back");
    if (i % 50 == 0) string->resize(string->size() / 2), string->append("something more");
    tracked_commit("string resize");
    if (i % 5 == 0)
      (*map)[String(std::to_string(i).c_str())] =
          "a value that does not fit into the object itself";
    tracked_commit("map of strings");
  }
  plain->~basic_string();
  next_kind();
}

void deques() {
  auto* deque = in_place<std::deque<unsigned, Allocator<unsigned>>>();
  for (unsigned i = 0; i < 400; ++i) {
    if (i & 1)
      deque->push_back(i);
    else
      deque->push_front(i);
    tracked_commit("deque push");
    if (i % 5 == 0) deque->pop_front();
    tracked_commit("deque pop");
  }
  next_kind();
}

struct Base {
  virtual ~Base() = default;
  virtual void change(unsigned n) = 0;
};
struct Derived : Base {
  std::uint64_t values[20] = {1, 2, 3};
  void change(unsigned n) override { values[n % 20] += n; }
};
struct Big {
  std::uint64_t values[40];
};
__attribute__((noinline)) Big make_big(unsigned n) {
  Big big;
  for (unsigned i = 0; i < 40; ++i) big.values[i] = n + i;
  if (n == 1000000) throw std::runtime_error("never");
  return big;
}
__attribute__((noinline)) void store_and_throw(char* at, unsigned n) {
  for (unsigned i = 0; i < n; ++i) reinterpret_cast<std::uint64_t*>(at)[i * 3] = i + 1;
  *reinterpret_cast<std::uint64_t*>(at + 4096) = n;
  throw n;
}
struct Guard {
  char* at;
  explicit Guard(char* where) : at(where) { at[0] = 1; }
  ~Guard() { at[200] = 2; }
};

void objects() {
  for (unsigned i = 1; i < 60; ++i) {
    char* at = tracked_begin() + 8 * tracked_random(300);
    Base* base = new (at) Derived();
    tracked_commit("object made in place");
    base->change(i);
    tracked_commit("virtual function");
    base->~Base();
    tracked_commit("destructor");
    new (at + 1000) Big(make_big(i));
    tracked_commit("returned in place");
    try {
      const Guard guard(at + 8000);
      store_and_throw(at, i);
    } catch (unsigned n) {
      tracked_commit("exception");
      *reinterpret_cast<unsigned*>(at + 6000) = n;
    }
    tracked_check("exception handler", 0);
  }
  auto shared = std::allocate_shared<Big>(Allocator<Big>());
  tracked_commit("shared_ptr");
  {
    const auto copy = shared;
    tracked_commit("shared_ptr copied");
  }
  tracked_commit("shared_ptr dropped");
  shared.reset();
  next_kind();
}

}  // namespace

int main() {
  using Element = std::pair<const unsigned, unsigned>;
  vectors();
  map<std::map<unsigned, unsigned, std::less<>, Allocator<Element>>>("map");
  map<std::unordered_map<unsigned, unsigned, std::hash<unsigned>, std::equal_to<>,
                         Allocator<Element>>>("unordered_map");
  lists();
  strings();
  deques();
  objects();
  return tracked_end();
}
