// bench/fams/btree.hpp: a b-tree of order 8: up to 7 keys with their values and 8 children a node;
// full nodes are split on the way down.
#pragma once

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
    if ((*top_)->keys_used == kKeys) grow();
    Node* node = *top_;
    for (;;) {
      std::uint64_t at = node->lower_bound(key);
      if (node->has(at, key)) return overwrite(node, at, value);
      if (node->is_leaf()) {
        open_gap(node, at);
        node->keys[at] = key;
        node->values[at] = value;
        return;
      }
      if (node->children[at]->keys_used == kKeys) {
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
    if (node != nullptr) value = node->values[at];
    return node != nullptr;
  }

  std::uint64_t scan(Key from, std::uint64_t count, Value& value) override {
    return count - scan_below(*top_, from, count, value);
  }
  bool remove(Key) override { unsupported("this b-tree only grows"); }
  std::uint64_t count() override { return count_below(*top_); }

 private:
  static constexpr std::uint64_t kOrder = 8, kKeys = kOrder - 1, kLeft = kKeys / 2;

  struct Node {
    std::uint64_t keys_used;
    Key keys[kKeys];
    Node* children[kOrder];
    Value values[kKeys];

    bool is_leaf() const { return children[0] == nullptr; }
    std::uint64_t lower_bound(Key key) const {
      std::uint64_t at = 0;
      while (at < keys_used && keys[at] < key) ++at;
      return at;
    }
    bool has(std::uint64_t at, Key key) const { return at < keys_used && keys[at] == key; }
  };
  struct Place {
    Node* node;
    std::uint64_t at;
  };

  Node* new_node() {
    Node* node = static_cast<Node*>(memory_.allocate(sizeof(Node)));
    node->keys_used = 0;
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
    memory_.stores(&node->values[at], sizeof(Value));
    node->values[at] = value;
  }

  // Room for a key at `at`, and for the child behind it.
  void open_gap(Node* node, std::uint64_t at) {
    const std::uint64_t behind = node->keys_used - at;
    memory_.stores(node, offsetof(Node, children));
    memory_.stores(&node->values[at], (behind + 1) * sizeof(Value));
    std::memmove(&node->keys[at + 1], &node->keys[at], behind * sizeof(Key));
    std::memmove(&node->values[at + 1], &node->values[at], behind * sizeof(Value));
    if (!node->is_leaf()) {
      memory_.stores(&node->children[at + 1], (behind + 1) * sizeof(Node*));
      std::memmove(&node->children[at + 2], &node->children[at + 1], behind * sizeof(Node*));
    }
    node->keys_used += 1;
  }

  // Of a full child of a node that is not: its upper half goes into a new one, its middle key up.
  void split_child(Node* parent, std::uint64_t at) {
    Node* left = parent->children[at];
    Node* right = new_node();
    right->keys_used = kKeys - kLeft - 1;
    std::memcpy(right->keys, &left->keys[kLeft + 1], right->keys_used * sizeof(Key));
    std::memcpy(right->values, &left->values[kLeft + 1], right->keys_used * sizeof(Value));
    if (!left->is_leaf()) {
      std::memcpy(right->children, &left->children[kLeft + 1],
                  (right->keys_used + 1) * sizeof(Node*));
    }
    memory_.stores(&left->keys_used, sizeof left->keys_used);
    left->keys_used = kLeft;
    open_gap(parent, at);
    parent->keys[at] = left->keys[kLeft];
    parent->values[at] = left->values[kLeft];
    parent->children[at + 1] = right;
  }

  void grow() {
    Node* node = new_node();
    node->children[0] = *top_;
    split_child(node, 0);
    memory_.stores(top_, sizeof(Node*));
    *top_ = node;
  }

  // Returns how many of `count` are still wanted.
  std::uint64_t scan_below(const Node* node, Key from, std::uint64_t count, Value& value) const {
    for (std::uint64_t at = node->lower_bound(from);; ++at) {
      if (!node->is_leaf()) count = scan_below(node->children[at], from, count, value);
      if (count == 0 || at == node->keys_used) return count;
      value = node->values[at];
      --count;
    }
  }

  std::uint64_t count_below(const Node* node) const {
    if (node == nullptr) return 0;
    std::uint64_t keys = node->keys_used;
    for (std::uint64_t i = 0; i <= node->keys_used; ++i) keys += count_below(node->children[i]);
    return keys;
  }

  Memory memory_;
  Node** top_ = nullptr;
};

}  // namespace fams
