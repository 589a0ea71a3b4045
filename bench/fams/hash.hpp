// bench/fams/hash.hpp: a hash map with chains and as many buckets as it will have keys.
#pragma once

#include <bit>
#include <cstring>

#include "store.hpp"

namespace fams {

template <typename Memory>
class Hash final : public Structure {
 public:
  explicit Hash(Memory memory) : memory_(memory) {}
  void create(const Size& size) {
    const unsigned bits = static_cast<unsigned>(std::bit_width(size.keys));
    Table* table = static_cast<Table*>(memory_.allocate(sizeof(Table)));
    table->shift = 64 - bits;
    table->buckets = static_cast<Node**>(memory_.allocate(sizeof(Node*) << bits));
    std::memset(table->buckets, 0, sizeof(Node*) << bits);
    memory_.set_root(table);
  }
  void attach() { table_ = static_cast<Table*>(memory_.root()); }

  void insert(Key key, const Value& value) override {
    if (update(key, value)) return;
    Node** bucket = bucket_of(key);
    Node* node = static_cast<Node*>(memory_.allocate(sizeof(Node)));
    node->next = *bucket;
    node->key = key;
    node->value = value;
    memory_.stores(bucket, sizeof(Node*));
    *bucket = node;
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

  std::uint64_t scan(Key, std::uint64_t, Value&) override {
    unsupported("a hash map has no order");
  }

  bool remove(Key key) override {
    Node** link = bucket_of(key);
    while (*link != nullptr && (*link)->key != key) link = &(*link)->next;
    Node* node = *link;
    if (node == nullptr) return false;
    memory_.stores(link, sizeof(Node*));
    *link = node->next;
    memory_.release(node, sizeof(Node));
    return true;
  }

  std::uint64_t count() override {
    std::uint64_t nodes = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << (64 - table_->shift); ++i) {
      for (const Node* node = table_->buckets[i]; node != nullptr; node = node->next) ++nodes;
    }
    return nodes;
  }

 private:
  struct Node {
    Node* next;
    Key key;
    Value value;
  };
  struct Table {
    std::uint64_t shift;
    Node** buckets;
  };

  Node** bucket_of(Key key) const {
    return &table_->buckets[(key * 0x9E3779B97F4A7C15) >> table_->shift];
  }
  Node* find(Key key) const {
    Node* node = *bucket_of(key);
    while (node != nullptr && node->key != key) node = node->next;
    return node;
  }

  Memory memory_;
  Table* table_ = nullptr;
};

}  // namespace fams
