// vellum/heap.hpp: standard-style containers in a region.
// They need Boost.Interprocess (1.74 or later, headers only).
//
//   auto region = store.open_or_create_region("main", 1 << 30);
//   vellum::Heap heap(region);
//   auto& ages = heap.root<vellum::map<vellum::string, int>>("ages");   // created if missing
//   ages["ada"] = 36;
//   region.commit();
//
//   // Any version, read-only, at the same time as the live one.
//   auto then = vellum::Heap::open_read_only(store.open_version("2016"));
//   const auto& old_ages = then.root<vellum::map<vellum::string, int>>("ages");
//
// Root objects have names; everything else hangs off them. Containers hand their allocator down, so
// map<string, vector<string>> needs no allocator in user code below the root. A root may be a user
// type, which names the allocator and takes it as the constructor's last argument:
//
//   struct Library {
//     using allocator_type = vellum::Allocator;
//     explicit Library(const allocator_type& a) : books(a), readers(a) {}
//     vellum::vector<vellum::string> books;
//     vellum::unordered_map<std::uint64_t, vellum::string> readers;
//   };
//
// Heap contents: containers of this header, and types without pointers, references or virtual
// functions. A pointer between objects of the heap is a vellum::offset_ptr<T>. This data works at
// any address, and thus in versions opened at the same time as the live one. std:: containers hold
// plain pointers: the compiler refuses them, as it refuses pointers, except as members of a user's
// own type, which cannot be inspected. Stored types must keep their layout for as long as they are
// read: add a new root rather than a member. A heap records the type of each root (a user's own
// type by its size and alignment), and refuses to return it as another type.
//
// The heap's own bookkeeping is in the region too: a commit includes it, and rollback() undoes it.
// After a rollback, pointers and iterators to objects created since the last commit are invalid,
// and so is a Heap created since then.
//
// Growth: a full heap grows its region by itself, up to Region::capacity_bytes(). Beyond that, or
// at once with Growth::manual, an allocation throws HeapFull. The container in use may then have
// lost elements (Boost's vector moves them first): call Region::rollback().
//
// Blocks up to 1 KiB are rounded up to one of 20 sizes, by a fifth at most beyond 128 bytes, and
// have no header. Blocks of one size and one thread are adjacent: a heap allocates spans of 16 KiB
// for each size, whose unused pages cost nothing. An empty span serves any size, and larger blocks
// before the region grows. A heap below 1 MiB has no size classes. Older programs refuse a heap
// with size classes; older heaps get them when they allocate. (The design is that of thread-caching
// allocators with size classes, such as tcmalloc.)
//
// Threads: each of up to 64 threads allocates from blocks of its own, so small allocations do not
// wait for one another; any thread may free. Larger ones, find and destroy take one process-wide
// lock. No part of a lock is in the region, and a thread caches nothing: a free block is free in
// every version, also after a crash. Containers are not guarded (as with std). A commit() while a
// thread changes a container stores it half changed: commit while no thread writes.
#ifndef VELLUM_HEAP_HPP
#define VELLUM_HEAP_HPP

#include <algorithm>
#include <boost/container/map.hpp>
#include <boost/container/scoped_allocator.hpp>
#include <boost/container/set.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/offset_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <vellum/error.hpp>
#include <vellum/heap/algorithm.hpp>
#include <vellum/heap/types.hpp>
#include <vellum/region.hpp>

