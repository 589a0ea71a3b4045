// bench/fams/list.hpp: a linked list with a value in each node: in at the tail, out at the head.
#pragma once

#include "store.hpp"

namespace fams {

// Memory: allocate, release, root(), set_root(), and stores(address, bytes), called before stores
// to bytes that are not of a fresh allocation; kWholeNodes: it prefers one report of a whole tree
// node to reports of its parts.
template <typename Memory>
class List final : public Structure {
 public:
  explicit List(Memory memory) : memory_(memory) {}
  void create(const Size& size) {
    (void)size;
    Ends* ends = static_cast<Ends*>(memory_.allocate(sizeof(Ends)));
    *ends = Ends{nullptr, nullptr};
    memory_.set_root(ends);
  }
  void attach() { ends_ = static_cast<Ends*>(memory_.root()); }

  void insert(Key key, const Value& value) override {
    Node* node = static_cast<Node*>(memory_.allocate(sizeof(Node)));
    node->next = nullptr;
    node->key = key;
    node->value = value;
    memory_.stores(ends_, sizeof(Ends));
    if (ends_->tail == nullptr) {
      ends_->head = node;
    } else {
      memory_.stores(&ends_->tail->next, sizeof(Node*));
      ends_->tail->next = node;
    }
    ends_->tail = node;
  }

  bool remove(Key key) override {
    Node* node = ends_->head;
    if (node == nullptr || node->key != key) return false;
    memory_.stores(ends_, sizeof(Ends));
    ends_->head = node->next;
    if (ends_->head == nullptr) ends_->tail = nullptr;
    memory_.release(node, sizeof(Node));
    last_found_ = nullptr;
    return true;
  }

  bool update(Key key, const Value& value) override {
    Node* node = find(key);
    if (node == nullptr) return false;
    memory_.stores(&node->value, sizeof(Value));
    node->value = value;
    return true;
  }

  bool read(Key key, Value& value) override {
    const Node* node = find(key);
    if (node != nullptr) value = node->value;
    return node != nullptr;
  }

  std::uint64_t scan(Key, std::uint64_t count, Value& value) override {
    std::uint64_t found = 0;
    for (const Node* node = ends_->head; node != nullptr && found < count; node = node->next) {
      value = node->value;
      ++found;
    }
    return found;
  }

  std::uint64_t count() override {
    std::uint64_t nodes = 0;
    for (const Node* node = ends_->head; node != nullptr; node = node->next) ++nodes;
    return nodes;
  }

 private:
  struct Node {
    Node* next;
    Key key;
    Value value;
  };
  struct Ends {
    Node *head, *tail;
  };

  // Keys are requested in ascending order. The next search is mostly for the key after the last one
  // found; therefore searching for all of them is not quadratic.
  Node* find(Key key) {
    Node* node = last_found_ != nullptr && last_key_ < key ? last_found_ : ends_->head;
    while (node != nullptr && node->key != key) node = node->next;
    if (node != nullptr) {
      last_found_ = node;
      last_key_ = key;
    }
    return node;
  }

  Memory memory_;
  Ends* ends_ = nullptr;
  Node* last_found_ = nullptr;
  Key last_key_ = 0;
};

}  // namespace fams
