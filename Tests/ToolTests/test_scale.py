"""The limits of the scale tools, without measurements."""

import contextlib
import io
import pathlib
import sys
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PACKAGE / "Tools"))

import scale  # noqa: E402
import scale_growth  # noqa: E402
import scale_memory  # noqa: E402

SIZES = [100_000, 1_000_000, 3_000_000]


class Growth(unittest.TestCase):
    def test_three_times_n_log_n_is_allowed(self):
        allowed = scale.allowed_growth(1000, 10_000)
        self.assertAlmostEqual(allowed, 3 * 10 * 4 / 3)
        self.assertLess(allowed, 100)  # quadratic

    def test_slow_suite_is_a_warning_and_a_very_slow_one_a_failure(self):
        for seconds, expected in ((299, ""), (301, "WARNING: 301 s, more than 300")):
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                scale.limit_time(seconds)
            self.assertIn(expected, errors.getvalue())
            self.assertEqual(errors.getvalue() == "", expected == "")
        with self.assertRaisesRegex(SystemExit, "error: 601 s, more than 600"):
            scale.limit_time(601)


class Memory(unittest.TestCase):
    def faults(self, seconds, megabytes, limit=150, sizes=tuple(SIZES)):
        rows = [(taken, memory * 1e6, 0) for taken, memory in zip(seconds, megabytes, strict=True)]
        return list(scale_memory.faults({"check": rows}, list(sizes), limit))

    def test_memory_is_limited_up_to_a_million_entries(self):
        self.assertEqual(self.faults([1, 10, 30], [20, 149, 300]), [])
        self.assertEqual(self.faults([1, 10, 30], [20, 151, 300]),
                         ["check: 151 MB for 1000000 entries, more than 150 MB"])
        self.assertEqual(self.faults([1, 10, 30], [20, 151, 300], limit=None), [])
        self.assertEqual(len(self.faults([10], [151], sizes=[1_000_000])), 1)

    def test_growth_is_limited(self):
        self.assertEqual(self.faults([1, 10, 90], [1, 1, 1]), [])
        found = self.faults([1, 10, 100], [1, 1, 1])
        self.assertEqual(len(found), 1)
        self.assertIn("10.00 s of processor time for 1000000 entries, 100.00 s for 3000000",
                      found[0])
        # Too short for a comparison.
        self.assertEqual(self.faults([0, 0.01, 0.4], [1, 1, 1]), [])

    def test_each_format_is_written_and_read(self):
        formats = {step.split()[1] for step in scale_memory.FORMATS if step.startswith("export ")}
        read = {step.split()[1] for step in scale_memory.FORMATS if step.startswith("import ")}
        self.assertEqual(formats, read)
        self.assertLessEqual({"android", "ipa", "itunes", "snap", "tar", "xcappdata", "zip"},
                             formats)
        steps = [step for step, _ in scale_memory.SUITE]
        for name in formats:
            self.assertLess(steps.index(f"export {name}"), steps.index(f"import {name}"))


class Snapshots(unittest.TestCase):
    """The limits for many snapshots, with values a thousandth below and above each limit."""

    def rows(self, part, factor=1.0, of=None):
        rows = {}
        for name, step, most, reference in scale_growth.LIMITS:
            if name == part:
                rows[step] = (most * (0.05 if reference else 1)
                              * (factor if step == of else 0.999), 0)
                if reference:
                    rows[reference] = (0.05, 0)
        return rows

    def test_each_limit_is_checked(self):
        for part in {limit[0] for limit in scale_growth.LIMITS}:
            self.assertIn(part, scale_growth.PARTS)
            self.assertEqual(list(scale_growth.exceeded(part, self.rows(part))), [])
            for name, step, _, _ in scale_growth.LIMITS:
                if name == part:
                    found = list(scale_growth.exceeded(part, self.rows(part, 1.001, of=step)))
                    self.assertEqual([step for step, _ in found], [step])

    def test_a_margin_is_for_ratios(self):
        for part, step, _, reference in scale_growth.LIMITS:
            for factor, is_within in ((1.49, True), (1.51, False)):
                rows = self.rows(part, factor, of=step)
                found = [step for step, _ in scale_growth.exceeded(part, rows, margin=1.5)]
                self.assertEqual(found, [] if reference and is_within else [step])

    def test_searches_and_backups_are_compared_with_those_of_one_snapshot_or_of_few(self):
        limits = {(part, step): (most, reference)
                  for part, step, most, reference in scale_growth.LIMITS}
        self.assertEqual(limits["device", "find"], (3.0, "find in one"))
        self.assertEqual(limits["device", "versions"], (3.0, "find in one"))
        self.assertEqual(limits["device", "unchanged backup"],
                         (1.2, "unchanged backup of a copy with few snapshots"))
        self.assertEqual(limits["device", "snapshots list"], (0.1, None))


if __name__ == "__main__":
    unittest.main()