namespace vellum {

namespace detail {

using HeapSegment =
    boost::interprocess::basic_managed_external_buffer<char, HeapAlgorithm,
                                                       boost::interprocess::iset_index>;
using SegmentManager = HeapSegment::segment_manager;

}  // namespace detail

template <class T>
using offset_ptr = boost::interprocess::offset_ptr<T>;

// The allocator_type of a user's type. Converts to allocator<T> for every T.
using Allocator = boost::interprocess::allocator<void, detail::SegmentManager>;

template <class T>
using allocator = boost::container::scoped_allocator_adaptor<
    boost::interprocess::allocator<T, detail::SegmentManager>>;

using string =
    boost::container::basic_string<char, std::char_traits<char>,
                                   boost::interprocess::allocator<char, detail::SegmentManager>>;

// Doubles when it is full.
template <class T>
using vector =
    boost::container::vector<T, allocator<typename detail::Checked<T>::type>,
                             boost::container::vector_options_t<boost::container::growth_factor<
                                 boost::container::growth_factor_100>>>;

namespace detail {

// The argument type of a container's lookups: any text where the key is a string (a vellum::string
// would have to be allocated in the region), otherwise the key.
template <class Key>
using Lookup = std::conditional_t<std::is_same_v<Key, string>, std::string_view, const Key&>;

template <class Key>
struct Less : std::less<Key> {};
template <>
struct Less<string> {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a < b; }
};

template <class Key>
struct Equal : std::equal_to<Key> {};
template <>
struct Equal<string> {
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};

inline std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// The arguments for T's constructor: with the allocator last if T asks for one.
template <class T, class... Args>
auto constructor_arguments(const Allocator& allocator, Args&&... args) {
  if constexpr (std::uses_allocator_v<T, Allocator>) {
    return std::tuple<Args&&..., const Allocator&>(std::forward<Args>(args)..., allocator);
  } else {
    (void)allocator;
    return std::tuple<Args&&...>(std::forward<Args>(args)...);
  }
}

}  // namespace detail

// The hash of unordered_map's keys: the same in every process and for every compiler, because it is
// stored in the region. Keys of other types need their own hash, with the same property (std::hash
// does not promise it).
template <class Key>
struct hash {
  static_assert(std::is_integral_v<Key> || std::is_enum_v<Key>,
                "give unordered_map a hash for this type of key");
  std::uint64_t operator()(Key key) const {
    return detail::mix_bits(static_cast<std::uint64_t>(key) + 0x9e3779b97f4a7c15U);
  }
};
template <>
struct hash<string> {
  std::uint64_t operator()(std::string_view text) const {
    std::uint64_t sum = text.size();
    while (!text.empty()) {
      std::uint64_t word = 0;
      const std::size_t step = std::min(text.size(), sizeof word);
      std::memcpy(&word, text.data(), step);
      sum = detail::mix_bits(sum * 0x9e3779b97f4a7c15U + word);
      text.remove_prefix(step);
    }
    return sum;
  }
};

// boost::container::set; string keys are looked up by any text.
template <class Key, class Compare = detail::Less<Key>>
class set : public boost::container::set<Key, Compare, allocator<Key>> {
  static_assert(sizeof(detail::Checked<Key>) != 0);
  using base = boost::container::set<Key, Compare, allocator<Key>>;
  using lookup = detail::Lookup<Key>;

 public:
  using base::base;
  using typename base::const_iterator;
  using typename base::iterator;

  iterator erase(const_iterator position) { return base::erase(position); }
  iterator erase(const_iterator first, const_iterator last) { return base::erase(first, last); }
  std::size_t erase(lookup key) {
    const auto found = this->find(key);
    if (found == this->end()) {
      return 0;
    }
    erase(found);
    return 1;
  }
};

// boost::container::map; string keys are looked up by any text.
template <class Key, class T, class Compare = detail::Less<Key>>
class map : public boost::container::map<Key, T, Compare, allocator<std::pair<const Key, T>>> {
  static_assert(sizeof(detail::Checked<Key>) + sizeof(detail::Checked<T>) != 0);
  using base = boost::container::map<Key, T, Compare, allocator<std::pair<const Key, T>>>;
  using lookup = detail::Lookup<Key>;

 public:
  using base::base;
  using typename base::const_iterator;
  using typename base::iterator;

  T& operator[](lookup key) { return try_emplace(key).first->second; }

