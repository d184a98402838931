import Foundation
import SystemIO
import TestSupport
import Testing

/// The progress of a backup on a terminal.
struct ProgressLineTests {
  private let fixture: SignalFixture
  private var cli: CommandLine { fixture.cli }

  init() throws { fixture = try SignalFixture() }

  @Test func withoutATerminalNothingIsDrawn() throws {
    let outcome = try cli.run(SignalFixture.backup)
    #expect(outcome.code == 0)
    #expect(
      !outcome.errors.contains("\r") && !outcome.errors.contains("MiB/s"), "\(outcome.errors)")
  }

  /// Returns the output on a terminal of `columns` columns.
  private func terminal(
    _ columns: Int, _ arguments: String = "", environment: [String: String] = ["TERM": "xterm"]
  ) throws -> String {
    // Sync calls of half a second each, so that progress is drawn on any machine.
    let slow = "strace -f -o trace -e trace=fsync -e inject=fsync:delay_enter=500000"
    let line = "stty cols \(columns) rows 20; \(slow) $PROGRAM \(SignalFixture.backup) \(arguments)"
    let outcome = try cli.run(
      [], under: ["bash", "-c", "PROGRAM=$0 script -qec '\(line)' /dev/null"],
      environment: environment)
    #expect(outcome.code == 0, "\(outcome.output)")
    return outcome.output
  }

  /// Returns the lines that were drawn over one another.
  static func drawn(_ output: String) -> [Substring] {
    output.split(separator: "\r").filter { $0.hasSuffix("\u{1B}[K") && $0.count > 3 }
      .map { $0.dropLast(3) }
  }

  @Test func onATerminalOneLineIsDrawn() throws {
    let start = Host.monotonicSeconds()
    let output = try terminal(100)
    let seconds = Host.monotonicSeconds() - start
    let lines = Self.drawn(output)
    #expect(
      !lines.isEmpty && Double(lines.count) <= seconds * 10 + 1, "\(lines.count) in \(seconds) s")
    let last = try #require(lines.last { $0.contains("folders/tree/folder") })
    #expect(last.contains(" of 15.3 MiB, ") && last.contains(" of 32 files"), "\(last)")
    #expect(lines.contains { $0.contains("MiB/s") })
    // The line is erased before the result is printed.
    let rest = try #require(output.components(separatedBy: "\r\u{1B}[K").last)
    #expect(rest.contains("folders/tree") && !rest.contains("MiB/s"), "\(rest)")
  }

  @Test(arguments: [30, 60, 200])
  func progressLineFitsTheTerminal(_ columns: Int) throws {
    let lines = Self.drawn(try terminal(columns))
    #expect(!lines.isEmpty)
    for line in lines { #expect(line.count < columns, "\(line)") }
  }

  @Test func quietAndJSONDrawNothing() throws {
    #expect(try Self.drawn(terminal(10)).isEmpty)
    #expect(try Self.drawn(terminal(100, "--quiet")).isEmpty)
    #expect(try Self.drawn(terminal(100, "--json")).isEmpty)
    #expect(try Self.drawn(terminal(100, environment: ["TERM": "dumb"])).isEmpty)
  }
}
