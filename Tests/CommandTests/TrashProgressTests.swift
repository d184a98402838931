import Foundation
import SystemIO
import TestSupport
import Testing

/// The progress of `trash empty`, of queries of a device, and of the plans of operations on it.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct TrashProgressTests {
  private let cli: CommandLine
  private static let count = 40

  /// Makes a directory whose files a restore replaced: the replaced files are in the trash.
  init() throws {
    cli = try CommandLine(inMemory: true)
    for number in 0..<Self.count { try cli.directory.write("old", at: Self.path(number)) }
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --layout folder --root tree --repo repo --quiet")
    for number in 0..<Self.count {
      try cli.directory.write("new!", at: Self.path(number))
    }
    _ = try cli.succeed("restore latest --in-place --repo repo --no-snapshot --quiet --force")
  }

  private static func path(_ number: Int) -> ByteString {
    ByteString("tree/\(number % 4)/\(number)")
  }

  private static let line = "trash empty --layout folder --root tree"

  /// Delays each call of a kind, so that progress is drawn on any machine.
  private func slow(_ calls: String, milliseconds: Int) -> String {
    "strace -f -o trace -e trace=\(calls) -e inject=\(calls):delay_enter=\(milliseconds * 1000)"
  }

  private func terminal(_ line: String, slow calls: String, milliseconds: Int) throws -> String {
    let text =
      "stty cols 100 -onlcr; \(slow(calls, milliseconds: milliseconds)) $PROGRAM \(line)"
    let outcome = try cli.run(
      [], under: ["bash", "-c", "PROGRAM=$0 script -qec '\(text)' /dev/null"],
      environment: ["TERM": "xterm"])
    #expect(outcome.code == 0, "\(outcome.output)")
    return outcome.output
  }

  @Test func progressIsShownOnATerminal() throws {
    let output = try terminal(Self.line, slow: "unlinkat", milliseconds: 50)
    let drawn = ProgressLineTests.drawn(output)
    #expect(drawn.contains { $0.contains(" of \(Self.count) files, ") }, "\(drawn)")
    #expect(
      output.hasSuffix("deleted 160 B in \(Self.count) files, 6 directories of 1 operation\n"),
      "\(output)")
    #expect(
      try ProgressLineTests.drawn(
        terminal(Self.line + " --quiet", slow: "unlinkat", milliseconds: 1)
      )
      .isEmpty)
  }

  @Test func withoutATerminalNothingIsDrawn() throws {
    let outcome = try cli.run(Self.line)
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(
      outcome.output == "deleted 160 B in \(Self.count) files, 6 directories of 1 operation\n")
  }

  @Test func progressIsJSONEachSecond() throws {
    let wrapper = slow("unlinkat", milliseconds: 80).split(separator: " ").map(String.init)
    let outcome = try cli.run(Self.line + " --json --verbose", under: wrapper)
    let lines = try outcome.output.split(separator: "\n").map { try CommandLine.object($0) }
    let events = lines.filter { $0["event"] as? String == "progress" }
    #expect(events.contains { $0["files_to_do"] as? Int == Self.count }, "\(outcome.output)")
    #expect((lines.last?["freed"] as? [String: Any])?["files"] as? Int == Self.count)
  }

  /// The remaining files stay listed, because the operation's record is deleted last.
  @Test func signalEndsItAndKeepsTheRestListed() throws {
    let text = """
      \(slow("unlinkat", milliseconds: 100)) env --default-signal=INT "$0" \(Self.line) & S=$!
      until grep -qs unlinkat trace || ! kill -0 $S; do sleep 0.01; done
      kill -INT $(pgrep -P $S)
      wait $S
      """
    let outcome = try cli.run([], under: ["bash", "-c", text])
    #expect(outcome.code == 130, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.errors.contains("trash empty was interrupted: the remaining files stay"))
    let items = try cli.jsonLines("trash list --layout folder --root tree --json")
    #expect(items.map { $0["operation"] as? String } == ["restore"])
    let left = try #require((items.first?["holds"] as? [String: Any])?["files"] as? Int)
    #expect(0 < left && left < Self.count, "\(left)")
    #expect(try cli.succeed(Self.line).contains("\(left) file"))
  }

  @Test func scanBeforeAPurgeShowsProgress() throws {
    _ = try cli.succeed("sample device")
    let line = "purge --root device --level critical --dry-run"
    let output = try terminal(line, slow: "getdents64", milliseconds: 20)
    let drawn = ProgressLineTests.drawn(output)
    #expect(drawn.contains { $0.contains(/^[0-9]+ directories/) }, "\(drawn)")
    #expect(output.contains("would free"), "\(output)")
    let outcome = try cli.run(line)
    #expect(outcome.code == 0 && !outcome.errors.contains("folders"), "\(outcome.errors)")
  }

  @Test func deletionOfAPurgeShowsProgress() throws {
    _ = try cli.succeed("sample device")
    let line = "purge --root device --level critical --yes"
    let drawn = ProgressLineTests.drawn(try terminal(line, slow: "unlinkat", milliseconds: 50))
    #expect(drawn.contains { $0.contains(/[0-9] of [0-9]+ files/) }, "\(drawn)")
  }

  private static let plans = [
    "classify --root device --summary", "classify --root device notebook/Library --json",
    "restore latest --in-place --repo repo --dry-run", "uninstall notebook --root device --dry-run",
    "rollback notebook --root device --dry-run",
  ]

  @Test(arguments: plans) func planningShowsProgressAndEndsOnASignal(_ line: String) throws {
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("backup --root device --repo repo --quiet")
    let quick = try cli.run(line)
    let slow = slow("getdents64", milliseconds: 20)
    let text = """
      \(slow) env --default-signal=INT "$0" \(line) --verbose & S=$!
      until grep -qs getdents64 trace || ! kill -0 $S; do sleep 0.01; done
      P=$(pgrep -P $S)
      until read -r _ CAUGHT <<< "$(grep SigCgt /proc/$P/status)"; (( 0x$CAUGHT & 1 << 9 )); do
        kill -0 $P || break
        sleep 0.01
      done
      kill -USR1 $P
      sleep 0.2
      kill -INT $P
      wait $S
      """
    let outcome = try cli.run([], under: ["bash", "-c", text])
    #expect(quick.code != 130)
    #expect(outcome.code == 130, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.errors.contains(" interrupted"), "\(outcome.errors)")
    #expect(outcome.errors.contains(/(scanning|directories|directory)/), "\(outcome.errors)")
  }
}
