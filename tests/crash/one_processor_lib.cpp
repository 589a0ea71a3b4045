// This program simulates thousands of crashes a second, each with stores of its own. When a store
// sees only one processor, it starts no threads for a handful of pages.
extern "C" int get_nprocs() { return 1; }
