// bench/fams/btree.hpp: a b-tree of order 8: up to 7 keys with their values and 8 children a node;
// full nodes are split on the way down. Keys are in order; values never move and are found through
// slots, as in b-trees for persistent memory (Chen and Jin, VLDB 2015): every way of tracking
// stores would pay for moving 100-byte values at each insert.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

#include "store.hpp"

namespace fams {

template <typename Memory>
class Btree final : public Structure {
 public:
  explicit Btree(Memory memory) : memory_(memory) {}
  void create(const Size& size) {
    (void)size;
    Node** top = static_cast<Node**>(memory_.allocate(sizeof(Node*)));
    *top = new_node();
    memory_.set_root(top);
  }
  void attach() { top_ = static_cast<Node**>(memory_.root()); }

  void insert(Key key, const Value& value) override {
    if ((*top_)->used == kKeys) grow();
    Node* node = *top_;
    for (;;) {
      std::uint64_t at = node->lower_bound(key);
      if (node->has(at, key)) return overwrite(node, at, value);
      if (node->is_leaf()) return add(node, at, key, value, nullptr);
      if (node->children[at]->used == kKeys) {
        split_child(node, at);
        if (node->keys[at] == key) return overwrite(node, at, value);
        if (node->keys[at] < key) ++at;
      }
      node = node->children[at];
    }
  }

  bool update(Key key, const Value& value) override {
    const auto [node, at] = find(key);
    if (node == nullptr) return false;
    overwrite(node, at, value);
    return true;
  }

  bool read(Key key, Value& value) override {
    const auto [node, at] = find(key);
    if (node != nullptr) value = node->value(at);
    return node != nullptr;
  }

  std::uint64_t scan(Key from, std::uint64_t count, Value& value) override {
    return count - scan_below(*top_, from, count, value);
  }
  bool remove(Key) override { unsupported("this b-tree only grows"); }
  std::uint64_t count() override { return count_below(*top_); }

 private:
  static constexpr std::uint64_t kOrder = 8, kKeys = kOrder - 1, kLeft = kKeys / 2;  // who stays

  struct Node {
    std::uint8_t used;          // keys
    std::uint8_t slots[kKeys];  // of the value of each key
    Key keys[kKeys];
    Node* children[kOrder];
    Value values[kKeys];

    bool is_leaf() const { return children[0] == nullptr; }
    Value& value(std::uint64_t at) { return values[slots[at]]; }
    const Value& value(std::uint64_t at) const { return values[slots[at]]; }
    std::uint64_t lower_bound(Key key) const {
      std::uint64_t at = 0;
      while (at < used && keys[at] < key) ++at;
      return at;
    }
    bool has(std::uint64_t at, Key key) const { return at < used && keys[at] == key; }
    std::uint8_t free_slot() const {
      unsigned taken = 0;
      for (std::uint64_t i = 0; i < used; ++i) taken |= 1U << slots[i];
      return static_cast<std::uint8_t>(std::countr_one(taken));
    }
  };
  static constexpr std::size_t kHead =
      Memory::kWholeNodes ? sizeof(Node) : offsetof(Node, children);
  struct Place {
    Node* node;
    std::uint64_t at;
  };

  Node* new_node() {
    Node* node = static_cast<Node*>(memory_.allocate(sizeof(Node)));
    node->used = 0;
    for (Node*& child : node->children) child = nullptr;
    return node;
  }

  Place find(Key key) const {
    for (Node* node = *top_; node != nullptr;) {
      const std::uint64_t at = node->lower_bound(key);
      if (node->has(at, key)) return {node, at};
      node = node->children[at];
    }
    return {nullptr, 0};
  }

  void overwrite(Node* node, std::uint64_t at, const Value& value) {
    Value& place = node->value(at);
    memory_.stores(&place, sizeof place);
    place = value;
  }

  // Inserts a key at `at` of a node that is not full, and in an inner node the child after it.
  void add(Node* node, std::uint64_t at, Key key, const Value& value, Node* child) {
    const std::uint64_t behind = node->used - at;
    const std::uint8_t slot = node->free_slot();
    memory_.stores(node, kHead);
    std::memmove(&node->slots[at + 1], &node->slots[at], behind);
    std::memmove(&node->keys[at + 1], &node->keys[at], behind * sizeof(Key));
    node->slots[at] = slot;
    node->keys[at] = key;
    ++node->used;
    if (!Memory::kWholeNodes) memory_.stores(&node->values[slot], sizeof value);
    node->values[slot] = value;
    if (child == nullptr) return;
    if (!Memory::kWholeNodes) {
      memory_.stores(&node->children[at + 1], (behind + 1) * sizeof(Node*));
    }
    std::memmove(&node->children[at + 2], &node->children[at + 1], behind * sizeof(Node*));
    node->children[at + 1] = child;
  }

  // Splits a full child of a node that is not full: its upper half moves to a new one, its middle
  // key up.
  void split_child(Node* parent, std::uint64_t at) {
    Node* left = parent->children[at];
    Node* right = new_node();
    for (std::uint8_t from = kLeft + 1; from < kKeys; ++from) {
      const std::uint8_t to = right->used++;
      right->slots[to] = to;
      right->keys[to] = left->keys[from];
      right->values[to] = left->value(from);
    }
    if (!left->is_leaf()) {
      std::memcpy(right->children, &left->children[kLeft + 1], (kKeys - kLeft) * sizeof(Node*));
    }
    memory_.stores(left, kHead);
    left->used = kLeft;
    add(parent, at, left->keys[kLeft], left->value(kLeft), right);
  }

  void grow() {
    Node* node = new_node();
    node->children[0] = *top_;
    split_child(node, 0);
    memory_.stores(top_, sizeof(Node*));
    *top_ = node;
  }

  // Returns how many of `count` are still missing.
  std::uint64_t scan_below(const Node* node, Key from, std::uint64_t count, Value& value) const {
    for (std::uint64_t at = node->lower_bound(from);; ++at) {
      if (!node->is_leaf()) count = scan_below(node->children[at], from, count, value);
      if (count == 0 || at == node->used) return count;
      value = node->value(at);
      --count;
    }
  }

  std::uint64_t count_below(const Node* node) const {
    if (node == nullptr) return 0;
    std::uint64_t keys = node->used;
    for (std::uint64_t i = 0; i <= node->used; ++i) keys += count_below(node->children[i]);
    return keys;
  }

  Memory memory_;
  Node** top_ = nullptr;
};

}  // namespace fams
