import Foundation
import SystemIO
import TestSupport
import Testing

/// All that shows that an app runs is told, whoever tells it: the platform's register and /proc.
@Suite struct RunningSignsTests {
  @Test func theRegisterHidesNoOtherProcess() throws {
    let rig = try AppUpdateFixture()
    let data = try #require(
      try rig.cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/data" })
    let holder = try OpenFileHolder(of: "\(data.realPath)/Documents/Notes/Recipes.md")
    defer { holder.end() }
    // An instance in Flatpak's register, whose process lives: that of this test.
    let own = ProcessInfo.processInfo.processIdentifier
    try rig.cli.directory.write(
      "[Application]\nname=org.example.notebook\n", at: "run/.flatpak/17/info")
    try rig.cli.directory.write("\(own)\n", at: "run/.flatpak/17/pid")
    let environment = ["XDG_RUNTIME_DIR": rig.cli.directory.string + "/run"]
    func run(_ line: String) throws -> Program.Outcome {
      try rig.cli.run(line.split(separator: " ").map(String.init), environment: environment)
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
