// vellum/heap/types.hpp: which types a heap accepts, and its record of the type of a root.
//
// A plain pointer is invalid in the next run. The compiler therefore refuses pointers, references,
// types with virtual functions and the containers, strings and smart pointers of std::, wherever a
// type shows them: as a root, and as an element, key or value. The members of a user's own type
// cannot be inspected.
#ifndef VELLUM_HEAP_TYPES_HPP
#define VELLUM_HEAP_TYPES_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace vellum::detail {

// The types of std:: that hold plain pointers. Needs no complete T.
template <class T>
struct HoldsPlainPointers : std::false_type {};
template <class T>
struct HoldsPlainPointers<const T> : HoldsPlainPointers<T> {};
template <class T, std::size_t count>
struct HoldsPlainPointers<T[count]> : HoldsPlainPointers<T> {};
template <class T>
struct HoldsPlainPointers<T*> : std::true_type {};
template <class T>
struct HoldsPlainPointers<T&> : std::true_type {};
template <class C, class Traits, class A>
struct HoldsPlainPointers<std::basic_string<C, Traits, A>> : std::true_type {};
template <class C, class Traits>
struct HoldsPlainPointers<std::basic_string_view<C, Traits>> : std::true_type {};
template <class T, class A>
struct HoldsPlainPointers<std::vector<T, A>> : std::true_type {};
template <class T, class A>
struct HoldsPlainPointers<std::deque<T, A>> : std::true_type {};
template <class T, class A>
struct HoldsPlainPointers<std::list<T, A>> : std::true_type {};
template <class T, class A>
struct HoldsPlainPointers<std::forward_list<T, A>> : std::true_type {};
template <class K, class T, class C, class A>
struct HoldsPlainPointers<std::map<K, T, C, A>> : std::true_type {};
template <class K, class T, class C, class A>
struct HoldsPlainPointers<std::multimap<K, T, C, A>> : std::true_type {};
template <class K, class C, class A>
struct HoldsPlainPointers<std::set<K, C, A>> : std::true_type {};
template <class K, class C, class A>
struct HoldsPlainPointers<std::multiset<K, C, A>> : std::true_type {};
template <class K, class T, class H, class E, class A>
struct HoldsPlainPointers<std::unordered_map<K, T, H, E, A>> : std::true_type {};
template <class K, class T, class H, class E, class A>
struct HoldsPlainPointers<std::unordered_multimap<K, T, H, E, A>> : std::true_type {};
template <class K, class H, class E, class A>
struct HoldsPlainPointers<std::unordered_set<K, H, E, A>> : std::true_type {};
template <class K, class H, class E, class A>
struct HoldsPlainPointers<std::unordered_multiset<K, H, E, A>> : std::true_type {};
template <class T, class C>
struct HoldsPlainPointers<std::queue<T, C>> : HoldsPlainPointers<C> {};
template <class T, class C>
struct HoldsPlainPointers<std::stack<T, C>> : HoldsPlainPointers<C> {};
template <class T, class C, class Less>
struct HoldsPlainPointers<std::priority_queue<T, C, Less>> : HoldsPlainPointers<C> {};
template <class T, class D>
struct HoldsPlainPointers<std::unique_ptr<T, D>> : std::true_type {};
template <class T>
struct HoldsPlainPointers<std::shared_ptr<T>> : std::true_type {};
template <class T>
struct HoldsPlainPointers<std::weak_ptr<T>> : std::true_type {};
template <class T>
struct HoldsPlainPointers<std::reference_wrapper<T>> : std::true_type {};
template <class R>
struct HoldsPlainPointers<std::function<R>> : std::true_type {};
template <class T>
struct HoldsPlainPointers<std::optional<T>> : HoldsPlainPointers<T> {};
template <class T, std::size_t count>
struct HoldsPlainPointers<std::array<T, count>> : HoldsPlainPointers<T> {};
template <class A, class B>
struct HoldsPlainPointers<std::pair<A, B>>
    : std::disjunction<HoldsPlainPointers<A>, HoldsPlainPointers<B>> {};
template <class... T>
struct HoldsPlainPointers<std::tuple<T...>> : std::disjunction<HoldsPlainPointers<T>...> {};
template <class... T>
struct HoldsPlainPointers<std::variant<T...>> : std::disjunction<HoldsPlainPointers<T>...> {};

// The element, key or value of a container.
template <class T>
struct Checked {
  static_assert(!HoldsPlainPointers<T>::value,
                "a heap cannot hold a plain pointer, nor what has one inside: take vellum::string "
                "for text, vellum::vector, map, set or unordered_map for std:: containers, and "
                "vellum::offset_ptr<T> for T*");
  using type = T;
};

// A root. REQUIRES: T is complete.
template <class T>
constexpr bool is_root_type() {
  return !HoldsPlainPointers<T>::value && !std::is_polymorphic_v<T>;
}
template <class T>
constexpr void require_root_type() {
  static_assert(sizeof(Checked<T>) != 0);
  static_assert(!std::is_polymorphic_v<T>,
                "a heap cannot hold a type with virtual functions: its table of functions is at "
                "another address in the next run");
}

// The name of a root's type in its heap: the same for every compiler, and after a type was renamed.
// A user's type is recorded by its size and alignment.
template <class T, class = void>
struct TypeText {
  static std::string text() {
    if constexpr (std::is_enum_v<T>) {
      return TypeText<std::underlying_type_t<T>>::text();
    } else if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (std::is_arithmetic_v<T>) {
      const char* const kind = std::is_floating_point_v<T> ? "float"
                               : std::is_signed_v<T>       ? "int"
                                                           : "uint";
      return kind + std::to_string(8 * sizeof(T));
    } else {
      return "type of " + std::to_string(sizeof(T)) + " bytes, aligned to " +
             std::to_string(alignof(T));
    }
  }
};
template <class T>
struct TypeText<const T> : TypeText<T> {};
template <class T>
struct TypeText<std::atomic<T>> : TypeText<T> {};
template <class A, class B>
struct TypeText<std::pair<A, B>> {
  static std::string text() {
    return "pair<" + TypeText<A>::text() + ", " + TypeText<B>::text() + ">";
  }
};
template <class T, std::size_t count>
struct TypeText<std::array<T, count>> {
  static std::string text() {
    return "array<" + TypeText<T>::text() + ", " + std::to_string(count) + ">";
  }
};

}  // namespace vellum::detail

#endif  // VELLUM_HEAP_TYPES_HPP
