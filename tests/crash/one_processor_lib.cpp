// This program simulates thousands of crashes a second, each with its own stores. A store that sees
// only one processor starts no threads for a few pages.
extern "C" int get_nprocs() { return 1; }
