// This program simulates thousands of crashes a second, each with stores of its own. With one
// processor to be seen, a store starts no threads for a handful of pages.
extern "C" int get_nprocs() { return 1; }
