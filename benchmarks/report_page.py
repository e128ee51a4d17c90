"""How long the report of a long run takes to make and to open, and how long a frame takes.

    python -m benchmarks.report_page

Writes benchmarks/results/report_page.json. Needs chromium and playwright, as the page tests do.
"""

from __future__ import annotations

import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.report.recorded_runs import SCRIPT, record, right

RESULT = Path(__file__).parent / "results" / "report_page.json"
OPENED = 7  # times

FRAMES = """(() => {
    const t = window.zerogradReport.timeline, times = [];
    for (const scale of [0.13, 2, 12, 60]) {
        for (let i = 0; i < 30; i++) {
            t.scale = scale; t.left = i * 180; t.clamp();
            const began = performance.now();
            t.draw();
            t.on.getImageData(200, 50, 1, 1);  // wait until it is really drawn
            times.push(performance.now() - began);
        }
    }
    return times.sort((a, b) => a - b);
})()"""


def measure(steps: int, folder: Path) -> dict[str, object]:
    (folder / "train.py").write_text(SCRIPT)
    trace = record(folder / f"{steps}.jsonl", steps, right, script=str(folder / "train.py"))
    began = time.monotonic()
    words = [sys.executable, "-m", "zerograd", "report", str(trace), "--format", "html"]
    subprocess.run(words, check=True, capture_output=True)
    made = time.monotonic() - began
    page_file = folder / f"{steps}.jsonl.html"
    opened = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(OPENED):
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            began = time.monotonic()
            page.goto(page_file.as_uri())
            page.wait_for_selector("html[data-ready]")
            opened.append(time.monotonic() - began)
            frames = page.evaluate(FRAMES)
            page.close()
        browser.close()
    return {
        "steps": steps,
        "trace_bytes": trace.stat().st_size,
        "page_bytes": page_file.stat().st_size,
        "made_s": round(made, 2),
        "opened_s_median": round(statistics.median(opened), 3),
        "opened_s_worst": round(max(opened), 3),
        "frame_ms_median": round(statistics.median(frames), 2),
        "frame_ms_p95": round(frames[int(len(frames) * 0.95)], 2),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(steps, Path(folder)) for steps in (1_000, 100_000, 1_000_000)]
    result = {"python": platform.python_version(), "machine": platform.machine(), "rows": rows}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
