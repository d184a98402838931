import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

/// Directories that are kept although their names suggest a cache.
struct CacheNameFindingTests {
  private static let uuid: ByteString = "0A0A0A0A-0000-4000-8000-000000000001"
  private static let home = ByteString("tree/Containers/Data/Application").appending(uuid)

  private func scan(
    _ fixture: Fixture, _ patterns: [CommandLinePattern] = [], within scope: ByteString? = nil
  ) throws -> DeviceScan {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    return DeviceScan.run(
      device, policy: try Fixture.policy(.coreSimulator, patterns),
      within: try scope.map { try LogicalPath($0) }, options: ScanOptions())
  }

  private func write(_ sizes: [ByteString: Int], in fixture: Fixture) throws {
    for (path, size) in sizes {
      try fixture.directory.write(
        [UInt8](repeating: 1, count: size), at: Self.home.appending(path))
    }
  }

  @Test func theTopmostDirectoryIsFound() throws {
    let fixture = try Fixture()
    try write(
      [
        "Library/Application Support/gurd_cache/a": 10,
        "Library/Application Support/gurd_cache/deep/Thumbnails/b": 5,
        "Library/Application Support/gurd_cache/tmp.plist.abcdefG": 100,
        "Documents/Thumbnails/c": 3, "Documents/cache": 7, "Library/Caches/Image Cache/d": 50,
        "tmp/cache/e": 60,
      ], in: fixture)
    _ = try Directory.make(path: fixture.directory.path(Self.home.appending("Documents/caches")))
    let found = try scan(fixture).cacheNames()
    let reported = found.map { [$0.path.description, $0.kind.rawValue, $0.dataClass.rawValue] }
    #expect(
      Set(reported) == [
        ["Library/Application Support/gurd_cache", "cache", "support"],
        ["Documents/Thumbnails", "thumbnails", "user-data"],
      ])
    // The temporary file of a property list is excluded, by its name.
    let support = try #require(found.first { $0.dataClass == .support })
    #expect(support.totals.files == 2 && support.totals.bytes == 15)
  }

  @Test func excludedDataIsNotReported() throws {
    let fixture = try Fixture()
    try write(["Library/DiskCache/a": 10, "Library/DiskCache/b": 20], in: fixture)
    #expect(try scan(fixture).cacheNames().map(\.totals.bytes) == [30])
    let part = try scan(fixture, [.exclude("Library/DiskCache/a")])
    #expect(part.cacheNames().map(\.totals.bytes) == [20])
    #expect(try scan(fixture, [.exclude("Library/DiskCache")]).cacheNames().isEmpty)
    // The backups of the platform exclude an unknown directory, but it is stored nevertheless.
    try write(["Invented/Cache/a": 5], in: fixture)
    #expect(try scan(fixture).cacheNames().map(\.path).contains("Invented/Cache"))
  }

  @Test func aSearchBelowAPathFindsNothingAboveIt() throws {
    let fixture = try Fixture()
    try write(["Library/DiskCache/inner/Cache/a": 10, "Documents/Cache/b": 20], in: fixture)
    let prefix = try #require(try scan(fixture).containers.first).container.logicalPrefix
    func found(_ path: ByteString) throws -> [ByteString] {
      let scope = prefix.appending(path)
      return try scan(fixture, within: scope).cacheNames(within: scope).map(\.path)
    }
    #expect(try found("Library") == ["Library/DiskCache"])
    #expect(try found("Library/DiskCache") == ["Library/DiskCache"])
    #expect(try found("Library/DiskCache/inner") == ["Library/DiskCache/inner/Cache"])
    #expect(try found("Documents/Cache/b").isEmpty)
  }

  /// Random trees, scanned with each number of threads, are compared with a search that examines
  /// each file.
  @Test(arguments: [31, 32, 33] as [UInt64])
  func findingsAreThoseOfAPlainSearch(seed: UInt64) throws {
    let fixture = try Fixture(inMemory: true)
    var random = Seeded(seed)
    try fill(fixture, &random)
    var counts: Set<Int> = []
    for variant in ScanVariant.all {
      let scan = try variant.run { try self.scan(fixture, [.exclude("**/excluded")]) }
      let found = scan.cacheNames().map {
        "\($0.logicalPath) \($0.kind) \($0.dataClass) \($0.totals.files) \($0.totals.bytes)"
      }
      #expect(found.sorted() == Self.plainSearch(scan).sorted(), "\(variant)")
      counts.insert(found.count)
    }
    #expect(counts.count == 1 && counts.allSatisfy { $0 > 3 }, "\(counts)")
  }

  private static let kinds: [ByteString: CacheName] = [
    "gurd_cache": .cache, "Image Cache": .cache, "Thumbnails": .thumbnails,
    "PHTPhenotype": .library,
  ]
  private static let tops: [ByteString] = [
    "Documents", "Library", "Library/Caches", "Library/Application Support", "tmp", "Invented",
  ]

  private func fill(_ fixture: Fixture, _ random: inout Seeded) throws {
    let others: [ByteString] = ["a", "b", "Geocaches", "excluded", "CacheStorage"]
    let names = others + Self.kinds.keys.sorted()
    for number in 0..<150 {
      var path = Self.tops.randomElement(using: &random) ?? "Documents"
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        path = path.appending(names.randomElement(using: &random) ?? "a")
      }
      let size = Int.random(in: 0...50, using: &random)
      try write([path.appending(ByteString("file \(number)")): size], in: fixture)
    }
  }

  /// Adds each kept file to the topmost directory on its path that has a kept class and one of the
  /// names.
  private static func plainSearch(_ scan: DeviceScan) -> [String] {
    var sums: [String: EntryTotals] = [:]
    for container in scan.containers {
      for (index, entry) in container.entries.enumerated()
      where entry.status.kind == .file && entry.selection == .included {
        guard entry.verdicts.keep.dataClass.isKept else { continue }
        for directory in container.directories(to: index).dropLast() {
          let verdict = container.entries[Int(directory)].verdicts.keep.dataClass
          guard verdict.isKept, let kind = kinds[container.name(Int(directory))] else { continue }
          let title = "\(container.logicalPath(Int(directory))) \(kind) \(verdict)"
          sums[title, default: EntryTotals()].add(entry.status)
          break
        }
      }
    }
    return sums.map { "\($0.key) \($0.value.files) \($0.value.bytes)" }
  }
}
