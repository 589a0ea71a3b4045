// cli/web/pages/style.cpp: the style sheet. Texts have a contrast of 4.5:1 at least, in the light
// and in the dark scheme, and no page is wider than its window.
#include "cli/web/pages/html.hpp"

namespace vellum::cli {
namespace {

// A row of .versions is as high as kRowHeight in graph_drawing.cpp.
constexpr std::string_view kStyle = R"(:root { color-scheme: light dark;
  --faint: #595959; --error: #b3261e;
  --lane0: #1b6ca8; --lane1: #c0281a; --lane2: #1f7a3c; --lane3: #8a6100; --lane4: #6a4fc3; --lane5: #5c5c5c; }
@media (prefers-color-scheme: dark) { :root {
  --faint: #b0b0b0; --error: #ff8a80;
  --lane0: #6cb6ff; --lane1: #ff8a7a; --lane2: #5fd07f; --lane3: #e0b040; --lane4: #b9adff; --lane5: #b0b0b0; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 2rem 3rem; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 0; background: Canvas; padding: 0.5rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; padding: 0.8rem 0; border-bottom: 1px solid #8886; }
nav form { display: inline; }
input { width: 9rem; max-width: 100%; }
::placeholder { color: var(--faint); opacity: 1; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 0; }
p, td, li { overflow-wrap: anywhere; }
.links a { margin-right: 0.8rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th { text-align: left; border-bottom: 1px solid #888; }
th, td { padding: 0.1rem 0.8rem 0.1rem 0; vertical-align: top; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code, pre, .cells, .command input { font: 14px/1.45 ui-monospace, monospace; }
mark { background: #fc8d59; color: black; }
meter { width: 12rem; }
.faint { color: var(--faint); }
.error { color: var(--error); }
.wide { overflow-x: auto; }
.command { display: block; margin: 0.5rem 0; }
.command input { width: auto; display: block; user-select: all; }
.chosen { position: sticky; top: 0; background: Canvas; padding: 0.5rem 0; border-bottom: 1px solid #8886; }

.graph { display: flex; align-items: flex-start; }
.lanes { flex: none; max-width: 40%; overflow-x: auto; }
.lanes svg { display: block; }
.lanes path { fill: none; stroke: currentColor; stroke-width: 2; }
.lanes circle { fill: currentColor; }
.lanes .head { fill: Canvas; stroke: currentColor; stroke-width: 3; }
.versions { flex: auto; min-width: 0; margin: 0; padding: 0; list-style: none; }
.versions li { height: 3rem; line-height: 1.35rem; scroll-margin-top: 3rem; }
.versions li > div { display: flex; gap: 0.6rem; }
.versions li > div > * { min-width: 0; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.versions li > div > a:first-of-type:not(:only-of-type) { flex: none; }
.versions li > div > span { flex: 1 1 4rem; min-width: 4rem; }
.versions li:target { background: #8883; }
.legend span::before { content: "\25CF  "; }
.legend span { margin-right: 0.6rem; }
.lane0 { color: var(--lane0); } .lane1 { color: var(--lane1); } .lane2 { color: var(--lane2); }
.lane3 { color: var(--lane3); } .lane4 { color: var(--lane4); } .lane5 { color: var(--lane5); }

.changes { list-style: none; padding: 0; }
.changes li { margin-bottom: 0.8rem; }
.sides { display: flex; flex-wrap: wrap; gap: 0 2rem; }
.sides pre { margin: 0.1rem 0; }

.cells a { color: inherit; text-decoration: none; }
.cells a:hover, .cells .at { text-decoration: underline; }
.half, .at { display: inline-block; white-space: pre; margin-right: 1.5ch; }
@media (max-width: 40rem) {
  body { margin: 0 1rem 2rem; }
  code, pre, .cells { font-size: 12px; }
  th, td { padding-right: 0.5rem; }
  meter { display: none; }
  .cells .at { display: block; }
  .cells .half { display: block; margin-left: 1ch; }
}
)";

}  // namespace

std::string_view style_sheet() noexcept { return kStyle; }

}  // namespace vellum::cli
