import ArchiveStore
import SandboxModel
import SystemIO
import Testing

@testable import Interchange

/// Imports of sources whose paths are logical paths, and exports that keep them.
struct LogicalPathTests {
  private static let items = owned([
    .file("apps/org.example.a/data/files/x", "x"), .file("apps/org.example.a/bundle/y", "y"),
    .file("groups/group.example/z", "z"), .entry("apps/org.example.b/data", .directory),
    .file("folders/HomeDomain/Library/w", "w"), .file("apps/loose", "no container"),
  ])

  /// Returns entries with an owner.
  private static func owned(_ items: [ListedSource.Item]) -> [ListedSource.Item] {
    var items = items
    for index in items.indices { items[index].entry.owner = 10_045 }
    return items
  }

  private static func run(
    _ items: [ListedSource.Item], apps: [ForeignApp] = [], in fixture: Fixture
  ) throws -> ImportReport {
    var source = ListedSource(items)
    source.apps = apps
    return try fixture.run(&source) { request in
      request.placement = ImportRequest.Placement(
        prefix: "",
        device: DeviceRecord(
          identity: "udid:1", platform: "iOS", layout: "coresimulator", root: "/backup"),
        classes: [])
    }
  }

  /// A restore into a device and `--app` find the containers and apps.
  @Test func containersAndAppsAreListed() throws {
    let fixture = try Fixture()
    let report = try Self.run(
      Self.items,
      apps: [
        ForeignApp(identifier: "org.example.a", build: "42"),
        ForeignApp(identifier: "org.example.empty"),
      ], in: fixture)
    let snapshot = report.snapshot.snapshot
    #expect(
      snapshot.device.containers.map(\.path) == [
        "apps/org.example.a/bundle", "apps/org.example.a/data", "apps/org.example.b/data",
        "folders/HomeDomain", "groups/group.example",
      ])
    #expect(snapshot.device.containers[0].realPath == "/backup/apps/org.example.a/bundle")
    #expect(
      snapshot.apps == [
        AppRecord(
          identifier: "org.example.a", build: "42",
          containers: ["apps/org.example.a/bundle", "apps/org.example.a/data"]),
        AppRecord(identifier: "org.example.b", containers: ["apps/org.example.b/data"]),
        AppRecord(identifier: "org.example.empty"),
      ])
    #expect(report.isComplete)
  }

  /// Directories in a container that the source does not contain, for example in an Android backup,
  /// belong to the owner of their content; those above containers are as in a backup of the device.
  @Test func missingDirectoriesHaveTheOwnerOfTheirContent() throws {
    let fixture = try Fixture()
    let report = try Self.run(Self.items, in: fixture)
    let entries = try fixture.entries(report)
    for (path, owner) in [
      ("apps", 0), ("apps/org.example.a", 0), ("apps/org.example.a/data", 10_045),
      ("apps/org.example.a/data/files", 10_045), ("groups", 0), ("groups/group.example", 10_045),
      ("folders/HomeDomain/Library", 10_045),
    ] as [(ByteString, UInt32)] {
      #expect(entries[path]?.owner == owner, "\(path)")
      #expect(entries[path]?.permissions == 0o755, "\(path)")
    }
  }

  /// An untrusted backup cannot make the list of containers arbitrarily long.
  @Test func theListOfContainersIsBounded() throws {
    var containers = ImportedContainers()
    for number in 0..<(ImportedContainers.limit + 3) {
      containers.add(["groups", ByteString("group.\(1_000_000 + number)"), "x"])
      containers.add(["groups", ByteString("group.\(1_000_000 + number)"), "y"])
    }
    #expect(containers.found.count == ImportedContainers.limit)
    var skipped = SkippedEntries()
    containers.noteOthers(in: &skipped)
    #expect(skipped.entryCount == 0 && skipped.propertyCount == 1)
    #expect(skipped.listed.first?.reason.contains("; 3 more are") == true)
  }

  /// The sink receives the paths below another one, including those of hard links.
  @Test func anExportKeepsTheLogicalPaths() throws {
    let fixture = try Fixture()
    let data = "apps/org.example.a/data"
    let report = try Self.run(
      Self.items + [.link("\(data)/files/y", to: "\(data)/files/x")], in: fixture)
    var sink = RecordingSink()
    try fixture.export(report, of: ByteString(data), below: ByteString(data), to: &sink)
    let wanted = ["", "/files", "/files/x", "/files/y"].map { ByteString("\(data)\($0)") }
    #expect(sink.entries.map(\.joinedPath) == wanted)
    #expect(sink.entries.last?.kind == .hardLink(to: wanted[2].components))
  }

  /// Keeps the entries that it receives.
  private struct RecordingSink: EntrySink {
    private(set) var entries: [ForeignEntry] = []
    let skipped = SkippedEntries()

    mutating func add(_ entry: ForeignEntry) { entries.append(entry) }
    func write(_ bytes: UnsafeRawBufferPointer) {}
    func finish() {}
  }
}