  // Makes the value from `args` if the key is new.
  template <class... Args>
  std::pair<iterator, bool> try_emplace(lookup key, Args&&... args) {
    const iterator place = this->lower_bound(key);
    if (place != this->end() && !this->key_comp()(key, place->first)) {
      return {place, false};
    }
    return {this->emplace_hint(place, std::piecewise_construct, std::forward_as_tuple(key),
                               std::forward_as_tuple(std::forward<Args>(args)...)),
            true};
  }

  template <class Value>
  std::pair<iterator, bool> insert_or_assign(lookup key, Value&& value) {
    auto result = try_emplace(key);
    result.first->second = std::forward<Value>(value);
    return result;
  }

  const T& at(lookup key) const {
    const auto found = this->find(key);
    if (found == this->end()) {
      throw std::out_of_range("vellum::map::at");
    }
    return found->second;
  }
  T& at(lookup key) { return const_cast<T&>(std::as_const(*this).at(key)); }

  iterator erase(const_iterator position) { return base::erase(position); }
  iterator erase(const_iterator first, const_iterator last) { return base::erase(first, last); }
  std::size_t erase(lookup key) {
    const auto found = this->find(key);
    if (found == this->end()) {
      return 0;
    }
    erase(found);
    return 1;
  }
};

// A hash table of linked nodes, with the part of std::unordered_map that programs use. String keys
// are looked up by any text. References stay valid until their element is erased, iterators until
// an element is added. Growing doubles the table and writes to every node once.
template <class Key, class T, class Hash = vellum::hash<Key>, class KeyEqual = detail::Equal<Key>>
class unordered_map {
  static_assert(sizeof(detail::Checked<Key>) + sizeof(detail::Checked<T>) != 0);
  struct Node;
  using Link = offset_ptr<Node>;
  template <bool is_const>
  class Iterator;
  using lookup = detail::Lookup<Key>;

 public:
  using key_type = Key;
  using mapped_type = T;
  using value_type = std::pair<const Key, T>;
  using size_type = std::size_t;
  using allocator_type = Allocator;
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;

  explicit unordered_map(const allocator_type& allocator) : table_(allocator) {}
  unordered_map(const unordered_map& other) : unordered_map(other, other.get_allocator()) {}
  unordered_map(const unordered_map& other, const allocator_type& allocator)
      : unordered_map(allocator) {
    copy_from(other);
  }
  unordered_map(unordered_map&& other) noexcept : unordered_map(other.get_allocator()) {
    swap(other);
  }
  unordered_map(unordered_map&& other, const allocator_type& allocator) : unordered_map(allocator) {
    if (allocator == other.get_allocator()) {
      swap(other);
    } else {
      copy_from(other);
    }
  }
  unordered_map& operator=(const unordered_map& other) {
    unordered_map copy(other, get_allocator());
    swap(copy);
    return *this;
  }
  unordered_map& operator=(unordered_map&& other) {
    unordered_map moved(std::move(other), get_allocator());
    swap(moved);
    return *this;
  }
  ~unordered_map() { clear(); }

  // REQUIRES: both are in the same heap.
  void swap(unordered_map& other) noexcept {
    table_.swap(other.table_);
    std::swap(size_, other.size_);
  }

  allocator_type get_allocator() const { return allocator_type(table_.get_allocator()); }
  size_type size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_type bucket_count() const { return table_.size(); }

