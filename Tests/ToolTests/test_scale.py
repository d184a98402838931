"""The limits of the scale tools, without measurements."""

import pathlib
import sys
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PACKAGE / "Tools"))

import scale  # noqa: E402
import scale_memory  # noqa: E402

SIZES = [100_000, 1_000_000, 3_000_000]


class Growth(unittest.TestCase):
    def test_three_times_n_log_n_is_allowed(self):
        allowed = scale.allowed_growth(1000, 10_000)
        self.assertAlmostEqual(allowed, 3 * 10 * 4 / 3)
        self.assertLess(allowed, 100)  # quadratic


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


if __name__ == "__main__":
    unittest.main()
