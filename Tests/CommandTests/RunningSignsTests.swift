import Foundation
import SystemIO
import TestSupport
import Testing

/// Every sign of a running app is reported, from the platform's register and from /proc.
struct RunningSignsTests {
  @Test func registerDoesNotHideOtherProcesses() throws {
    let fixture = try AppUpdateFixture()
    let data = try #require(
      try fixture.cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/data" }
    )
    let holder = try OpenFileHolder(of: "\(data.realPath)/Documents/Notes/Recipes.md")
    defer { holder.end() }
    // An instance in Flatpak's register with the live process of this test.
    let own = ProcessInfo.processInfo.processIdentifier
    try fixture.cli.directory.write(
      "[Application]\nname=org.example.notebook\n", at: "run/.flatpak/17/info")
    try fixture.cli.directory.write("\(own)\n", at: "run/.flatpak/17/pid")
    let environment = ["XDG_RUNTIME_DIR": fixture.cli.directory.string + "/run"]
    func run(_ line: String) throws -> Program.Outcome {
      try fixture.cli.run(line.split(separator: " ").map(String.init), environment: environment)
    }
    let plan = try CommandLine.object(
      run("update New.app --root device --dry-run --json").output)
    let processes = (plan["running"] as? [[String: Any]])?.compactMap { $0["process"] as? Int }
    #expect(processes == [Int(own), Int(holder.process)])
    let refused = try run("update New.app --root device --repo repo")
    #expect(refused.code == 1)
    for process in [own, holder.process] {
      #expect(refused.errors.contains("process \(process) "), "\(refused.errors)")
    }
    #expect(refused.errors.contains("Recipes.md") && refused.errors.contains("--force"))
  }
}
