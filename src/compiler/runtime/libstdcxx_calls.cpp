// Parts of std::map, std::set, std::list and the unordered containers that are in no header. They
// are in libstdc++'s shared library, which is not instrumented. Their nodes are those of the
// headers.
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>

#include "compiler/runtime/marked.hpp"

// A wrapper has the function's name in object files.
#define VELLUM_WRAP_MANGLED(result, mangled, name, parameters)        \
  extern "C" result name parameters __asm__("vellum_wrap_" #mangled); \
  extern "C" result name parameters

namespace {

using vellum::msync::mark_object;
using Node = std::_Rb_tree_node_base;
using Link = std::__detail::_List_node_base;
using Policy = std::__detail::_Prime_rehash_policy;

// The nodes that balancing may change: those on the path from the change to the root, and those
// near it on the other side. Copies are kept, and nodes that differ afterwards are marked. Marking
// all of them would be cheaper here, but more expensive at each commit.
class Balancing {
 public:
  explicit Balancing(Node* header) : header_(header) { keep(header); }
  ~Balancing() {
    for (std::size_t i = 0; i < count_; ++i)
      if (!same(kept_[i])) mark_object(kept_[i].at);
  }
  Balancing(const Balancing&) = delete;
  Balancing& operator=(const Balancing&) = delete;

  // Copies the nodes from `lowest` up to the root, and `depth` generations below each, on the side
  // opposite to the path.
  void keep_way_up(Node* lowest, unsigned depth) {
    Node* below = nullptr;
    for (Node* node = lowest; node != header_ && node != nullptr; node = node->_M_parent) {
      keep(node);
      for (Node* child : {node->_M_left, node->_M_right})
        if (child != below) keep_below(child, depth);
      below = node;
    }
  }

 private:
  struct Kept {
    Node* at;
    Node was;
  };
  static bool same(const Kept& kept) {
    return kept.at->_M_color == kept.was._M_color && kept.at->_M_parent == kept.was._M_parent &&
           kept.at->_M_left == kept.was._M_left && kept.at->_M_right == kept.was._M_right;
  }
  void keep(Node* node) {
    if (count_ == kept_.size()) return mark_object(node);
    kept_[count_++] = {node, *node};
  }
  void keep_below(Node* node, unsigned depth) {
    if (node == nullptr || depth == 0) return;
    keep(node);
    keep_below(node->_M_left, depth - 1);
    keep_below(node->_M_right, depth - 1);
  }

  // A tree of 2^32 nodes is at most 64 deep, with at most 8 nodes at each level here. Further nodes
  // are marked without a comparison.
  std::array<Kept, 520> kept_;
  Node* header_;
  std::size_t count_ = 0;
};

void mark_neighbours(Link* link) {
  mark_object(link);
  mark_object(link->_M_prev);
  mark_object(link->_M_next);
}

}  // namespace

VELLUM_WRAP_MANGLED(void, _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_,
                    vellum_insert_and_rebalance,
                    (bool left, Node* node, Node* parent, Node& header)) {
  {
    Balancing balancing(&header);
    balancing.keep_way_up(parent, 1);
    std::_Rb_tree_insert_and_rebalance(left, node, parent, header);
  }
  mark_object(node);
}

// The next node in order replaces a node with two children. It is at the end of the left edge of
// the right subtree.
VELLUM_WRAP_MANGLED(Node*, _ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_,
                    vellum_rebalance_for_erase, (Node * node, Node& header)) {
  Balancing balancing(&header);
  Node* lowest = node;
  if (node->_M_left != nullptr && node->_M_right != nullptr)
    for (lowest = node->_M_right; lowest->_M_left != nullptr;) lowest = lowest->_M_left;
  balancing.keep_way_up(lowest, 3);
  return std::_Rb_tree_rebalance_for_erase(node, header);
}

VELLUM_WRAP_MANGLED(void, _ZNSt8__detail15_List_node_base7_M_hookEPS0_, vellum_list_hook,
                    (Link * link, Link* before)) {
  link->_M_hook(before);
  mark_neighbours(link);
}
VELLUM_WRAP_MANGLED(void, _ZNSt8__detail15_List_node_base9_M_unhookEv, vellum_list_unhook,
                    (Link * link)) {
  link->_M_unhook();
  mark_object(link->_M_prev);
  mark_object(link->_M_next);
}
VELLUM_WRAP_MANGLED(void, _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_,
                    vellum_list_transfer, (Link * link, Link* first, Link* last)) {
  Link* changed[] = {link, link->_M_prev, first, first->_M_prev, last, last->_M_prev};
  link->_M_transfer(first, last);
  for (Link* one : changed) mark_object(one);
}
VELLUM_WRAP_MANGLED(void, _ZNSt8__detail15_List_node_base10_M_reverseEv, vellum_list_reverse,
                    (Link * link)) {
  link->_M_reverse();
  mark_object(link);
  for (Link* at = link->_M_next; at != link; at = at->_M_next) mark_object(at);
}
VELLUM_WRAP_MANGLED(void, _ZNSt8__detail15_List_node_base4swapERS0_S1_, vellum_list_swap,
                    (Link & a, Link& b)) {
  Link::swap(a, b);
  mark_neighbours(&a);
  mark_neighbours(&b);
}

// These keep the next growth threshold in an object that counts as constant.
VELLUM_WRAP_MANGLED(std::size_t, _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm,
                    vellum_next_buckets, (const Policy* policy, std::size_t count)) {
  const std::size_t buckets = policy->_M_next_bkt(count);
  mark_object(policy);
  return buckets;
}
namespace {
struct NeedRehash {
  std::uint64_t needed;
  std::size_t buckets;
};
}  // namespace
VELLUM_WRAP_MANGLED(NeedRehash, _ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm,
                    vellum_need_rehash,
                    (const Policy* policy, std::size_t buckets, std::size_t elements,
                     std::size_t more)) {
  const auto rehash = policy->_M_need_rehash(buckets, elements, more);
  mark_object(policy);
  return {rehash.first ? 1U : 0U, rehash.second};
}