  iterator begin() { return iterator::from(table_, 0); }
  iterator end() { return iterator(); }
  const_iterator begin() const { return const_iterator::from(table_, 0); }
  const_iterator end() const { return const_iterator(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }

  iterator find(lookup key) { return iterator(table_, find_link(table_, key)); }
  const_iterator find(lookup key) const { return const_iterator(table_, find_link(table_, key)); }
  bool contains(lookup key) const { return find(key) != end(); }
  size_type count(lookup key) const { return contains(key) ? 1 : 0; }

  const T& at(lookup key) const {
    const auto found = find(key);
    if (found == end()) {
      throw std::out_of_range("vellum::unordered_map::at");
    }
    return found->second;
  }
  T& at(lookup key) { return const_cast<T&>(std::as_const(*this).at(key)); }

  T& operator[](lookup key) { return try_emplace(key).first->second; }

  // Makes the value from `args` if the key is new.
  template <class... Args>
  std::pair<iterator, bool> try_emplace(lookup key, Args&&... args) {
    const iterator found = find(key);
    if (found != end()) {
      return {found, false};
    }
    reserve(size_ + 1);
    Node* const node = new_node(key, std::forward<Args>(args)...);
    push(table_, node);
    ++size_;
    return {iterator(table_, node), true};
  }

  template <class Value>
  std::pair<iterator, bool> insert_or_assign(lookup key, Value&& value) {
    auto result = try_emplace(key);
    result.first->second = std::forward<Value>(value);
    return result;
  }

  // As try_emplace(): the key is first, followed by the arguments of the value.
  template <class K, class... Args>
  std::pair<iterator, bool> emplace(K&& key, Args&&... args) {
    return try_emplace(std::forward<K>(key), std::forward<Args>(args)...);
  }
  std::pair<iterator, bool> insert(const value_type& value) {
    return try_emplace(value.first, value.second);
  }
  std::pair<iterator, bool> insert(value_type&& value) {
    return try_emplace(value.first, std::move(value.second));
  }
  // Of any pairs of a key, or text where the key is a string, and a value.
  template <class First, class Second>
  std::pair<iterator, bool> insert(const std::pair<First, Second>& value) {
    return try_emplace(value.first, value.second);
  }
  template <class InputIterator>
  void insert(InputIterator first, InputIterator last) {
    for (; first != last; ++first) {
      try_emplace(first->first, first->second);
    }
  }

  // Returns the next element.
  iterator erase(const_iterator position) {
    const_iterator next = position;
    ++next;
    erase(position->first);
    return iterator(table_, next.node_);
  }
  iterator erase(iterator position) { return erase(const_iterator(position)); }
  // Returns the number of elements erased: 0 or 1.
  size_type erase(lookup key) {
    Link* const link = find_link(table_, key);
    if (link == nullptr) {
      return 0;
    }
    Node* const node = link->get();
    *link = node->next;
    --size_;
    delete_node(node);
    return 1;
  }

  void clear() noexcept {
    for (Link& head : table_) {
      while (head) {
        delete_node(pop(head));
      }
    }
    size_ = 0;
  }

  // Whether both have the same keys with equal values, in whatever order.
  friend bool operator==(const unordered_map& a, const unordered_map& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const value_type& value) {
             const auto found = b.find(value.first);
             return found != b.end() && found->second == value.second;
           });
  }
  friend bool operator!=(const unordered_map& a, const unordered_map& b) { return !(a == b); }

  // Makes the table large enough for `count` elements.
  void reserve(size_type count) {
    if (count <= table_.size()) {
      return;
    }
    size_type buckets = std::max<size_type>(8, 2 * table_.size());
    while (buckets < count) {
      buckets *= 2;
    }
    Table larger(buckets, table_.get_allocator());
    for (Link& head : table_) {
      while (head) {
        push(larger, pop(head));
      }
    }
    table_.swap(larger);
  }

 private:
  struct Node {
    template <class KeyArgs, class ValueArgs>
    Node(KeyArgs&& key, ValueArgs&& mapped)
        : value(std::piecewise_construct, std::forward<KeyArgs>(key),
                std::forward<ValueArgs>(mapped)) {}
    Link next;
    value_type value;
  };
  using Table = vector<Link>;
  using NodeAllocator = boost::interprocess::allocator<Node, detail::SegmentManager>;

  static size_type bucket_of(lookup key, const Table& table) {
    return static_cast<size_type>(Hash()(key)) & (table.size() - 1);
  }

  // The link that leads to the key's node; nullptr: there is none.
  template <class AnyTable>  // Table or const Table
  static auto find_link(AnyTable& table, lookup key) -> decltype(&table[0]) {
    if (table.empty()) {
      return nullptr;
    }
    auto* link = &table[bucket_of(key, table)];
    while (*link && !KeyEqual()((*link)->value.first, key)) {
      link = &(*link)->next;
    }
    return *link ? link : nullptr;
  }

  static void push(Table& table, Node* node) {
    Link& head = table[bucket_of(node->value.first, table)];
    node->next = head;
    head = node;
  }
  static Node* pop(Link& head) {
    Node* const node = head.get();
    head = node->next;
    return node;
  }

  template <class... Args>
  Node* new_node(lookup key, Args&&... args) {
    const Allocator allocator = get_allocator();
    NodeAllocator nodes(allocator);
    const Link memory = nodes.allocate(1);
    try {
      return ::new (static_cast<void*>(memory.get()))
          Node(detail::constructor_arguments<Key>(allocator, key),
               detail::constructor_arguments<T>(allocator, std::forward<Args>(args)...));
    } catch (...) {
      nodes.deallocate(memory, 1);
      throw;
    }
  }
  void delete_node(Node* node) {
    node->~Node();
    NodeAllocator(get_allocator()).deallocate(Link(node), 1);
  }

  void copy_from(const unordered_map& other) {
    reserve(other.size());
    for (const auto& [key, mapped] : other) {
      try_emplace(key, mapped);
    }
  }

  Table table_;  // its size is 0 or a power of two
  size_type size_ = 0;
};

