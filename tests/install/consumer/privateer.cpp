// The smallest program that uses an installed Privateer interface, in both ways to include it.
#include <privateer/c_api/privateer.h>
#include <privateer.hpp>
#include <privateer/privateer.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Privateer privateer(Privateer::CREATE, argv[1]);
  privateer.create(nullptr, "v0", 4096);
  return privateer.snapshot("v1") && get_privateer_object(OPEN, argv[1]) != nullptr ? 0 : 1;
}
