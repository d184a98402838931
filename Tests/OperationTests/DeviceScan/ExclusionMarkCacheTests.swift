import Codecs
import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import DeviceScan

/// The exclusion marks that scans cache: an unchanged file is not checked for marks again, but a
/// changed one is.
@Suite(.spreadScans) struct ExclusionMarkCacheTests {
  private let fixture: Fixture
  private let data: ByteString =
    "tree/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"
  private static let excluded: ByteString =
    "user.com.apple.metadata:com_apple_backup_excludeItem"
  private static let tag = "Signature: 8a477f597d28d172789f06886806bc55\n"
  private static let key = StateKey(repository: Blake2b.hash([1]), source: Blake2b.hash([2]))

  init() throws {
    fixture = try Fixture(inMemory: true)
    for name in ["Documents/plain", "Documents/marked", "Documents/deep/down/file", "tmp/x"] {
      try fixture.directory.write("x", at: data.appending(ByteString(name)))
    }
    try opened("Documents").createLink("link", to: "plain")
    try mark("marked", in: "Documents")
    try fixture.directory.write(Self.tag, at: data.appending("Documents/tagged/CACHEDIR.TAG"))
    try fixture.directory.write("x", at: data.appending("Documents/tagged/file"))
  }

  private func opened(_ path: ByteString) throws -> Directory {
    try Directory.open(path: fixture.directory.path(data.appending(path)))
  }

  private func mark(_ name: ByteString, in path: ByteString) throws {
    let directory = try opened(path)
    try directory.attributes(of: name).set(Self.excluded, to: Array("com.apple.backupd".utf8))
  }

  /// A cache as in a run that begins some seconds from now, containing the marks that an earlier
  /// scan found.
  private func memory(
    _ earlier: DeviceScan? = nil, seconds: Int64 = 10, program: String = "test"
  ) throws -> ExclusionMarkCache {
    var table = MarkTable()
    if let earlier {
      let found = try #require(earlier.marks).found
      let bytes = try #require(found.sorted.encoded(Self.key))
      table = try #require(MarkTable(bytes, Self.key))
    }
    let start = Timestamp(seconds: Host.now().seconds + seconds)
    return ExclusionMarkCache(table, at: RunClock(start: start), by: program)
  }

  /// Scans the device. Also returns how often the scan read attributes and statuses of entries.
  private func scan(
    _ memory: ExclusionMarkCache?, _ patterns: [CommandLinePattern] = []
  ) throws -> (scan: DeviceScan, attributes: Int, statuses: Int) {
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
    let policy = try Fixture.policy(.coreSimulator, patterns)
    func counting(_ operation: SystemError.Operation) -> (DeviceScan, Int) {
      let plan = Faults.Plan(failing: [operation], at: .max, number: 0)
      let scan = Faults.inject(plan) { DeviceScan.run(device, policy: policy, knowing: memory) }
      return (scan, plan.count)
    }
    let (scan, attributes) = counting(.readAttributes)
    return (scan, attributes, counting(.status).1)
  }