template <class Key, class T, class Hash, class KeyEqual>
template <bool is_const>
class unordered_map<Key, T, Hash, KeyEqual>::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = std::pair<const Key, T>;
  using difference_type = std::ptrdiff_t;
  using reference = std::conditional_t<is_const, const value_type&, value_type&>;
  using pointer = std::conditional_t<is_const, const value_type*, value_type*>;

  Iterator() = default;
  template <bool other_const, class = std::enable_if_t<is_const && !other_const>>
  Iterator(const Iterator<other_const>& other) : table_(other.table_), node_(other.node_) {}

  reference operator*() const { return node_->value; }
  pointer operator->() const { return &node_->value; }
  Iterator& operator++() {
    Node* const next = node_->next.get();
    *this = next != nullptr ? Iterator(*table_, next)
                            : from(*table_, bucket_of(node_->value.first, *table_) + 1);
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.node_ == b.node_; }
  friend bool operator!=(const Iterator& a, const Iterator& b) { return a.node_ != b.node_; }

 private:
  friend class unordered_map;
  template <bool>
  friend class Iterator;
  Iterator(const Table& table, Node* node) : table_(&table), node_(node) {}
  Iterator(const Table& table, const Link* link)
      : Iterator(table, link == nullptr ? nullptr : link->get()) {}

  static Iterator from(const Table& table, size_type bucket) {
    while (bucket < table.size() && !table[bucket]) {
      ++bucket;
    }
    return bucket < table.size() ? Iterator(table, &table[bucket]) : Iterator();
  }

  const Table* table_ = nullptr;
  Node* node_ = nullptr;  // nullptr: the end
};

