"""Tools/memory-disk.sh: its file system exists only for the command and while it runs."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "Tools/memory-disk.sh"
CAN_MOUNT = subprocess.run(["unshare", "--mount", "true"], check=False,
                           capture_output=True).returncode == 0


class MemoryDisk(unittest.TestCase):
    def run_script(self, *words, above, before=()):
        return subprocess.run(
            [*before, SCRIPT, *words], check=False, capture_output=True, text=True,
            env={**os.environ, "TMPDIR": above})

    def test_status_and_arguments_of_the_command_are_kept(self):
        with tempfile.TemporaryDirectory() as above:
            outcome = self.run_script("sh", "-c", 'printf "%s|" "$@"; exit 7', "sh", "a b", "$c",
                                      above=above)
            self.assertEqual((outcome.returncode, outcome.stdout), (7, "a b|$c|"))

    @unittest.skipUnless(CAN_MOUNT, "file systems cannot be mounted here")
    def test_file_system_is_mounted_for_the_command_only(self):
        with tempfile.TemporaryDirectory() as above:
            outcome = self.run_script(
                "sh", "-c", 'stat -f -c %T "$TMPDIR"; stat -c %a "$TMPDIR"; touch "$TMPDIR/x"',
                above=above)
            if outcome.stderr:
                self.skipTest(outcome.stderr)
            self.assertEqual((outcome.returncode, outcome.stdout), (0, "ext2/ext3\n1777\n"))
            self.assertEqual(os.listdir(above), [])
            self.assertNotIn(above, pathlib.Path("/proc/mounts").read_text(encoding="utf-8"))

    @unittest.skipUnless(CAN_MOUNT, "this needs another user")
    def test_command_runs_without_permission_to_mount(self):
        with tempfile.TemporaryDirectory() as above:
            os.chmod(above, 0o755)
            outcome = self.run_script(
                "sh", "-c", 'echo "$TMPDIR"; exit 3', above=above,
                before=("setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set=-all"))
            self.assertEqual((outcome.returncode, outcome.stdout), (3, f"{above}\n"))
            self.assertIn(f"temporary files are in {above}", outcome.stderr)


if __name__ == "__main__":
    unittest.main()
