import SystemIO
import TestSupport
import Testing

/// The tree of a real iOS device: 65,624 empty files under their real names. In `make test` the
/// tree has all containers and a sample of the files.
@Suite(.serialized, .enabled(if: Shared.has(RealDevicePaths.material)))
struct RealDeviceTests {
  /// The container directories of the device with their kinds.
  private static let classes: [(directory: ByteString, kind: String)] = [
    ("private/var/containers/Bundle/Application", "bundle"),
    ("private/var/mobile/Containers/Data/Application", "data"),
    ("private/var/mobile/Containers/Data/PluginKitPlugin", "extension"),
    ("private/var/mobile/Containers/Shared/AppGroup", "group"),
  ]

  @Test func realDeviceIsClassifiedBackedUpAndRestored() throws {
    let cli = try CommandLine(inMemory: true)
    let all = try RealDevicePaths.load()
    #expect(all.count == 65_624)
    let paths = RealDevicePaths.sample(of: all)
    try RealDevicePaths.makeTree(of: paths, at: cli.directory.path("device"))
    try expectContainers(cli, paths)
    let entries = try cli.classification(of: "device")
    try expectClasses(cli, entries)
    _ = try cli.succeed("init repo --plain")
    let report = try cli.json("backup --root device --repo repo --json")
    #expect((report["unreadable"] as? [Any])?.isEmpty == true)
    #expect(try #require(report["files"] as? Int) > 40_000 / RealDevicePaths.stride)
    _ = try cli.succeed("restore latest --to back --repo repo")
    try PolicyComparison.expectRestored(cli, device: "device", back: "back", entries: entries)
  }

  /// Expects `apps` to find the listed number of containers of each kind, and no others.
  private func expectContainers(_ cli: CommandLine, _ paths: [ByteString]) throws {
    var expected: [String: Set<ByteString>] = [:]
    for path in paths {
      for (directory, kind) in Self.classes where path.isWithin(directory) {
        expected[kind, default: []].insert(path.components[directory.components.count])
      }
    }
    let found = Dictionary(grouping: try cli.containers(of: "device")) {
      $0.json["kind"] as? String ?? ""
    }
    #expect(found.mapValues(\.count) == expected.mapValues(\.count))
    #expect(
      found.mapValues(\.count) == ["bundle": 40, "data": 164, "extension": 536, "group": 55])
    for (kind, containers) in found {
      #expect(Set(containers.compactMap { $0.realPath.lastComponent }) == expected[kind])
      #expect(Set(containers.map(\.path)).count == containers.count, "names are unique")
    }
  }

  /// Expects no entry of an app's containers to have an unknown class, except those that the
  /// platform's own backup list excludes as well.
  private func expectClasses(_ cli: CommandLine, _ entries: [ClassifiedEntry]) throws {
    let kinds = Dictionary(
      uniqueKeysWithValues: try cli.containers(of: "device").map {
        ($0.path, $0.json["kind"] as? String ?? "")
      })
    #expect(entries.filter { $0.type == "file" }.count > 53_000 / RealDevicePaths.stride)
    var unknown: [String: Int] = [:]
    for entry in entries where entry.dataClass == "unknown" && entry.type == "file" {
      var container = entry.path
      while kinds[container] == nil, !container.isEmpty { container = container.directoryPath }
      let top = entry.path.components[container.components.count]
      unknown["\(kinds[container] ?? "no container"): \(top)", default: 0] += 1
    }
    let known = ["data: CloudKit": 24, "data: StoreKit": 8, "extension: StoreKit": 31]
    #expect(unknown.allSatisfy { $0.value <= known[$0.key, default: 0] }, "\(unknown)")
    if Sampling.isWhole { #expect(unknown == known) }
  }
}