namespace detail {

// Distinguishes heaps whose containers have different layouts in memory, for instance of another
// release of Boost.
constexpr std::uint32_t heap_layout() {
  std::uint32_t sum = 17;
  for (const std::size_t size :
       {sizeof(SegmentManager), sizeof(string), sizeof(vector<int>), sizeof(map<int, int>),
        sizeof(set<int>), sizeof(unordered_map<int, int>), alignof(std::max_align_t)}) {
    sum = sum * 31 + static_cast<std::uint32_t>(size);
  }
  return sum;
}

inline HeapHeader* heap_header(const Region& region) {
  return static_cast<HeapHeader*>(region.data());
}
inline SegmentManager* heap_segment(const Region& region) {
  return static_cast<SegmentManager*>(static_cast<void*>(heap_header(region) + 1));
}

inline bool has_magic(const Region& region) {
  return std::memcmp(heap_header(region)->magic, kHeapMagic, sizeof kHeapMagic) == 0;
}

inline bool is_blank(const Region& region) {
  static constexpr char zeros[4096] = {};
  return std::memcmp(region.data(), zeros, sizeof zeros) == 0;
}

[[noreturn]] inline void refuse_heap(Errc code, const Region& region, const std::string& reason) {
  throw Error(code, "heap in region '" + region.name() + "': " + reason);
}

inline void require_room(const Region& region) {
  if (region.size_bytes() < 4096) {
    refuse_heap(Errc::invalid_argument, region, "the region is too small");
  }
}

// REQUIRES: segment_bytes follow the header.
inline bool classes_fit(const HeapHeader& header) {
  const std::uint64_t place = header.classes.load();
  if (place == 0) {
    return true;
  }
  if (place % 16 != 0 || place > header.segment_bytes ||
      header.segment_bytes - place < sizeof(HeapClasses)) {
    return false;
  }
  const auto* const start = reinterpret_cast<const char*>(&header);
  return reinterpret_cast<const HeapClasses*>(start + place)->fits(place, header.segment_bytes);
}

// Throws unless the region holds a heap that this program can use.
inline void check_heap(const Region& region) {
  require_room(region);
  const HeapGuard guard(HeapMutex::of_process());
  if (!has_magic(region)) {
    if (is_blank(region)) {
      refuse_heap(Errc::not_found, region, "there is none, the region is empty");
    }
    refuse_heap(Errc::invalid_argument, region, "there is none, the region holds something else");
  }
  const HeapHeader& header = *heap_header(region);
  if (header.version > kHeapWithClasses) {
    refuse_heap(Errc::newer_format, region,
                "its format " + std::to_string(header.version) + " is newer than this program's " +
                    std::to_string(kHeapWithClasses));
  }
  if (header.layout != heap_layout()) {
    refuse_heap(Errc::unsupported, region,
                "made with another release of Boost or for another machine");
  }
  if (header.segment_bytes > region.size_bytes() - sizeof header || !classes_fit(header) ||
      header.segment_bytes <= heap_segment(region)->get_free_memory()) {
    refuse_heap(Errc::corrupted, region, "the sizes in its header do not fit together");
  }
}

inline void take_in_growth(const Region& region) {
  const HeapGuard guard(HeapMutex::of_process());
  const HeapHeader& header = *heap_header(region);
  const std::uint64_t more = region.size_bytes() - sizeof header - header.segment_bytes;
  if (more > 0) {
    heap_segment(region)->grow(more);
  }
}

template <>
struct TypeText<string> {
  static std::string text() { return "string"; }
};
template <class T>
struct TypeText<offset_ptr<T>> {
  static std::string text() { return "offset_ptr"; }
};
template <class T>
struct TypeText<vector<T>> {
  static std::string text() { return "vector<" + TypeText<T>::text() + ">"; }
};
template <class Key, class Compare>
struct TypeText<set<Key, Compare>> {
  static std::string text() { return "set<" + TypeText<Key>::text() + ">"; }
};
template <class Key, class T, class Compare>
struct TypeText<map<Key, T, Compare>> {
  static std::string text() {
    return "map<" + TypeText<Key>::text() + ", " + TypeText<T>::text() + ">";
  }
};
template <class Key, class T, class Hash, class KeyEqual>
struct TypeText<unordered_map<Key, T, Hash, KeyEqual>> {
  static std::string text() {
    return "unordered_map<" + TypeText<Key>::text() + ", " + TypeText<T>::text() + ">";
  }
};

template <class T>
const std::string& type_text() {
  static const std::string text = TypeText<T>::text();
  return text;
}

// The object that records a root's type. Heaps of earlier programs have none.
inline std::string type_note_of(const std::string& root) { return "\1type of " + root; }

// The recorded type of a root; "": none.
inline std::string noted_type(SegmentManager* segment, const std::string& root) {
  const auto [text, bytes] = segment->find<char>(type_note_of(root).c_str());
  return text == nullptr ? std::string() : std::string(text, bytes);
}

// Boost would only assert that the sizes are the same.
template <class T>
T* find_root(SegmentManager* segment, const Region& region, const std::string& name) {
  require_root_type<T>();
  const auto [object, bytes] = segment->find<char>(name.c_str());
  if (object == nullptr) {
    return nullptr;
  }
  const std::string& wanted = type_text<T>();
  std::string made = noted_type(segment, name);
  if (made.empty() && bytes != sizeof(T)) {
    made = "type of " + std::to_string(bytes) + " bytes";
  }
  if (!made.empty() && made != wanted) {
    refuse_heap(
        Errc::invalid_argument, region,
        "'" + name + "' was made as another type: it is a " + made + ", and not a " + wanted);
  }
  return reinterpret_cast<T*>(object);
}

}  // namespace detail

