import Foundation
import SystemIO
import TestSupport
import Testing

/// A source on a volume of another machine, whose clock may go otherwise (docs/state-file.md, "Rules").
@Suite struct RemoteSourceTests {
  /// The kernel's answer to what volume a directory is on becomes that of FUSE.
  private static let fuse = ["-e", "inject=fstatfs:poke_exit=@arg2=4655736500000000"]

  /// What was changed within ten minutes before the run is read again by the next one.
  @Test(arguments: [false, true]) func whatIsYoungIsReadAgain(isRemote: Bool) throws {
    let cli = try CommandLine()
    try cli.directory.write("text", at: "tree/file")
    let old = try Program.run("touch", ["-d", "5 minutes ago", "tree/file"], in: cli.directory.url)
    #expect(old.code == 0, "\(old.errors)")
    _ = try cli.succeed("init repo --plain")
    // The time of change, which cannot be set, is older than two seconds then.
    Thread.sleep(forTimeInterval: 3)
    let backup = "backup --layout folder --root tree --repo repo --json"
    let strace = ["strace", "-f", "-o", "trace", "-e", "trace=fstatfs"]
    let first = try cli.run(backup, under: strace + (isRemote ? Self.fuse : []))
    #expect(first.code == 0, "\(first.errors)")
    #expect(first.output.contains(#""opened":1"#), "\(first.output)")
    #expect(try String(decoding: cli.directory.read("trace"), as: UTF8.self).contains("fstatfs("))
    let second = try cli.succeed(backup)
    #expect(second.contains(isRemote ? #""opened":1"# : #""opened":0"#), "\(second)")
  }

  /// So is what lies on such a volume that is mounted in the directory and was entered.
  @Test(arguments: [false, true]) func whatIsYoungOnAMountIsReadAgain(isRemote: Bool) throws {
    guard try Mount.isPermitted() else { return }
    let cli = try CommandLine()
    for directory: ByteString in ["other", "tree/disk"] {
      _ = try Directory.make(path: cli.directory.path(directory))
    }
    let mount = try Mount(binding: cli.directory.path("other"), on: cli.directory.path("tree/disk"))
    try cli.directory.write("text", at: "tree/disk/file")
    let old = try Program.run(
      "touch", ["-d", "5 minutes ago", "tree/disk/file"], in: cli.directory.url)
    #expect(old.code == 0, "\(old.errors)")
    _ = try cli.succeed("init repo --plain")
    Thread.sleep(forTimeInterval: 3)
    let backup = "backup --layout folder --root tree --repo repo --json"
    let disk = cli.directory.string + "/tree/disk"
    let strace = ["strace", "-f", "-o", "trace", "-P", disk, "-e", "trace=fstatfs"]
    let first = try cli.run(backup + " --cross-mounts", under: strace + (isRemote ? Self.fuse : []))
    #expect(first.code == 0, "\(first.errors)")
    #expect(first.output.contains(#""opened":1"#), "\(first.output)")
    #expect(try String(decoding: cli.directory.read("trace"), as: UTF8.self).contains("fstatfs("))
    let second = try cli.succeed(backup + " --cross-mounts")
    #expect(second.contains(isRemote ? #""opened":1"# : #""opened":0"#), "\(second)")
    // Without the flag the volume is told of, and not entered.
    let outside = try cli.run("backup --layout folder --root tree --repo repo")
    #expect(outside.code == 0 && outside.errors.contains("which is not entered"))
    #expect(try cli.succeed("ls latest: --recursive --repo repo").contains("tree/disk"))
    #expect(try !cli.succeed("ls latest: --recursive --repo repo").contains("tree/disk/file"))
    withExtendedLifetime(mount) {}
  }
}
