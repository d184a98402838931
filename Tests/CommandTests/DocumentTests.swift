import Foundation
import TestSupport
import Testing

/// What the project says of the program, held against the program.
@Suite struct DocumentTests {
  @Test func theManPagesSayWhatTheHelpSays() throws {
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
      #expect(kept == now, "Man/\(page) is not what the help says: 'make man' writes it anew")
    }
  }

  @Test func theReadmeShowsWhatTheTourPrints() throws {
    let tool = Shared.packageRoot.appendingPathComponent("Tools/readme-tour.py").path
    let readme = Shared.packageRoot.appendingPathComponent("README.md").path
    let outcome = try Program.run(
      "python3", ["-B", tool, "--check", CommandLine.program, readme])
    #expect(
      outcome.code == 0,
      "'make readme' writes the README's tour anew\n\(outcome.output)\(outcome.errors)")
  }
}
