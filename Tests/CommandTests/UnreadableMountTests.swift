import Foundation
import SystemIO
import TestSupport
import Testing

/// Mounts in the source of a backup that cannot be examined: they are skipped like any other,
/// unless mounts are to be included.
struct UnreadableMountTests {
  private let cli: CommandLine

  init() throws {
    cli = try CommandLine()
    _ = try cli.succeed("init repo --plain --no-default")
    try cli.directory.write("text", at: "tree/file")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    try cli.directory.write("text", at: "outer/file")
  }

  /// A FUSE file system whose program was killed, as sshfs is without a connection.
  @Test(.enabled(if: MountedView.isPossible)) func deadMountsAreSkipped() throws {
    let view = try MountedView(cli, on: "outer/view")
    kill(view.number, SIGKILL)
    let line = "backup --layout folder --root outer --repo repo"
    for _ in 0..<2 {
      let outcome = try cli.run(line)
      #expect(outcome.code == 0, "\(outcome)")
      #expect(!outcome.errors.contains("not in the snapshot"), "\(outcome)")
      #expect(outcome.errors.contains("another file system is mounted there"), "\(outcome)")
    }
    let crossed = try cli.run(line + " --cross-mounts")
    #expect(crossed.code == 3, "\(crossed)")
    #expect(crossed.errors.contains("not in the snapshot: folders/outer/view"), "\(crossed)")
    withExtendedLifetime(view) {}
  }

  /// A FUSE file system that only its own user may access, not even root.
  @Test(.enabled(if: Host.userID == 0 && Program.exists("fusermount3")))
  func mountsOfAnotherUserAreSkipped() throws {
    let script = """
      chmod 0755 . && mkdir outer/view && chown -R 65534:65534 repo outer/view home && chmod 0666 /dev/fuse
      as="setpriv --reuid=65534 --regid=65534 --clear-groups"
      $as "$0" mount outer/view --repo repo > out 2> err & P=$!
      trap 'umount -l outer/view 2> /dev/null; kill -9 $P 2> /dev/null' EXIT
      for i in $(seq 300); do grep -q "$PWD/outer/view fuse" /proc/mounts && break; kill -0 $P || break; sleep 0.05; done
      export HOME="$PWD/other"; mkdir other
      "$0" init mine --plain --no-default --quiet
      "$0" backup --layout folder --root outer --repo mine --quiet; echo " $?"
      "$0" backup --layout folder --root outer --repo mine --quiet --cross-mounts; echo " $?"
      kill -TERM $P; wait $P; cat err >&2
      """
    let outcome = try cli.run([], under: ["bash", "-c", script])
    #expect(outcome.output == " 0\n 3\n", "\(outcome.output)\(outcome.errors)")
  }
}
