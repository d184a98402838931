import SystemIO
import TestSupport
import Testing

/// Commands that are started with closed standard streams, as by some daemons.
struct ClosedStreamTests {
  /// A message to standard error would otherwise be written into a file that is open for writing.
  @Test func filesDoNotGetTheNumbersOfClosedStreams() throws {
    guard Strace.isPermitted else { return }
    let cli = try CommandLine()
    let closing = "exec <&- >&- 2>&-; exec \"$0\" \"$@\""
    _ = try cli.run(
      "sample device",
      under: ["strace", "-f", "-qq", "-o", "log", "-e", "trace=openat", "bash", "-c", closing])
    let log = String(decoding: try cli.directory.read("log"), as: UTF8.self)
    let written = log.split(separator: "\n").filter { line in
      line.contains("O_RDWR") || line.contains("O_WRONLY")
    }
    #expect(written.count > 50, "the files of the device")
    let taken = written.filter { line in (0...2).contains { line.hasSuffix(" = \($0)") } }
    #expect(taken.isEmpty, "\(taken)")
  }

  /// A result that nobody can receive is not a success, as before.
  @Test func closedOutputIsAnError() throws {
    let cli = try CommandLine()
    let outcome = try cli.run(
      "policy list", under: ["bash", "-c", "exec >&-; exec \"$0\" \"$@\""])
    #expect(outcome.code == 1, "\(outcome)")
    #expect(outcome.errors.contains("cannot write 'standard output'"), "\(outcome.errors)")
  }
}
