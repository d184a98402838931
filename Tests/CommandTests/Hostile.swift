import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// The outcome of a program run on a hostile repository.
struct HostileOutcome {
  let code: Int32
  let output: String
  let errors: String
  /// The peak memory of the program or of a program that it ran.
  let peakMebibytes: Int
}

/// A forged repository beside a file that must not change, and the two readers of it.
struct Hostile {
  let cli: CommandLine

  /// Forges a repository whose snapshot has the root returned by `body`.
  init(_ body: (inout ForgedRepository) -> Digest) throws {
    var forged = ForgedRepository()
    let root = body(&forged)
    forged.addSnapshot(root)
    try self.init(forged)
  }

  init(_ forged: ForgedRepository) throws {
    cli = try CommandLine()
    try forged.write(to: cli.directory.url.appendingPathComponent("repo"))
    try cli.directory.write("nobody's business", at: "outside")
  }

  /// Runs sandboxctl.
  func ours(_ line: String) throws -> HostileOutcome {
    try measured { try cli.run(line + " --repo repo", under: $0) }
  }

  /// Runs recover.py.
  func theirs(_ line: String) throws -> HostileOutcome {
    try measured { wrapper in
      try Recover.run(cli, line.split(separator: " ").map(String.init), under: wrapper)
    }
  }

  private func measured(_ run: ([String]) throws -> Program.Outcome) throws -> HostileOutcome {
    let outcome = try run(["python3", "-B", "-c", Self.measuring])
    let peak = String(decoding: try cli.directory.read("peak"), as: UTF8.self)
    return HostileOutcome(
      code: outcome.code, output: outcome.output, errors: outcome.errors,
      peakMebibytes: (Int(peak) ?? 0) >> 10)
  }

  /// Runs a program and writes its peak memory in KiB to the file `peak`.
  private static let measuring = """
    import resource, subprocess, sys
    code = subprocess.run(sys.argv[1:]).returncode
    open("peak", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
    sys.exit(code)
    """

  /// The memory limit of both readers, whatever the repository contains.
  static let memoryBound = 300

  /// Expects both readers to restore the valid part of the latest snapshot, to name the rest with
  /// these words, and to leave everything else in the directory alone.
  func expectRefused(
    ours words: [String], theirs theirWords: [String], left: [ByteString] = ["good"],
    recoverOptions: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    try cli.directory.directory.createDirectory("cage", permissions: 0o755)
    let runs = [
      ("ours", try ours("restore latest --to cage/ours"), words),
      ("theirs", try theirs(recoverOptions + " repo restore latest --to cage/theirs"), theirWords),
    ]
    for (name, outcome, words) in runs {
      let text = outcome.output + outcome.errors
      #expect(outcome.code == 13, "\(name): \(text)", sourceLocation: sourceLocation)
      for word in words {
        #expect(text.contains(word), "\(name): \(text)", sourceLocation: sourceLocation)
      }
      #expect(!text.contains("Traceback") && !text.contains("Fatal"), "\(name): \(text)")
      #expect(outcome.peakMebibytes < Self.memoryBound, "\(name)", sourceLocation: sourceLocation)
      #expect(outcome.peakMebibytes > 5, "\(name)", sourceLocation: sourceLocation)
      let back = ByteString("cage/\(name)")
      let isThere = try cli.directory.directory.statusIfPresent(back) != nil
      let found = isThere ? try cli.names(in: back) : []
      #expect(found == left, "\(name): \(text)", sourceLocation: sourceLocation)
    }
    let names = try cli.names(in: "cage")
    #expect(Set(names).isSubset(of: ["ours", "theirs"]), sourceLocation: sourceLocation)
    #expect(
      try cli.names(in: "").sorted() == ["cage", "home", "outside", "peak", "repo"],
      sourceLocation: sourceLocation)
    #expect(try cli.directory.read("outside") == Array("nobody's business".utf8))
  }
}
