/* Statically linked: the dynamic linker never sees it. */
int main(void) { return 0; }