// The operations on a heap that do not write: for versions, and for reading in general. It keeps
// the region open, also when the Region is moved or was a temporary. REQUIRES: Region::close() is
// not called meanwhile.
class ConstHeap {
 public:
  // Errors: not_found: the region is empty. invalid_argument: it holds something else.
  // newer_format, unsupported: it holds a heap of another Vellum or Boost. corrupted.
  explicit ConstHeap(const Region& region) : ConstHeap(region, Unchecked()) {
    detail::check_heap(region);
  }

  // nullptr: there is no such root. invalid_argument: it has another type.
  template <class T>
  [[nodiscard]] const T* find(const std::string& name) const& {
    return detail::find_root<T>(segment(), *region_, name);
  }
  // find(), for a root that exists: otherwise Errc::not_found.
  template <class T>
  [[nodiscard]] const T& root(const std::string& name) const& {
    const T* const found = find<T>(name);
    if (found == nullptr) {
      detail::refuse_heap(Errc::not_found, *region_, "there is no root '" + name + "'");
    }
    return *found;
  }
  // Not for a temporary heap, which may close its region: give the heap a name.
  template <class T>
  const T* find(const std::string& name) const&& = delete;
  template <class T>
  const T& root(const std::string& name) const&& = delete;

  std::uint64_t size_bytes() const {
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    return detail::heap_header(*region_)->segment_bytes;
  }
  std::uint64_t free_bytes() const {
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    return segment()->get_free_memory();
  }
  std::uint64_t used_bytes() const {
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    return size_bytes() - free_bytes();
  }

  // Walks the allocator's free blocks. False: something has overwritten them.
  bool check_sanity() const { return segment()->check_sanity(); }

 protected:
  detail::SegmentManager* segment() const { return detail::heap_segment(*region_); }
  struct Unchecked {};
  ConstHeap(const Region& region, Unchecked) : region_(new Region(region)) {}

  std::shared_ptr<Region> region_;  // a handle of its own
};

// A heap in a writable region. The program keeps the Region, in order to commit. Otherwise as
// ConstHeap.
class Heap : public ConstHeap {
 public:
  enum class Growth {
    automatic,  // a full heap doubles its region, or more if need be
    manual,     // the program calls grow()
  };

  // Creates a heap in an empty region (its first page is all zero), or opens the existing one. A
  // new heap is durable with the next commit, like everything in it. Errors as ConstHeap's;
  // read_only.
  explicit Heap(Region& region, Growth growth = Growth::automatic)
      : ConstHeap(region, Unchecked()) {
    if (!region.writable()) {
      detail::refuse_heap(Errc::read_only, region,
                          "the region is read-only: Heap::open_read_only()");
    }
    detail::require_room(region);
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    if (!detail::has_magic(region) && detail::is_blank(region)) {
      make();
    } else {
      detail::check_heap(region);
      this->grow();
    }
    detail::open_heaps().push_back({segment(), region_, growth == Growth::automatic});
    is_listed_ = true;
  }
  ~Heap() { forget(); }
  Heap(Heap&& other) noexcept
      : ConstHeap(std::move(other)), is_listed_(std::exchange(other.is_listed_, false)) {}
  Heap& operator=(Heap&& other) noexcept {
    if (this != &other) {
      forget();
      ConstHeap::operator=(std::move(other));
      is_listed_ = std::exchange(other.is_listed_, false);
    }
    return *this;
  }

