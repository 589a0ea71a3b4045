#!/usr/bin/env python3
"""Checks pages in headless Chromium: check_pages.py CHROMIUM URL DIRECTORY PAGE...

Shows each page below URL at two widths, in the light and in the dark scheme, keeps screenshots in DIRECTORY, and
prints a line for each problem: a page that is wider than its window, text with too little contrast, a
link that the keyboard does not reach, a screenshot that differs from its reference. Then it compares two versions with
the keys Tab and Enter alone. The exit status is 1 if there is a problem. Chromium is driven through pipes, so that no
package is needed.

The references are in the folder references: the top of each page at a sixteenth of its size. No two machines draw a
page alike: fonts, their smoothing and the texts (times, paths) differ. Therefore a page is drawn for comparison in a
monospaced font, whose letters are 0.6 em wide in all usual fonts, and at a sixteenth of the size a word is a grey dot.
Pictures differ when more than MAX_DIFFERENT of their inked dots differ by more than MAX_GREY. Measured: another font or
a bolder one changes at most 0.30 of the dots; without margins, paddings or backgrounds, or moved by 60 pixels, a page
changes by at least 0.39 at one of the widths, and most by 0.6. With VELLUM_NEW_REFERENCES=1 the pictures become those
references that are missing.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys

HEIGHT = 800
VIEWS = ((390, "light"), (390, "dark"), (1280, "dark"), (1280, "light"))
PICTURES = VIEWS[0], VIEWS[2]
MOST_TABS = 200
REFERENCES = pathlib.Path(__file__).parent / "references"
SCALE = 16
MAX_GREY, MAX_DIFFERENT = 48, 0.35

# Every text in one font and on lines of one height, and nothing that depends on the machine's controls.
PLAIN = """(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { font-family: monospace !important; font-size: 14px !important; line-height: 20px !important }
                     input, button { appearance: none !important; border: 1px solid !important }`);
  document.adoptedStyleSheets = [sheet];
})()"""

# The part of the dots of two PNG files (base64) that differ in red, green or blue by more than `most`; dots that have
# the colour of the last dot in both are paper, and do not count.
DIFFERENCE = """(async (a, b, most) => {
  const dots = async data => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + data;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [one, other] = [await dots(a), await dots(b)];
  if (one.width != other.width || one.height != other.height) return 1;
  const differ = (x, i, y, j) => [0, 1, 2].some(c => Math.abs(x.data[i + c] - y.data[j + c]) > most);
  let ink = 0, different = 0;
  for (let i = 0, last = one.data.length - 4; i <= last; i += 4) {
    ink += differ(one, i, one, last) || differ(other, i, other, last);
    different += differ(one, i, other, i);
  }
  return different / Math.max(ink, 1);
})"""

# Returns the problems of the page as lines.
CHECK = r"""(() => {
  const problems = [];
  const shown = e => e.outerHTML.slice(0, 120);
  if (document.documentElement.scrollWidth > innerWidth)
    problems.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const scrollers = '.lanes, .wide';  // a graph with many branches, a heat map
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest(scrollers) || e.closest('.versions') || e.closest('.skip')) continue;
    if (e.tagName == 'INPUT' || e.closest('option')) continue;
    if (e.getBoundingClientRect().right > innerWidth + 1) problems.push(`too wide: ${shown(e)}`);
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX != 'visible')
      problems.push(`has to be scrolled: ${shown(e)}`);
  }
  const canvas = document.createElement('div');
  canvas.style.cssText = 'background: Canvas';
  const sheet = new CSSStyleSheet();
  document.body.append(canvas);
  canvas.className = 'canvas-probe';
  sheet.replaceSync('.canvas-probe { background: Canvas }');
  document.adoptedStyleSheets = [sheet];
  const numbers = c => { const n = c.match(/[\d.]+/g).map(Number); return n.length == 3 ? [...n, 1] : n; };
  const paper = numbers(getComputedStyle(canvas).backgroundColor);
  canvas.remove();
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = c => {
    const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = e => {
    if (!e) return paper;
    if (e.tagName == 'svg' && e.querySelector(':scope > rect[fill=white]')) return [255, 255, 255, 1];
    const own = numbers(getComputedStyle(e).backgroundColor);
    return own[3] == 1 ? own : over(own, background(e.parentElement));
  };
  const check = (e, color, what) => {
    const ground = background(e), ink = numbers(color);
    for (let at = e; at; at = at.parentElement) ink[3] *= Number(getComputedStyle(at).opacity);
    const [a, b] = [light(over(ink, ground)), light(ground)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) problems.push(`contrast ${contrast.toFixed(2)} of ${what}: ${shown(e)}`);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  for (let node; (node = texts.nextNode());) {
    if (!node.data.trim() || node.parentElement.closest('title, style, script')) continue;
    const style = getComputedStyle(node.parentElement);
    const is_svg = node.parentElement instanceof SVGElement;
    check(node.parentElement, is_svg ? style.fill : style.color, 'text');
    ++count;
  }
  for (const e of document.querySelectorAll('input')) {
    check(e, getComputedStyle(e, '::placeholder').color, 'a placeholder');
    check(e, getComputedStyle(e).color, 'a field');
    if (!e.labels.length) problems.push(`no label: ${shown(e)}`);
  }
  if (count < 10) problems.push('the page is nearly empty');
  for (const e of document.querySelectorAll('a, input, button'))
    if (e.tabIndex < 0 && !e.closest('.cells > div, .lanes, .wide'))
      problems.push(`the keyboard does not reach ${shown(e)}`);
  for (const e of document.querySelectorAll('.cells > div, .lanes, .wide svg'))
    if (e.querySelector('[tabindex="-1"]') && !e.closest('.graph') && !e.querySelector('a:not([tabindex])'))
      problems.push(`no link for the keyboard in ${shown(e)}`);
  return problems;
})()"""


class Browser:
    """Headless Chromium, which takes commands on its descriptor 3 and answers on 4, each ended by a zero."""

    def __init__(self, program, directory):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", program, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={directory}/profile",
             "--remote-debugging-pipe"],
            pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.pending, self.count, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Log.enable")

    def next_message(self):
        while b"\0" not in self.pending:
            some = os.read(self.answers, 1 << 20)
            if not some:
                sys.exit("check_pages: the browser has ended")
            self.pending += some
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        command = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.next_message()
            if message.get("id") != self.count:
                self.events.append(message)
            elif "error" in message:
                sys.exit(f"check_pages: {method}: {message['error']}")
            else:
                return message["result"]

    def wait_for(self, event):
        while True:
            message = self.events.pop(0) if self.events else self.next_message()
            if message.get("method") == event:
                return

    def load(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"check_pages: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      text=text if kind == "keyDown" else "")

    def show_as(self, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1,
                  mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def small_screenshot(self, path, width):
        """The top of the page at a sixteenth of its size, in one font, as base64."""
        clip = {"x": 0, "y": 0, "width": width, "height": HEIGHT, "scale": 1 / SCALE}
        data = self.call("Page.captureScreenshot", clip=clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
        return data

    def end(self):
        self.call("Browser.close")
        self.process.wait()


def difference_from_reference(browser, shot, name):
    """Why the picture differs from the reference `name`, as a list of at most one line."""
    reference = REFERENCES / name
    if os.environ.get("VELLUM_NEW_REFERENCES") and not reference.exists():
        reference.write_bytes(base64.b64decode(shot))
    if not reference.exists():
        return [f"no reference {reference}"]
    stored = base64.b64encode(reference.read_bytes()).decode()
    part = browser.value(f"{DIFFERENCE}('{stored}', '{shot}', {MAX_GREY})")
    return [f"{name}: {part:.2f} of the dots differ from the reference"] if part > MAX_DIFFERENT else []


def tab_to(browser, wanted):
    """Presses Tab until the focus is where the expression `wanted` of the element e is true."""
    for _ in range(MOST_TABS):
        browser.press("Tab", 9)
        if browser.value(f"(e => {wanted})(document.activeElement)"):
            return True
    return False


def follow_link(browser, wanted):
    if not tab_to(browser, wanted):
        return False
    browser.events.clear()
    browser.press("Enter", 13, "\r")
    browser.wait_for("Page.loadEventFired")
    return True


def compare_by_keyboard(browser, url):
    """Chooses v2 and then v1: the comparison leads from the older to the newer one."""
    browser.load(url)
    in_row = "e.closest('li')?.id == '{}' && e.textContent == '{}'"
    if not follow_link(browser, in_row.format("v2", "compare")):
        return ["the keyboard does not choose v2"]
    if not follow_link(browser, in_row.format("v1", "v1 → v2")):
        return ["the keyboard does not compare v2 with v1"]
    title = browser.value("document.querySelector('h1').textContent")
    return [] if title == "v1 → v2" else [f"the comparison is '{title}'"]


def copy_by_keyboard(browser, url):
    browser.load(url + "version?name=v2")
    if not tab_to(browser, "e.closest('.command') != null"):
        return ["the keyboard does not reach the command"]
    selected = browser.value("document.activeElement.value.slice(document.activeElement.selectionStart, "
                             "document.activeElement.selectionEnd)")
    return [] if selected.startswith("vellum restore ") else [f"Tab selects '{selected}' of the command"]


def page_name(page):
    return re.sub(r"\W+", "-", page).strip("-") or "index"


def check_pages(browser, url, directory, pages):
    problems = []
    for number, page in enumerate(pages):
        browser.load(url + page)
        for width, scheme in VIEWS:
            browser.show_as(width, scheme)
            problems += [f"{page} at {width}, {scheme}: {problem}" for problem in browser.value(CHECK)]
            if (width, scheme) in PICTURES:
                browser.screenshot(f"{directory}/{number}-{width}-{scheme}.png")
        problems += [f"{page}: {event['params']['entry']['text']}" for event in browser.events
                     if event.get("method") == "Log.entryAdded"]
    return problems


def compare_pictures(browser, url, directory, pages):
    shots, problems = {}, []
    for page in pages:
        browser.load(url + page)
        browser.value(PLAIN)
        for width, scheme in PICTURES:
            browser.show_as(width, scheme)
            name = f"{page_name(page)}-{width}.png"
            shots[name] = browser.small_screenshot(f"{directory}/small-{name}", width)
    browser.load(url + pages[0])
    browser.show_as(*PICTURES[0])
    browser.value(PLAIN.replace("*", "* { margin: 0 !important } *", 1))
    without_margins = browser.small_screenshot(f"{directory}/small-without-margins.png", PICTURES[0][0])
    browser.load("about:blank")  # a page without a policy against pictures
    for name, shot in shots.items():
        problems += difference_from_reference(browser, shot, name)
    if not difference_from_reference(browser, without_margins, f"{page_name(pages[0])}-{PICTURES[0][0]}.png"):
        problems.append("a page without margins does not differ from its reference")
    return problems


def main():
    program, url, directory, pages = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    browser = Browser(program, directory)
    if os.environ.get("VELLUM_NEW_REFERENCES"):
        REFERENCES.mkdir(exist_ok=True)
    problems = check_pages(browser, url, directory, pages) + compare_pictures(browser, url, directory, pages)
    problems += compare_by_keyboard(browser, url) + copy_by_keyboard(browser, url)
    browser.end()
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
