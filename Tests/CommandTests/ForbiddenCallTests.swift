import SystemIO
import TestSupport
import Testing

/// Sandboxes that answer EPERM, not ENOSYS, to system calls that their profile does not list, such
/// as systemd's SystemCallFilter and old profiles of containers.
@Suite(.enabled(if: Strace.isPermitted)) struct ForbiddenCallTests {
  private let cli: CommandLine

  /// Makes a snapshot of a device that is used for a day afterwards.
  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device --quiet")
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    _ = try cli.succeed("sample device --day 1 --quiet")
  }

  private func run(_ line: String, without call: String) throws {
    let strace = try Strace(call, "EPERM", "1+")
    let outcome = try cli.run(line, under: strace.command)
    #expect(outcome.code == 0, "\(call): \(line): \(outcome.errors)")
    #expect(!outcome.errors.contains("not restored"), "\(call): \(line): \(outcome.errors)")
  }

  /// The restore into the device replaces databases, and moves the replaced files to the trash.
  @Test(arguments: ["renameat2", "syncfs", "statx", "ioctl"])
  func restoresAndAppsDoWithoutACall(_ call: String) throws {
    try run("restore latest --repo repo --to restored", without: call)
    #expect(try cli.directory.directory.statusIfPresent("restored") != nil)
    try run(
      "restore latest --repo repo --to-device device --overwrite always --no-snapshot --quiet",
      without: call)
    try run("uninstall --root device org.example.reader --repo repo --quiet", without: call)
    _ = try cli.succeed("check --read-data --repo repo")
  }

  /// Flags are read with an ioctl. Those that statx(2) reports are stored nevertheless.
  @Test func aBackupWithoutTheFlagsIsComplete() throws {
    try cli.directory.write("text", at: "tree/file")
    let hasFlags =
      (try? cli.directory.directory.directory("tree").file("file").setFlags(0x40)) != nil
    let strace = try Strace("ioctl", "EPERM", "1+")
    let outcome = try cli.run(
      "backup --root tree --layout folder --repo repo", under: strace.command)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.contains("forbids reading all flags"), "\(outcome.errors)")
    if !hasFlags { return }
    _ = try cli.succeed("restore latest:folders/tree --repo repo --to restored")
    let restored = try cli.directory.directory.directory("restored").file("file").flags()
    #expect(restored == 0x40)
  }

  /// A file that must not be renamed, such as an immutable one, is EPERM as well.
  @Test func otherRefusalsAreNotTakenForASandbox() throws {
    let strace = try Strace("renameat,renameat2", "EPERM", "1+")
    let outcome = try cli.run("restore latest --repo repo --to restored", under: strace.command)
    #expect(outcome.code == 1 && outcome.errors.contains("not permitted"), "\(outcome.errors)")
    #expect(try cli.directory.directory.statusIfPresent("restored") == nil)
  }
}
