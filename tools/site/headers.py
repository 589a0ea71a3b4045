"""Public headers as Markdown: comments become prose, declarations stay code, classes are split by member.

The headers are the manual of the library. Blank lines separate their declarations, and a comment is before the
declaration that it describes; therefore no parser of C++ is needed.
"""

import html
import re


def strip_comment(line):
    line = re.sub(r"^\s*(//|/\*| \*(?!/))", "", line)
    return re.sub(r"\s*\*/\s*$", "", line).rstrip()


def is_comment(line, inside):
    return inside or re.match(r"\s*(//|/\*)", line) is not None


def leading_comment(lines):
    """How many of the first lines are a comment."""
    count, inside = 0, False
    for line in lines:
        if not is_comment(line, inside):
            break
        inside = ("/*" in line or inside) and "*/" not in line
        count += 1
    return count


def prose(comment, language):
    """The text of a comment; lines that are indented by three or more are code."""
    out, code, bullet = [], [], False

    def end_code():
        if code:
            out.extend(["", f"```{language}", *code, "```", ""])
            code.clear()

    for line in map(strip_comment, comment):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            if code:
                code.append("")
                continue
            bullet = False
            out.append("")
        elif re.match(r" {0,3}- ", line):
            end_code()
            if not bullet:
                out.append("")
            bullet = True
            out.append("- " + html.escape(line.lstrip()[2:], quote=False))
        elif indent >= 3 and not bullet and (code or not out or not out[-1].strip()):
            code.append(line[3:])
        else:
            while code and not code[-1]:
                code.pop()
            end_code()
            out.append(("  " if bullet else "") + html.escape(line.strip(), quote=False))
    while code and not code[-1]:
        code.pop()
    end_code()
    return re.sub(r"(?<=::)\n +|(?<=::)\n(?=\w)", "", "\n".join(out)).strip()


def depth_of(line):
    code = re.sub(r"//.*|\"(\\.|[^\"])*\"|'(\\.|[^'])'|/\*.*?\*/", "", line)
    return sum(code.count(c) for c in "({") - sum(code.count(c) for c in ")}")


def blocks(lines):
    """Parts that blank lines separate outside of braces."""
    piece, depth, inside = [], 0, False
    for line in lines:
        if not line.strip() and depth <= 0 and not inside:
            if piece:
                yield piece
            piece = []
            continue
        piece.append(line)
        if is_comment(line, inside):
            inside = ("/*" in line or inside) and "*/" not in line
        else:
            depth += depth_of(line)
    if piece:
        yield piece


def declarations(piece):
    """The declarations of a block, each with the comment before it; overloads stay together."""
    out, item, depth, inside = [], [], 0, False
    for line in piece:
        item.append(line)
        if is_comment(line, inside):
            inside = ("/*" in line or inside) and "*/" not in line
            continue
        depth += depth_of(line)
        if depth <= 0 and re.search(r"[;}]\s*(//.*|/\*.*\*/\s*)?$", line):
            if out and is_function(item) and title_of(code_of(item)) == title_of(code_of(out[-1])):
                out[-1] += item
            else:
                out.append(item)
            item, depth = [], 0
    if item:
        out.append(item)
    return out


def code_of(piece):
    return piece[leading_comment(piece):]


def is_function(piece):
    return title_of(code_of(piece)).endswith("()")


def title_of(code):
    text = " ".join(re.sub(r"//.*|/\*.*?\*/", "", line) for line in code)
    text = re.sub(r"template <[^>]*(<[^>]*>)*[^>]*>", "", text)
    text = re.sub(r"\[\[[a-z]+\]\]", "", text)
    match = re.search(r"\b(class|struct|enum class|enum|union)\s+(\w+)\s*(?:final)?\s*(?:[{:]|;)", text)
    if match:
        return f"{match.group(1)} {match.group(2)}"
    match = re.search(r"\busing\s+(\w+)", text) or re.search(r"#define\s+(\w+)", text)
    if match:
        return match.group(1)
    text = re.sub(r"(?<!operator)(?<![=!<>])=(?!=).*", "", text)  # the value of a member
    names = list(dict.fromkeys(re.findall(r"(~?\b[A-Za-z_]\w*|operator[^\s(]+)\s*\((?!\*)", text)))
    names = [n for n in names if n not in ("noexcept", "sizeof", "decltype", "defined", "explicit", "__attribute__")]
    return names[0] + "()" if names else ""


def dedented(code):
    width = min((len(l) - len(l.lstrip()) for l in code if l.strip()), default=0)
    return [line[width:] for line in code]


def block_markdown(piece, level, language):
    """A heading for each function of the block."""
    parts = declarations(piece) if code_of(piece) else [piece]
    if not any(map(is_function, parts)):
        parts = [piece]
    return "\n\n".join(declaration_markdown(part, level, language) for part in parts)


def declaration_markdown(piece, level, language):
    count = leading_comment(piece)
    comment, code = piece[:count], piece[count:]
    if not code:
        heading = re.match(r"/\* -+ (.*?) -+ \*/", piece[0])
        return f"{'#' * level} {heading.group(1)}" if heading else prose(comment, language)
    out, name = [], title_of(code)
    if name:
        out.append(f"{'#' * level} {name}")
    if comment:
        out.append(prose(comment, language))
    if re.match(r"\s*(template <.*> ?)?(class|struct) (\[\[\w+\]\] )?\w+.*\{", code[0]) and has_functions(code[1:-1]):
        out.append(f"```{language}\n{code[0]} ... }};\n```")
        out += class_markdown(code[1:-1], level + 1, language)
    else:
        out.append(f"```{language}\n" + "\n".join(dedented(code)) + "\n```")
    return "\n\n".join(out)


def public_part(body):
    hidden, public = False, []
    for line in body:
        access = re.match(r"\s*(public|private|protected):", line)
        if access:
            hidden = access.group(1) != "public"
        elif not hidden:
            public.append(line)
    return public


def has_functions(body):
    return any(is_function(part) for piece in blocks(public_part(body)) for part in declarations(piece))


def class_markdown(body, level, language):
    return [block_markdown(piece, level, language) for piece in blocks(public_part(body))
            if not any("Impl" in line for line in piece)]


def without_frame(lines):
    """The declarations: no guards, includes, namespaces, `extern "C"`, nor namespace detail."""
    out, skip = [], False
    for line in lines:
        if re.match(r"namespace detail \{", line):
            skip = True
        elif skip:
            skip = not re.match(r"\}  // namespace detail", line)
        elif not re.match(r"#(include|ifn?def|if|endif|else|elif|error|define \w+_H(PP)?$)|namespace |\}  // |"
                          r"extern \"C\"|\}$|// clang-format", line):
            out.append(line)
    return out


def summary(text):
    return re.match(r"(?://|/\*)\s*[\w/.]+:\s*(.*?)(?:\.|$)", text.split("\n")[0]).group(1).rstrip("*/ ")


def markdown(path, text):
    language = "cpp" if path.endswith(".hpp") else "c"
    lines = text.split("\n")
    count = leading_comment(lines)
    intro = lines[:count]
    intro[0] = re.sub(r"^(//|/\*)\s*[\w/.]+:\s*(\w+)(\(?)",
                      lambda m: f"{m[1]} {m[2] if m[3] else m[2][0].upper() + m[2][1:]}{m[3]}", intro[0])
    out = [f"# {path[len('include/'):]}", prose(intro, language)]
    out += [block_markdown(piece, 2, language) for piece in blocks(without_frame(lines[count:]))]
    return "\n\n".join(part for part in out if part) + "\n"
