# Debian 12's libraries, instead of a remote's packages.
[platform_requires]
zstd/1.5.4
lz4/1.9.4
xxhash/0.8.1
openssl/3.0.0
fmt/9.1.0
cli11/2.3.2
nlohmann_json/3.11.2
