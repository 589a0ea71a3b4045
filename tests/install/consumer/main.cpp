// The smallest program that uses an installed Vellum.
#include <cstring>
#include <vellum/error.hpp>

int main() { return std::strcmp(vellum::errc_name(vellum::Errc::not_found), "not_found"); }
