// cli/version.hpp: the version that --version prints.
#pragma once

#ifndef VELLUM_VERSION
#define VELLUM_VERSION "0.1.0"  // project(VERSION) in CMakeLists.txt; a test compares the two
#endif