  // The heap of a version, or of any region, for reading only: it never writes.
  [[nodiscard]] static ConstHeap open_read_only(const Region& region) { return ConstHeap(region); }

  template <class T>
  [[nodiscard]] T* find(const std::string& name) {
    return detail::find_root<T>(segment(), *region_, name);
  }
  template <class T>
  [[nodiscard]] const T* find(const std::string& name) const {
    return ConstHeap::find<T>(name);
  }

  // The root of that name. If there is none, constructs T(args..., allocator), or T(args...) where
  // T takes no allocator.
  template <class T, class... Args>
  T* find_or_construct(const std::string& name, Args&&... args) {
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    if (T* const found = find<T>(name)) {
      return found;
    }
    T* const made = std::apply(
        [&](auto&&... all) {
          return segment()->template construct<T>(name.c_str())(
              std::forward<decltype(all)>(all)...);
        },
        detail::constructor_arguments<T>(allocator(), std::forward<Args>(args)...));
    try {
      note_type(name, detail::type_text<T>());
    } catch (...) {
      segment()->template destroy<T>(name.c_str());
      throw;
    }
    return made;
  }

  // The same as a reference: the root, constructed when it is missing.
  template <class T, class... Args>
  T& root(const std::string& name, Args&&... args) {
    return *find_or_construct<T>(name, std::forward<Args>(args)...);
  }
  template <class T>
  [[nodiscard]] const T& root(const std::string& name) const {
    return ConstHeap::root<T>(name);
  }

  // False: there was no such root.
  template <class T>
  bool destroy(const std::string& name) {
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    if (find<T>(name) == nullptr) {
      return false;
    }
    segment()->template destroy<char>(detail::type_note_of(name).c_str());
    return segment()->template destroy<T>(name.c_str());
  }

  Allocator allocator() const { return Allocator(segment()); }
  template <class T>
  vellum::allocator<T> allocator() const {
    return vellum::allocator<T>(segment());
  }

  // Adds the space that Region::grow() has gained. Opening a heap does this too.
  void grow() { detail::take_in_growth(*region_); }
  // Calls Region::grow(), then grow().
  void grow(std::uint64_t region_bytes) {
    region_->grow(region_bytes);
    grow();
  }

 private:
  void note_type(const std::string& name, const std::string& text) {
    char* const note =
        segment()->template construct<char>(detail::type_note_of(name).c_str())[text.size()](' ');
    std::memcpy(note, text.data(), text.size());
  }

  void make() {
    detail::HeapHeader& header = *detail::heap_header(*region_);
    const std::uint64_t bytes = region_->size_bytes() - sizeof header;
    detail::HeapSegment(boost::interprocess::create_only, detail::heap_segment(*region_), bytes);
    header.version = detail::kHeapWithoutClasses;  // it has none before it has 1 MiB
    header.layout = detail::heap_layout();
    header.segment_bytes = bytes;
    std::memcpy(header.magic, detail::kHeapMagic, sizeof header.magic);
  }

  void forget() noexcept {
    if (!is_listed_) {
      return;
    }
    const detail::HeapGuard guard(detail::HeapMutex::of_process());
    auto& heaps = detail::open_heaps();
    const auto mine = std::find_if(heaps.begin(), heaps.end(), [&](const detail::OpenHeap& heap) {
      return heap.region == region_;
    });
    heaps.erase(mine);
  }

  bool is_listed_ = false;
};

}  // namespace vellum

#endif  // VELLUM_HEAP_HPP
