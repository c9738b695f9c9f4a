"""What every measurement uses: the tools in C, facts about processes, rows with a target and a verdict, tables.

A row is [what, measured, target, verdict]. The verdict is "met" or "missed", and empty where there is no target. A
missed target does not fail the run.
"""

import os
import subprocess
import sys

from stage import ROOT, Trouble, children, compiled, memory, progress  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.join(ROOT, ".build-bench")


def build_tools():
    """The three C programs; no package is needed beyond a compiler, and the Swift toolchain brings one."""
    os.makedirs(TOOLS, exist_ok=True)
    for name in ["floor", "load", "spawn"]:
        compiled(os.path.join(TOOLS, name), os.path.join(HERE, name + ".c"))


def tool(name, *arguments, **options):
    """Runs a tool and reads its line of "name value" pairs."""
    command = [os.path.join(TOOLS, name), *map(str, arguments)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    words = result.stdout.split()
    if result.returncode != 0 or not words:
        raise Trouble(f"{name} {' '.join(map(str, arguments))} ended with status {result.returncode}")
    return {key: float(value) for key, value in zip(words[::2], words[1::2])}


def percentile(values, share):
    """The value below which this share of the values is, for example 0.99."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def family(pid):
    """A process and its children: a daemon and its helper."""
    return [pid, *children(pid)]


def cpu_seconds(pids):
    """User and system time of these processes so far (proc(5), fields 14 and 15 of stat)."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def status_fields(place):
    with open(place) as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def anonymous_memory(pid):
    """Bytes of anonymous memory that are resident."""
    return 1024 * memory(pid)


def resident_memory(pid):
    """All bytes that are resident, with the pages of the executable and of the libraries."""
    return 1024 * memory(pid, "VmRSS")


def proportional_memory(pids):
    """All resident bytes of these processes together. A page that several processes have counts in parts (Pss), so what
    a daemon shares with its helper counts once. None where the kernel does not show it to this user."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except PermissionError:
            return None
    return 1024 * total


def wake_ups(pids):
    """For each thread of these processes, how often it has given up the processor by itself so far: (pid, thread) to
    (name, count). A thread that waits and is woken up counts once when it waits again."""
    found = {}
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                fields = status_fields(f"/proc/{pid}/task/{thread}/status")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since
            found[pid, int(thread)] = (fields["Name"], int(fields["voluntary_ctxt_switches"]))
    return found


def row(what, measured, target="", is_met=None):
    return [what, measured, target, "" if is_met is None else "met" if is_met else "missed"]


def at_least(what, value, target, unit="", digits=2, note=""):
    return row(what, f"{value:,.{digits}f}{unit}{note}", f"≥ {target:,g}{unit}", value >= target)


def at_most(what, value, target, unit="", digits=2, note=""):
    return row(what, f"{value:,.{digits}f}{unit}{note}", f"≤ {target:,g}{unit}", value <= target)


# The tables that were printed, in Markdown, for docs/performance.md.
markdown = []


def table(title, head, rows):
    """A plain table: the first column to the left, the others to the right, a verdict to the left again."""
    columns = ["---" if name in (head[0], "verdict") else "---:" for name in head]
    lines = ["| " + " | ".join(cell.strip() for cell in line) + " |" for line in [head, columns, *rows]]
    markdown.append(f"{title}:\n\n" + "\n".join(lines) + "\n")
    widths = [max(len(str(line[i])) for line in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for line in [head, *rows]:
        cells = [str(line[0]).ljust(widths[0])]
        for name, cell, width in zip(head[1:], line[1:], widths[1:]):
            cells.append(str(cell).ljust(width) if name == "verdict" else str(cell).rjust(width))
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


def table_of_targets(title, rows):
    table(title, ["what", "measured", "target", "verdict"], rows)
