import DeviceDiscovery
import PolicyEngine
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

/// A scan with several threads finds the same entries as a scan with one.
@Suite(.spreadScans) struct ParallelScanTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture(inMemory: true)
  }

  @Test(arguments: [1, 2, 7, 40, 1000], [false, true])
  func anyDivisionFindsTheSame(share: Int, isForPurge: Bool) throws {
    try makeTree(seed: 7)
    let (device, policy) = try (device(), Fixture.policy(.coreSimulator))
    var options = isForPurge ? ScanOptions.forPurge() : ScanOptions()
    options.workers = 1
    let whole = DeviceScan.run(device, policy: policy, options: options).containers
    let parts = try scan(device, policy, options, share: share).containers
    #expect(parts.map(\.container.logicalPrefix) == whole.map(\.container.logicalPrefix))
    for (part, serial) in zip(parts, whole) {
      expectWellFormed(part)
      #expect(Found(part) == Found(serial), "\(serial.container.logicalPrefix)")
    }
    #expect(whole.map(\.entries.count).reduce(0, +) > 400)
    #expect(isForPurge || whole.contains { !$0.marks.isEmpty })
    #expect(whole.contains { !$0.ownDirectories.isEmpty })
  }

  @Test func theOrderDoesNotDependOnThreads() throws {
    try makeTree(seed: 9)
    let (device, policy) = try (device(), Fixture.policy(.coreSimulator))
    let first = try scan(device, policy, share: 3).containers
    for _ in 0..<5 {
      let again = try scan(device, policy, share: 3).containers
      for (one, other) in zip(first, again) {
        let paths = one.entries.indices.map { one.path($0) }
        #expect(paths == other.entries.indices.map { other.path($0) })
      }
    }
  }

  @Test func siblingConditionsHoldInEachPart() throws {
    let policy = try ScanCostTests.policy(
      ["{id: caches, in: [folder], match: '*/Cache/**', class: cache, when: {sibling: Local/}}"],
      markers: [])
    for directory in ["a/Cache/x/y", "b/Cache/x/y", "c/Other/x/y"] {
      let made = try Directory.make(
        path: fixture.directory.path("tree").appending(ByteString(directory)))
      for number in 0..<4 { _ = try made.create(ByteString("file \(number)")) }
    }
    _ = try Directory.make(path: fixture.directory.path("tree/b/Local"))
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    let whole = try #require(DeviceScan.run(device, policy: policy).containers.first)
    let part = try #require(try scan(device, policy, share: 1).containers.first)
    #expect(Found(part) == Found(whole))
    #expect(whole.entries.contains { $0.verdicts.keep.dataClass == .cache })
    #expect(whole.siblings.count == 1)
  }

  @Test func anUnreadableDirectoryIsReportedOnce() throws {
    try makeTree(seed: 3)
    let device = try Device.find(root: fixture.directory.path("tree/Containers"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    var options = ScanOptions()
    (options.workers, options.share) = (2, 5)
    for number in stride(from: 1, to: 60, by: 7) {
      let plan = Faults.Plan(failing: [.list], at: number, number: 5)
      let found = try Faults.inject(plan) {
        try ParallelScan(device.containers, policy: policy, options: options, at: Host.now())
          .run(knowing: nil)
      }
      #expect(found.containers.map(\.unreadable.count).reduce(0, +) == 1)
      for scan in found.containers { expectWellFormed(scan) }
    }
  }

  @Test func aStoppedScanReportsIt() throws {
    try makeTree(seed: 5)
    let (device, policy) = try (device(), Fixture.policy(.coreSimulator))
    let asked = Atomic<Int>(0)
    var options = ScanOptions {
      asked.wrappingAdd(1, ordering: .relaxed).newValue > 20
    }
    (options.workers, options.share) = (3, 4)
    let found = try ParallelScan(
      device.containers, policy: policy, options: options, at: Host.now()
    ).run(knowing: nil)
    #expect(found.isInterrupted)
  }

  /// A job that begins far below the root opens the directories above it again, but finds at least
  /// as many entries.
  @Test func nestedDirectoriesAreOpenedAFewTimes() throws {
    let levels = 3000
    try nest(levels)
    let (found, opens) = try opensOfScan(share: 100)
    #expect(found.entries.count == levels + 1)
    expectWellFormed(found)
    #expect(opens < 4 * levels, "\(opens)")
  }

  /// The directories at which a job begins are reached through their common ancestors, which are
  /// opened once.
  @Test func commonDirectoriesOfAJobAreOpenedOnce() throws {
    let (levels, leaves) = (200, 60)
    let last = try nest(levels)
    for leaf in 0..<leaves {
      let made = try last.makeDirectory(ByteString("leaf \(leaf)"))
      for file in 0..<20 { _ = try made.create(ByteString("file \(file)")) }
    }
    let (found, opens) = try opensOfScan(share: 100)
    #expect(found.entries.count == 1 + levels + 21 * leaves)
    expectWellFormed(found)
    #expect(opens < leaves * levels / 3, "\(opens)")
  }

  /// In a comb-shaped tree, a job leaves a directory at each level above it. The jobs share these
  /// ancestors, and no job copies or opens them more often than it finds entries.
  @Test(arguments: [1, 7, ScanOptions.usualShare])
  func aCombIsScannedInProportion(share: Int) throws {
    let count = try makeComb(1500)
    let parts = try runJobs(share: share)
    let found = parts.flatMap(\.segments).map(\.entries.count).reduce(0, +)
    #expect(found == count)
    let copies = parts.map(\.scan.entries.count).reduce(0, +) - found
    #expect(copies < 3 * count, "\(copies)")
    let links = parts.map(\.above.count).reduce(0, +)
    #expect(links < 2 * count, "\(links)")
    let (whole, opens) = try opensOfScan(share: share)
    #expect(whole.entries.count == count)
    expectWellFormed(whole)
    #expect(opens < 4 * count, "\(opens)")
  }

  /// A classifier that discards its states computes those above the start of a job again.
  @Test(arguments: [1 << 20, 0]) func theStatesAboveAStartAreThoseOfTheWalk(bytes: Int) throws {
    let policy = try ScanCostTests.policy([
      "{id: caches, in: [folder], match: '**/s/**', class: cache, when: {sibling: Local}}"
    ])
    try makeComb(60)
    let made = try fixture.directory.directory.directory("nested").directory("d")
    try made.create("Local").write([])
    let verdicts = try runJobs(share: 7, policy, compactingAbove: bytes).map {
      part in
      part.segments.flatMap(\.entries).map { (part.scan.path($0), part.scan.entries[$0].verdicts) }
    }
    let device = try Device.find(root: fixture.directory.path("nested"), layout: .folder)
    var options = ScanOptions()
    options.workers = 1
    let whole = try #require(
      DeviceScan.run(device, policy: policy, options: options).containers.first)
    let expected = whole.entries.indices.map { (whole.path($0), whole.entries[$0].verdicts) }
    #expect(
      Dictionary(verdicts.joined()) { one, _ in one }
        == Dictionary(uniqueKeysWithValues: expected))
    #expect(Set(expected.map(\.1.keep.dataClass)).count == 2)
  }

  /// Makes nested directories, each with a file and a directory `s` with a file; returns the number
  /// of entries with the root.
  @discardableResult
  private func makeComb(_ levels: Int) throws -> Int {
    var directory = try fixture.directory.directory.makeDirectory("nested")
    for _ in 0..<levels {
      _ = try directory.makeDirectory("s").create("file")
      // File systems in memory list the newest entry first: the walk enters "d" before "s".
      directory = try directory.makeDirectory("d")
      _ = try directory.create("file")
    }
    return 1 + 4 * levels
  }

  /// Runs the jobs of a scan one after another, and returns their results.
  private func runJobs(
    share: Int, _ policy: CompiledPolicy? = nil, compactingAbove bytes: Int = 32 << 20
  ) throws -> [ScanJob.Part] {
    let device = try Device.find(root: fixture.directory.path("nested"), layout: .folder)
    let container = try #require(device.containers.first)
    let policy = try policy ?? Fixture.policy(.folder)
    var scanner = ContainerScanner(
      policy, at: Host.now(), first: container, options: ScanOptions())
    scanner.share = share
    scanner.classifier.compactionThreshold = bytes
    var (jobs, next, parts) = ([ScanJob(number: 0, container: 0)], 1, [ScanJob.Part]())
    while let job = jobs.popLast() {
      let part = scanner.run(job, of: container)
      jobs += ParallelScan.split(part, from: &next)
      parts.append(part)
    }
    return parts
  }

  /// Makes directories, each in the one above, and returns the last.
  @discardableResult
  private func nest(_ levels: Int) throws -> Directory {
    var directory = try fixture.directory.directory.makeDirectory("nested")
    for _ in 0..<levels { directory = try directory.makeDirectory("d") }
    return directory
  }

  private func opensOfScan(share: Int) throws -> (found: ContainerScan, opens: Int) {
    let device = try Device.find(root: fixture.directory.path("nested"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let plan = Faults.Plan(failing: [.open], at: .max, number: 5)
    let found = try Faults.inject(plan) { try scan(device, policy, share: share) }
    return (try #require(found.containers.first), plan.count)
  }

  private func device() throws -> Device {
    try Device.find(root: fixture.directory.path("tree"), layout: .coreSimulator)
  }

  private func scan(
    _ device: Device, _ policy: CompiledPolicy, _ options: ScanOptions = ScanOptions(), share: Int
  ) throws -> ParallelScan.Result {
    var options = options
    (options.workers, options.share) = (3, share)
    return try ParallelScan(device.containers, policy: policy, options: options, at: Host.now())
      .run(knowing: nil)
  }

  /// Makes three containers with directories of many widths and depths, with marks, and with a
  /// repository in one of them.
  private func makeTree(seed: UInt64) throws {
    var random = Seeded(seed)
    for app in 1...3 {
      let location = ByteString(
        "tree/Containers/Data/Application/0A0A0A0A-0000-4000-8000-00000000000\(app)")
      let top = try Directory.make(path: fixture.directory.path(location.appending("Documents")))
      var directories = ["", "Inbox", "Library/Caches"].map { location.appending(ByteString($0)) }
      for number in 0..<40 {
        let above = try #require(directories.randomElement(using: &random))
        let path = above.appending(ByteString("directory \(number)"))
        let made = try Directory.make(path: fixture.directory.path(path))
        directories.append(path)
        for file in 0..<Int.random(in: 0...9, using: &random) {
          _ = try made.create(ByteString("file \(file)"))
        }
        if number % 9 == 0 {
          try made.attributes.set(
            "user.com.apple.metadata:com_apple_backup_excludeItem", to: Array("bplist".utf8))
        }
      }
      let file = try top.create("repository.json")
      let id = String(repeating: "0123456789abcdef", count: 4)
      try file.write(Array(#"{"format": "sandboxctl-repository", "id": "\#(id)"}"#.utf8))
    }
  }

  /// Checks that children follow each other, after their directory, and have it as their parent.
  private func expectWellFormed(
    _ scan: ContainerScan, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    var seen = Set([0])
    for (index, entry) in scan.entries.enumerated() {
      for child in entry.children {
        #expect(Int(scan.entries[child].parent) == index, sourceLocation: sourceLocation)
        #expect(child > index, sourceLocation: sourceLocation)
        #expect(seen.insert(child).inserted, sourceLocation: sourceLocation)
      }
    }
    #expect(seen.count == scan.entries.count, sourceLocation: sourceLocation)
  }

  /// The result of a scan for each path, independent of the order.
  private struct Found: Equatable {
    struct Entry: Equatable {
      let status: FileStatus
      let verdicts: Verdicts
      let selection: ScannedEntry.Selection
      let children: [ByteString]
      let marks: MarkSet?
      let siblings: SiblingSet?
      let isOwn: Bool
      /// Only for files: listing a directory updates its access time.
      let accessed: Int64?
    }

    var entries: [ByteString: Entry] = [:]
    let unreadable: Set<ByteString>
    let mounts: Set<ByteString>

    init(_ scan: ContainerScan) {
      unreadable = Set(scan.unreadable.map(\.path))
      mounts = Set(scan.mounts)
      for (index, entry) in scan.entries.enumerated() {
        entries[scan.path(index)] = Entry(
          status: entry.status, verdicts: entry.verdicts, selection: entry.selection,
          children: entry.children.map { scan.name($0) }, marks: scan.marks[index],
          siblings: scan.siblings[index], isOwn: scan.ownDirectories.contains(index),
          accessed: entry.status.kind == .directory ? nil : scan.accessTimes[index])
      }
    }
  }
}
