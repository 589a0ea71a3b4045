// An object that parent and children share.
#pragma once

#include <sys/mman.h>

#include <new>
#include <stdexcept>

namespace vellum::test {

template <typename T>
class Shared {
 public:
  Shared() {
    void* map = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::runtime_error("mmap");
    object_ = new (map) T();
  }
  ~Shared() { munmap(object_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  T* object_;
};

}  // namespace vellum::test
