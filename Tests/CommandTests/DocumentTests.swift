import Foundation
import TestSupport
import Testing

/// The documents of the project checked against the program.
struct DocumentTests {
  @Test func manPagesMatchTheHelp() throws {
    let cli = try CommandLine()
    let made = cli.directory.string + "/man"
    let tool = Shared.packageRoot.appendingPathComponent("Tools/make-man.py").path
    let outcome = try Program.run("python3", ["-B", tool, CommandLine.program, made])
    try #require(outcome.code == 0, "\(outcome.errors)")
    let pages = try FileManager.default.contentsOfDirectory(atPath: made).sorted()
    #expect(pages.count > 12)
    for page in pages {
      let written = Shared.packageRoot.appendingPathComponent("Man/\(page)")
      let kept = try? String(contentsOf: written, encoding: .utf8)
      let now = try String(contentsOfFile: made + "/" + page, encoding: .utf8)
      #expect(kept == now, "Man/\(page) differs from the help: run 'make man'")
    }
  }

  @Test func readmeMatchesTheTour() throws {
    let tool = Shared.packageRoot.appendingPathComponent("Tools/readme-tour.py").path
    let readme = Shared.packageRoot.appendingPathComponent("README.md").path
    let outcome = try Program.run(
      "python3", ["-B", tool, "--check", CommandLine.program, readme])
    #expect(
      outcome.code == 0,
      "the README's tour is outdated: run 'make readme'\n\(outcome.output)\(outcome.errors)")
  }
}
