import Foundation
import SystemIO
import TestSupport
import Testing

/// Copies and mirrors that are killed at calls that change the target, spread over the run: each
/// snapshot in the target is complete, and the next run completes the target.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct CopyKillTests {
  private static let calls = "mkdirat,openat,write,fsync,renameat,renameat2,unlinkat"

  /// A repository, and a target with an earlier state of it, from which a snapshot and packs have
  /// been removed since.
  private static func prepare(_ command: String) throws -> CommandLine {
    let cli = try CommandLine(inMemory: true)
    var random = Seeded(11)
    _ = try cli.succeed("init repo --plain --no-default")
    if command == "copy" { _ = try cli.succeed("init target --plain --no-default") }
    for round in 0..<4 {
      for number in 0..<3 {
        try cli.directory.write(random.bytes(50_000), at: ByteString("tree/\(round)/\(number)"))
      }
      if round == 3 { try cli.directory.directory.removeTree("tree/1") }
      _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
      if round == 2 { _ = try cli.succeed("\(command) --to target --repo repo --quiet") }
    }
    _ = try cli.succeed("forget latest~2 --repo repo --prune --max-unused 0 --quiet")
    for name in ["repo", "target", "home"] { try cli.copy(name, to: "pristine/\(name)") }
    return cli
  }

  private static func reset(_ cli: CommandLine) throws {
    for name in ["repo", "target", "home"] {
      try cli.directory.directory.removeTree(ByteString(name))
      try cli.copy("pristine/\(name)", to: name)
    }
  }

  @Test(arguments: ["copy", "mirror"]) func aKilledRunIsContinued(_ command: String) throws {
    let cli = try Self.prepare(command)
    let line = "\(command) --to target --repo repo --quiet"
    try Self.reset(cli)
    let tracer = try Strace(recording: Self.calls)
    let whole = try cli.run(line, under: tracer.command)
    try #require(whole.code == 0, "\(whole)")
    let calls = try tracer.recorded().filter { call in
      call.name != "openat" || call.arguments.contains("O_CREAT")
    }
    var random = Seeded.fresh("killed \(command)")
    var kills = 0
    let all = Sampling.count(Sampling.fewer(20), of: 100)
    for number in 0..<all {
      let part = (Double(number) + Double.random(in: 0..<1, using: &random)) / Double(all)
      let call = calls[Int(part * Double(calls.count))]
      try Self.reset(cli)
      let strace = try Strace(call.name, killingAt: call.number)
      let outcome = try cli.run(line, under: strace.command)
      let what = "\(command), killed at \(call.name) \(call.number)"
      #expect([0, 137, -9].contains(outcome.code), "\(what): \(outcome)")
      if outcome.code != 0 { kills += 1 }
      try Self.expectIntact(cli, what)
      _ = try cli.succeed(line)
      try Self.expectIntact(cli, what)
      _ = try cli.succeed("restore latest:folders/tree --to back --repo target --quiet")
      try ChangeDetector.expectSame(cli.directory, "tree", "back")
      try cli.directory.directory.removeTree("back")
      #expect(
        try cli.snapshots("target").count == (command == "copy" ? 4 : 3), "\(what)")
    }
    #expect(kills >= min(10, all / 2), "\(kills) of the runs were killed")
  }

  /// The target is intact, and so is the source.
  private static func expectIntact(_ cli: CommandLine, _ what: String) throws {
    for repository in ["target", "repo"] {
      let check = try cli.run("check --read-data --quiet --repo \(repository)")
      #expect(check.code == 0, "\(what), \(repository): \(check.output) \(check.errors)")
    }
  }
}
