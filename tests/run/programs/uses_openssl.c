/* Writes a file, and uses OpenSSL, whose exit handler then runs before the library's: uses_openssl FILE first|last.
 * The order of both decides which of them registers its handler first. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include "require.h"

static void hash(void) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  REQUIRE(EVP_Digest("a", 1, digest, NULL, EVP_sha256(), NULL) == 1);
}

int main(int count, char** arguments) {
  static char bytes[300000];
  REQUIRE(count == 3);
  memset(bytes, 'x', sizeof bytes);
  const int hashes_first = strcmp(arguments[2], "first") == 0;
  if (hashes_first) hash();
  const int fd = open(arguments[1], O_RDWR | O_CREAT, 0644);
  REQUIRE(fd >= 0);
  REQUIRE(write(fd, bytes, sizeof bytes) == sizeof bytes && fsync(fd) == 0);
  REQUIRE(write(fd, bytes, sizeof bytes) == sizeof bytes);
  if (!hashes_first) hash();
  return 0;
}
