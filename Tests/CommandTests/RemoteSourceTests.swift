import Foundation
import SystemIO
import TestSupport
import Testing

/// A source on a remote volume, whose clock may differ (docs/state-file.md, "Rules").
struct RemoteSourceTests {
  /// Changes the type of the directory's file system to FUSE in the kernel's answer.
  private static let fuse = ["-e", "inject=fstatfs:poke_exit=@arg2=4655736500000000"]

  /// Files changed within ten minutes before the backup are read again by the next one.
  @Test(arguments: [false, true]) func recentlyChangedFileIsReadAgain(isRemote: Bool) throws {
    let cli = try CommandLine()
    try cli.directory.write("text", at: "tree/file")
    let old = try Program.run("touch", ["-d", "5 minutes ago", "tree/file"], in: cli.directory.url)
    #expect(old.code == 0, "\(old.errors)")
    _ = try cli.succeed("init repo --plain")
    // Then the change time, which cannot be set, is older than two seconds.
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

  /// Files on a remote volume mounted inside the source, if the backup enters it, are also read
  /// again.
  @Test(arguments: [false, true]) func recentlyChangedFileOnAMountIsReadAgain(isRemote: Bool) throws
  {
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
    // Without the option the volume is reported and skipped.
    let outside = try cli.run("backup --layout folder --root tree --repo repo")
    #expect(outside.code == 0 && outside.errors.contains("mounted there and is skipped"))
    #expect(try cli.succeed("ls latest: --recursive --repo repo").contains("tree/disk"))
    #expect(try !cli.succeed("ls latest: --recursive --repo repo").contains("tree/disk/file"))
    withExtendedLifetime(mount) {}
  }
}