  /// Expects the same result as a scan without a cache.
  private func expectRight(
    _ scan: DeviceScan, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let fresh = try self.scan(nil).scan
    #expect(scan.selections == fresh.selections, sourceLocation: sourceLocation)
    #expect(
      scan.containers.map(\.marks) == fresh.containers.map(\.marks), sourceLocation: sourceLocation)
  }

  @Test func unchangedFilesAreNotCheckedForMarks() throws {
    let first = try scan(memory())
    try expectRight(first.scan)
    #expect(first.scan.selections["Documents/marked"] == .excluded)
    #expect(first.scan.selections["Documents/tagged/file"] == .included)
    #expect(first.attributes > 12)
    // A directory with a file that may be a marker is checked each time, and so is that file.
    let second = try scan(memory(first.scan))
    #expect(second.attributes == 1)
    try expectRight(second.scan)
    try opened("Documents/tagged").remove("CACHEDIR.TAG")
    try opened("Documents").remove("link")
    let third = try scan(memory(try scan(memory()).scan))
    #expect(third.attributes == 0)
    #expect(third.statuses < first.statuses - 4, "no directory is checked for a tag")
    #expect(third.scan.marks?.table(isPart: false) == nil, "nothing new to cache")
    try expectRight(third.scan)
  }

  @Test(arguments: [
    "mark a file", "unmark a file", "mark a directory", "mark the root", "tag a directory",
    "untag a directory", "spoil a tag", "replace a file",
  ])
  func changesOfMarksAreFound(change: String) throws {
    if change == "spoil a tag" {
      try fixture.directory.write("Signature: of nothing", at: data.appending("tmp/CACHEDIR.TAG"))
    }
    let before = try scan(memory()).scan
    try waitForTheClock()
    switch change {
    case "mark a file": try mark("plain", in: "Documents")
    case "unmark a file":
      let directory = try opened("Documents")
      try directory.attributes(of: "marked").remove(Self.excluded)
    case "mark a directory": try mark("deep", in: "Documents")
    case "mark the root":
      let directory = try opened("")
      try directory.attributes.set(Self.excluded, to: Array("com.apple.backupd".utf8))
    case "tag a directory":
      try fixture.directory.write(Self.tag, at: data.appending("Documents/deep/CACHEDIR.TAG"))
    case "untag a directory": try opened("Documents/tagged").remove("CACHEDIR.TAG")
    case "spoil a tag":
      // In place: the directory itself is unchanged.
      let file = try opened("tmp").openOrCreate("CACHEDIR.TAG", permissions: 0o644)
      try file.write(Array(Self.tag.utf8), at: 0)
    default:
      try opened("Documents").rename("plain", to: "other", in: opened("Documents"))
      try fixture.directory.write("x", at: data.appending("Documents/plain"))
      try mark("plain", in: "Documents")
    }
    let after = try scan(memory(before))
    #expect(after.scan.containers.map(\.marks) != before.containers.map(\.marks))
    try expectRight(after.scan)
  }

  /// Waits until new changes get another change time.
  private func waitForTheClock() throws {
    let file = try Directory.open(path: fixture.directory.path("tree")).create("clock")
    let before = try file.status().changed
    while try file.status().changed == before { try file.write([0], at: 0) }
    try Directory.open(path: fixture.directory.path("tree")).remove("clock")
  }

  @Test func anotherProgramOrPolicyChecksAgain() throws {
    let first = try scan(memory())
    let all = first.attributes
    #expect(try scan(memory(first.scan, program: "another")).attributes == all)
    #expect(try scan(memory(first.scan), [.exclude("nothing at all")]).attributes == all)
    #expect(try scan(memory(first.scan)).attributes < all)
  }

  /// A second change in the same tick of the clock would not show.
  @Test func aFileChangedShortlyBeforeIsCheckedAgain() throws {
    let changed = try opened("Documents").status("plain").changed
    let first = try scan(
      ExclusionMarkCache(
        MarkTable(), at: RunClock(start: Timestamp(seconds: changed.seconds + 1)), by: "test"))
    #expect(try #require(first.scan.marks).found.count == 0)
    #expect(try scan(memory(first.scan)).attributes == first.attributes)
  }

  @Test func aPartialScanKeepsTheMarksOfTheRest() throws {
    var (one, other) = (MarkTable(), MarkTable())
    for number: UInt64 in [7, 3, 5] { one.add(number, []) }
    one.add(9, MarkSet(marker: 2))
    other.add(3, [])
    other.add(4, MarkSet(marker: 1))
    let joined = other.joined(with: one)
    let bytes = try #require(joined.encoded(Self.key))
    let read = try #require(MarkTable(bytes, Self.key))
    for number: UInt64 in [3, 5, 7] { #expect(read.marks(number) == []) }
    #expect(read.marks(9) == MarkSet(marker: 2) && read.marks(4) == MarkSet(marker: 1))
    #expect(read.marks(6) == nil && read.marks(0) == nil && read.count == 5)
  }

  @Test func aDamagedFileIsNotUsed() throws {
    let scan = try scan(memory()).scan
    let found = try #require(scan.marks).found
    let bytes = try #require(found.sorted.encoded(Self.key))
    #expect(MarkTable(bytes, Self.key)?.count == found.count)
    for count in [0, 7, 96, bytes.count - 8, bytes.count - 1] {
      #expect(MarkTable(Array(bytes.prefix(count)), Self.key) == nil, "\(count)")
    }
    for position in stride(from: 0, to: bytes.count, by: 5) {
      var damaged = bytes
      damaged[position] ^= 0x10
      #expect(MarkTable(damaged, Self.key) == nil, "\(position)")
    }
    let other = StateKey(repository: Self.key.repository, source: Blake2b.hash([3]))
    #expect(MarkTable(bytes, other) == nil)
  }
}
