import Foundation
import SystemIO
import TestSupport
import Testing

/// A source on a volume of another machine, whose clock may go otherwise (docs/state-file.md, "Rules").
@Suite struct RemoteSourceTests {
  /// The kernel's answer to what volume a folder is on becomes that of FUSE.
  private static let fuse = ["-e", "inject=fstatfs:poke_exit=@arg2=4655736500000000"]

  /// What was changed within ten minutes before the run is read again by the next one.
  @Test(arguments: [false, true]) func whatIsYoungIsReadAgain(isRemote: Bool) throws {
    let cli = try CommandLine()
    try cli.folder.write("text", at: "tree/file")
    let old = try Program.run("touch", ["-d", "5 minutes ago", "tree/file"], in: cli.folder.url)
    #expect(old.code == 0, "\(old.errors)")
    _ = try cli.succeed("init repo --plain")
    // The time of change, which cannot be set, is older than two seconds then.
    Thread.sleep(forTimeInterval: 3)
    let backup = "backup --layout folder --root tree --repo repo --json"
    let strace = ["strace", "-f", "-o", "trace", "-e", "trace=fstatfs"]
    let first = try cli.run(backup, under: strace + (isRemote ? Self.fuse : []))
    #expect(first.code == 0, "\(first.errors)")
    #expect(first.output.contains(#""opened":1"#), "\(first.output)")
    #expect(try String(decoding: cli.folder.read("trace"), as: UTF8.self).contains("fstatfs("))
    let second = try cli.succeed(backup)
    #expect(second.contains(isRemote ? #""opened":1"# : #""opened":0"#), "\(second)")
  }
}
