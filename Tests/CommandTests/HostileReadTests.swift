import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands that read a hostile repository without restoring: each invalid part is reported by
/// exactly those commands that read it, with bounded memory and exit status 13. `make test` tests a
/// sample of the parts.
struct HostileReadTests {
  private static let rows = Sampling.some(of: HostileRow.all, 5, "hostile repositories")

  @Test(arguments: rows) func hostileRepositoryIsRefused(row: HostileRow) throws {
    let hostile = try Hostile(row.forge())
    let outcomes = try hostile.oursEach(row.commands.map { "\($0) --repo repo" })
    try #require(outcomes.count == row.commands.count)
    for (command, outcome) in zip(row.commands, outcomes) {
      let text = "\(row): \(command): \(outcome.code): \(outcome.errors.prefix(2000))"
      #expect(outcome.code == (row.refusers.contains(command) ? 13 : 0), "\(text)")
      if row.refusers.union(row.warners).contains(command) {
        let reported = outcome.output + outcome.errors
        for word in row.words { #expect(reported.contains(word), "\(text) \(outcome.output)") }
      }
      #expect(outcome.peakMebibytes < Hostile.memoryBound, "\(text)")
      #expect(outcome.peakMebibytes > 5, "\(text)")
    }
    #expect(try hostile.cli.directory.read("outside") == Array("nobody's business".utf8))
  }
}

extension Hostile {
  /// Runs the program with each line in turn; the output is limited to 1 MiB.
  func oursEach(_ lines: [String]) throws -> [HostileOutcome] {
    let words = String(decoding: try JSONEncoder().encode(lines), as: UTF8.self)
    let outcome = try cli.run([words], under: ["python3", "-B", "-c", Self.measuringEach])
    try #require(outcome.code == 0, "\(outcome.errors)")
    return try JSONDecoder().decode([EachOutcome].self, from: Data(outcome.standardOutput)).map {
      HostileOutcome(
        code: $0.code, output: $0.output, errors: $0.errors, peakMebibytes: $0.peak >> 10)
    }
  }

  private struct EachOutcome: Decodable {
    let code: Int32
    let output: String
    let errors: String
    let peak: Int
  }

  private static let measuringEach = """
    import json, os, subprocess, sys
    outcomes = []
    for line in json.loads(sys.argv[2]):
        with open("each.out", "w+b") as output, open("each.err", "w+b") as errors:
            child = subprocess.Popen([sys.argv[1], *line.split()], stdout=output, stderr=errors)
            _, status, usage = os.wait4(child.pid, 0)
            texts = []
            for file in (output, errors):
                file.seek(0)
                texts.append(file.read(1 << 20).decode(errors="replace"))
        outcomes.append({"code": os.waitstatus_to_exitcode(status), "output": texts[0],
                         "errors": texts[1], "peak": usage.ru_maxrss})
    print(json.dumps(outcomes))
    """
}
