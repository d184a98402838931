import Codecs
import SystemIO
import TestSupport
import Testing

/// Text output for devices with many apps: the largest, and totals of the others.
@Suite struct LongListTests {
  private let cli: CommandLine

  /// Makes a user's Flatpak apps: 30 with data and caches of increasing sizes, and five empty ones.
  init() throws {
    cli = try CommandLine(inMemory: true)
    for number in 0..<30 {
      let app = "device/.var/app/org.example.App\(number)"
      let bytes = [UInt8](repeating: 1, count: 1000 * (number + 1))
      try cli.directory.write(bytes, at: ByteString(app + "/data/file"))
      try cli.directory.write(bytes, at: ByteString(app + "/cache/file"))
    }
    for number in 0..<5 {
      let empty = ByteString("device/.var/app/org.example.Empty\(number)/data")
      _ = try Directory.make(path: cli.directory.path(empty))
    }
    _ = try cli.succeed("init repo --plain --no-default")
  }

  private func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters() }
  }

  private func appLines(_ text: String) -> [String] {
    lines(text).filter { $0.contains("org.example.") }
  }

  @Test func backupListsTheTwentyLargestApps() throws {
    let line = "backup --layout flatpak --root device --repo repo"
    for command in [line + " --dry-run", line] {
      let output = try cli.succeed(command)
      let apps = appLines(output)
      #expect(apps.count == 20)
      #expect(apps[0].hasPrefix("org.example.App29 ") && apps[19].hasPrefix("org.example.App10 "))
      // Each of the ten others has 1,000 to 10,000 included bytes and as many excluded ones.
      #expect(output.contains("  10 more, 107 KiB; 5 empty (--all lists them)\n"), "\(output)")
    }
    let all = try cli.succeed(line + " --dry-run --all")
    #expect(appLines(all).count == 35 && !all.contains("more,"))
    let json = try cli.json(line + " --dry-run --json")
    #expect((json["owners"] as? [Any] ?? json["apps"] as? [Any])?.count == 35, "\(json.keys)")
  }

  @Test func appsListsTwenty() throws {
    let output = try cli.succeed("apps --layout flatpak --root device")
    #expect(appLines(output).count == 20)
    #expect(output.contains("  15 more (--all lists them)\n"), "\(output)")
    #expect(appLines(try cli.succeed("apps --layout flatpak --root device --all")).count == 35)
  }

  @Test func classifyListsTheLargestFiles() throws {
    let line = "classify --layout flatpak --root device"
    let output = lines(try cli.succeed(line))
    #expect(output.count == 21)
    #expect(output[0].contains("apps/org.example.App29/"))
    #expect(output[20].hasSuffix("40 more, 410 KiB (--all lists them)"), "\(output[20])")
    #expect(lines(try cli.succeed(line + " --all")).count > 120)
    // A selected part is listed completely.
    #expect(lines(try cli.succeed(line + " App3")).count == 5)
  }

  @Test func purgeListsTheLargestCandidatesAndApps() throws {
    let line = "purge --layout flatpak --root device --level critical"
    let plan = lines(try cli.succeed(line + " --dry-run"))
    #expect(plan.count { $0.contains("org.example.") } == 20)
    #expect(plan.contains { $0.hasPrefix("10 more, ") }, "\(plan)")
    #expect(appLines(try cli.succeed(line + " --dry-run --all")).count == 30)
    let done = try cli.succeed(line + " --yes")
    #expect(appLines(done).count == 20 && done.contains("  10 more, "), "\(done)")
  }

  @Test func restoreListsTheLargestContainers() throws {
    _ = try cli.succeed("backup --layout flatpak --root device --repo repo")
    _ = try Directory.make(path: cli.directory.path("other/.var/app"))
    let line = "restore latest --to-device other --repo repo"
    let plan = try cli.succeed(line + " --dry-run")
    #expect(appLines(plan).count == 20)
    #expect(plan.contains("10 more, ") && plan.contains("; 5 empty (--all lists them)"), "\(plan)")
    #expect(appLines(try cli.succeed(line + " --dry-run --all")).count == 35)
  }

  /// Findings are results: listed by kind with counts on standard output.
  @Test func findingsAreListedByKind() throws {
    for number in 0..<25 {
      try cli.directory.directory.directory("device/.var/app").createLink(
        ByteString("org.example.Link\(number)"), to: "/nowhere")
    }
    let outcome = try cli.run("apps --layout flatpak --root device --findings")
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(outcome.output.contains("\n  dangling-link: 25 ("), "\(outcome.output)")
    #expect(outcome.output.contains("    5 more (--all lists them)\n"))
  }
}

extension Substring {
  fileprivate func trimmingCharacters() -> String { String(drop { $0 == " " }) }
}
