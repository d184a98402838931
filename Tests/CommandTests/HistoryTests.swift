import SystemIO
import TestSupport
import Testing

/// A device in use: one snapshot a day, each of which restores the state of its day.
struct HistoryTests {
  @Test func everyDayIsRestored() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    var parent: String?
    for day in 0...4 {
      if day > 0 { _ = try cli.succeed("sample device --day \(day)") }
      let report = try cli.json("backup --root device --repo repo --json --tag day-\(day)")
      #expect(report["parent"] as? String == parent)
      parent = report["snapshot"] as? String
      let copy = try Program.run("cp", ["-a", "device", "day-\(day)"], in: cli.directory.url)
      #expect(copy.code == 0)
    }
    for day in 0...4 {
      let snapshot = day == 4 ? "latest" : "latest~\(4 - day)"
      _ = try cli.succeed("restore \(snapshot) --to back-\(day) --repo repo")
      try PolicyComparison.expectRestored(cli, device: "day-\(day)", back: "back-\(day)")
    }
    let listed = try cli.jsonLines("snapshots --json --repo repo")
    #expect(listed.compactMap { $0["tags"] as? [String] } == (0...4).map { ["day-\($0)"] })
  }

  @Test func dailyBackupStoresOnlyNewData() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    let first = try cli.json("backup --root device --repo repo --json")
    _ = try cli.succeed("sample device --day 1")
    let second = try cli.json("backup --root device --repo repo --json")
    let (before, after) = (first["stored_bytes"] as? Int ?? 0, second["stored_bytes"] as? Int ?? 0)
    #expect(after > 0 && after < before, "\(before), then \(after)")
  }

  @Test(.disabled(if: TestEncryption.isOn, "'init' prints the recipient"))
  func tablesAreAsRecorded() throws {
    let cli = try CommandLine()
    var transcript = Transcript(cli)
    try transcript.run("sample device", exits: 0)
    try transcript.run("apps --root device", exits: 0)
    try transcript.run("classify --root device --summary", exits: 0)
    try transcript.run("init repo --plain", exits: 0)
    try transcript.run("backup --root device --repo repo --dry-run", exits: 0)
    try transcript.run("restore latest --to back --repo repo", exits: 1)
    try transcript.expectSnapshot("tour")
  }

  /// A single file is restored as DIR itself.
  @Test func singleFileIsRestored() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    _ = try cli.succeed("backup --root device --repo repo")
    let path: ByteString = "apps/org.example.notebook/data/Documents/Notes/Recipes.md"
    _ = try cli.succeed("restore latest:\(path) --to recipes.md --repo repo")
    _ = try cli.succeed("restore latest --to back --repo repo")
    #expect(
      try cli.directory.read("recipes.md") == cli.directory.read(ByteString("back").appending(path))
    )
    let listed = try cli.jsonLines("ls latest:\(path) --json --repo repo")
    #expect(listed.compactMap { $0.path() } == [path])
    #expect(listed.first?["size"] as? Int == (try cli.directory.read("recipes.md")).count)
  }
}
