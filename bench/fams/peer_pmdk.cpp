// bench/fams/peer_pmdk.cpp: the structures in a pool of PMDK's libpmemobj, one transaction per
// commit, in which each range is added (its undo log) before it is stored to.
//
//   pmdk          nodes are from its own allocator (pmemobj_tx_alloc)
//   pmdk-arena    nodes are from one object of the pool, end to end, like the others'; fresh memory
//                 is flushed without a snapshot of its old content
//
// Pointers are plain ones: the pool is mapped at PMEM_MMAP_HINT, which fams.cpp sets.
#include <libpmemobj.h>

#include "arena.hpp"
#include "btree.hpp"
#include "hash.hpp"
#include "list.hpp"
#include "scattered.hpp"

namespace fams {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + pmemobj_errormsg());
}

// One pool, and the transaction that its first change begins.
struct Pool {
  PMEMobjpool* pool = nullptr;
  bool in_transaction = false;

  void begin() {
    if (in_transaction) return;
    if (pmemobj_tx_begin(pool, nullptr, TX_PARAM_NONE) != 0) fail("pmemobj_tx_begin");
    in_transaction = true;
  }
  void add(const void* address, std::size_t bytes, std::uint64_t flags) {
    begin();
    if (pmemobj_tx_xadd_range_direct(address, bytes, flags) != 0) fail("pmemobj_tx_xadd_range");
  }
  void commit() {
    if (!in_transaction) return;
    pmemobj_tx_commit();
    if (pmemobj_tx_end() != 0) fail("pmemobj_tx_end");
    in_transaction = false;
  }
};
Pool the_pool;

struct PoolRoot {
  void* pool;  // the address of its mapping
  void* root;
};

PoolRoot* pool_root() {
  return static_cast<PoolRoot*>(pmemobj_direct(pmemobj_root(the_pool.pool, sizeof(PoolRoot))));
}

// A range costs more than its bytes: changes all over a node are one range, as in its own b-tree.
class ObjectMemory {
 public:
  static constexpr bool kWholeNodes = true;
  void* allocate(std::size_t bytes) {
    the_pool.begin();
    const PMEMoid object = pmemobj_tx_alloc(bytes, 0);
    if (OID_IS_NULL(object)) fail("pmemobj_tx_alloc");
    return pmemobj_direct(object);
  }
  void release(void* block, std::size_t) {
    the_pool.begin();
    if (pmemobj_tx_free(pmemobj_oid(block)) != 0) fail("pmemobj_tx_free");
  }
  void stores(const void* address, std::size_t bytes) { the_pool.add(address, bytes, 0); }
  void* root() const { return pool_root()->root; }
  void set_root(void* root) {
    stores(pool_root(), sizeof(PoolRoot));
    pool_root()->root = root;
  }
};

// Like Arena. Where its memory is fresh, no old content has to be saved.
class ArenaMemory {
 public:
  static constexpr bool kWholeNodes = true;
  ArenaMemory(void* base, std::uint64_t size_bytes)
      : head_(static_cast<ArenaHead*>(base)), size_bytes_(size_bytes) {}
  void format() {
    stores(head_, sizeof(ArenaHead));
    *head_ = ArenaHead{kArenaAlignment, nullptr, nullptr};
  }
  void* allocate(std::size_t bytes) {
    stores(head_, sizeof(ArenaHead));
    void* block = head_->released;
    if (block != nullptr) {
      stores(block, bytes);
      head_->released = *static_cast<void**>(block);
      return block;
    }
    bytes = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    if (bytes > size_bytes_ - head_->used_bytes) throw std::runtime_error("the arena is full");
    block = reinterpret_cast<char*>(head_) + head_->used_bytes;
    head_->used_bytes += bytes;
    the_pool.add(block, bytes, POBJ_XADD_NO_SNAPSHOT);
    return block;
  }
  void release(void* block, std::size_t) {
    stores(block, sizeof(void*));
    stores(head_, sizeof(ArenaHead));
    *static_cast<void**>(block) = head_->released;
    head_->released = block;
  }
  void stores(const void* address, std::size_t bytes) { the_pool.add(address, bytes, 0); }
  void* root() const { return head_->root; }
  void set_root(void* root) {
    stores(head_, sizeof(ArenaHead));
    head_->root = root;
  }

 private:
  ArenaHead* head_;
  std::uint64_t size_bytes_;
};

template <typename Shaped, typename Memory>
std::unique_ptr<Structure> attach(Memory memory, bool fresh, const Size& size) {
  auto shaped = std::make_unique<Shaped>(memory);
  if (fresh) shaped->create(size);
  shaped->attach();
  return shaped;
}

template <typename Memory>
std::unique_ptr<Structure> structure_in(Memory memory, bool fresh, const Size& size) {
  switch (size.shape) {
    case Shape::list:
      return attach<List<Memory>>(memory, fresh, size);
    case Shape::btree:
      return attach<Btree<Memory>>(memory, fresh, size);
    case Shape::hash:
      return attach<Hash<Memory>>(memory, fresh, size);
    case Shape::scattered:
      return attach<Scattered<Memory>>(memory, fresh, size);
  }
  return nullptr;
}

class Pmdk final : public Store {
 public:
  explicit Pmdk(const Setting& setting) : setting_(setting), fresh_(setting.fresh) {
    open();
    fresh_ = false;
  }
  ~Pmdk() override {
    if (the_pool.in_transaction) {
      pmemobj_tx_abort(ECANCELED);
      (void)pmemobj_tx_end();
      the_pool.in_transaction = false;
    }
    close();
  }
  Structure& structure() override { return *structure_; }
  void commit() override { the_pool.commit(); }
  void close() override {
    structure_.reset();
    if (the_pool.pool != nullptr) pmemobj_close(the_pool.pool);
    the_pool.pool = nullptr;
  }
  void open() override {
    const std::string path = setting_.directory + "/pool";
    // Its allocator has headers and size classes.
    const std::uint64_t bytes = arena_bytes(setting_.size) * 3 / 2 + (64 << 20);
    the_pool.pool = fresh_ ? pmemobj_create(path.c_str(), "fams", bytes, 0644)
                           : pmemobj_open(path.c_str(), "fams");
    if (the_pool.pool == nullptr) fail("pmemobj_create or pmemobj_open");
    if (fresh_) {
      the_pool.add(pool_root(), sizeof(PoolRoot), 0);
      pool_root()->pool = the_pool.pool;
    } else if (pool_root()->pool != the_pool.pool) {
      throw std::runtime_error("the pool is mapped at another address than before");
    }
    if (setting_.name == "pmdk-arena") {
      const std::uint64_t size_bytes = arena_bytes(setting_.size);
      if (fresh_) pool_root()->root = ObjectMemory().allocate(size_bytes);
      ArenaMemory memory(pool_root()->root, size_bytes);
      if (fresh_) memory.format();
      structure_ = structure_in(memory, fresh_, setting_.size);
    } else {
      structure_ = structure_in(ObjectMemory(), fresh_, setting_.size);
    }
    commit();
  }

 private:
  Setting setting_;
  bool fresh_;
  std::unique_ptr<Structure> structure_;
};

}  // namespace

std::unique_ptr<Store> make_pmdk(const Setting& setting) { return std::make_unique<Pmdk>(setting); }

}  // namespace fams
