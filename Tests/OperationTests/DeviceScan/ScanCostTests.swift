import AllocationCount
import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceScan

/// The memory that a scan may use, for any tree and policy.
@Suite(.spreadScans) struct ScanCostTests {
  @Test(arguments: [Layout.coreSimulator, .flatpak, .folder])
  func entriesNeedNoAllocation(layout: Layout) throws {
    guard ac_is_counting() != 0 else { return }
    let directory = try TemporaryDirectory("scan-cost", inMemory: true)
    let (few, many) = (5_000, 10_000)
    let location = Self.path(layout)
    for count in [few, many] {
      try Self.makeTree(directory.path(ByteString("\(count)")).appending(location), files: count)
    }
    let policy = try Fixture.policy(layout)
    let allocations = try [few, many].map {
      try Self.allocations(ofScanning: directory.path(ByteString("\($0)")), layout, policy)
    }
    // Growing arrays are reallocated a few times more, and a busy machine may add allocations in
    // this thread; one allocation per file would be 5,000 more.
    #expect(allocations[1] < allocations[0] + 500, "\(allocations)")
  }

  /// A mark, or a name that a rule looks for, allocates memory when it is first found, but not for
  /// each of the thousand files that have it.
  @Test func knownMarksNeedNoAllocation() throws {
    guard ac_is_counting() != 0 else { return }
    let policy = try Self.policy(
      [
        "{id: caches, in: [folder], match: '**/Cache/**', class: cache, when: {sibling: Local}}"
      ],
      markers: ["{id: excluded, in: [folder], xattr: user.excluded, then: {backup: never}}"])
    var classifier = Classifier(policy)
    let root = classifier.root(.folder)
    let (name, mark) = (Array("Cache".utf8), MarkSet(marker: 0))
    func reach(_ classifier: inout Classifier) -> Classifier.State {
      let held = classifier.holding(root, classifier.siblingNames(root))
      return classifier.marking(classifier.descend(held, name.span), mark)
    }
    let first = reach(&classifier)
    let facts = EntryFacts(.directory, size: 0, modified: 0)
    #expect(classifier.verdicts(first, facts).keep.dataClass == .cache)
    let held = classifier.holding(root, classifier.siblingNames(root))
    let unmarked = classifier.descend(held, name.span)
    let markedAgain = classifier.marking(first, mark)
    #expect(unmarked != first && markedAgain == first)
    let before = ac_allocations()
    var others = 0
    for _ in 0..<1000 where reach(&classifier) != first { others += 1 }
    #expect(ac_allocations() - before < 20)
    #expect(others == 0)
  }

  private static func path(_ layout: Layout) -> ByteString {
    switch layout {
    case .coreSimulator: "Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"
    case .flatpak: ".var/app/org.example.App"
    default: ""
    }
  }

  /// Files in 40 directories, among them entries that policies examine: a marker file, names of
  /// possible databases, links.
  private static func makeTree(_ path: ByteString, files: Int) throws {
    for number in 0..<40 {
      let directory = try Directory.make(
        path: path.appending(ByteString("Library/Caches/folder \(number)")))
      for file in 0..<(files / 40) {
        switch file % 50 {
        case 0: _ = try directory.create(ByteString("store-\(file).db-shm"))
        case 1: _ = try directory.create(ByteString("store-\(file).db"))
        case 2: try directory.createLink(ByteString("link \(file)"), to: "elsewhere")
        default: _ = try directory.create(ByteString("a file with a name of some length \(file)"))
        }
      }
      if number % 4 == 0 {
        let tag = try directory.create("CACHEDIR.TAG")
        try tag.write(Array("Signature: 8a477f597d28d172789f06886806bc55\n".utf8))
      }
    }
  }

  private static func allocations(
    ofScanning path: ByteString, _ layout: Layout, _ policy: CompiledPolicy
  ) throws -> UInt64 {
    let device = try Device.find(root: path, layout: layout)
    let wanted = try #require(device.containers.first { $0.kind != .settings })
    var scanner = ContainerScanner(
      policy, at: Host.now(), first: wanted, options: ScanOptions())
    // One run before, to fill the classifier's states; the minimum of several runs, because
    // concurrent tests may add allocations in this thread (a retried call, for example).
    let entries = scanner.run(wanted).entries.count
    return (1...3).reduce(UInt64.max) { least, _ in
      let before = ac_allocations()
      #expect(scanner.run(wanted).entries.count == entries)
      return min(least, ac_allocations() - before)
    }
  }

  @Test func aPolicyWithManyStatesTakesBoundedMemory() throws {
    let directory = try TemporaryDirectory("states", inMemory: true)
    let root = try Directory.make(path: directory.path("tree"))
    var random = Seeded(20)
    for _ in 0..<150 {
      let names = (0..<8).map { _ in "d\(UInt64.random(in: 0..<10_000, using: &random))" }
      let deepest = try Directory.make(
        path: root.path.appending(ByteString(names.joined(separator: "/"))))
      for name in names { _ = try deepest.openOrCreate(ByteString("e" + name.dropFirst())) }
    }
    let policy = try Self.policy(
      (0..<10_000).map {
        "{id: r\($0), in: [folder], match: '**/d\($0)/**/e\($0)', class: cache}"
      })
    let device = try Device.find(root: root.path, layout: .folder)
    let wanted = try #require(device.containers.first)
    var scanner = ContainerScanner(
      policy, at: Host.now(), first: wanted, options: ScanOptions())
    let free = Self.peak { scanner.run(wanted) }
    #expect(scanner.generation == 0)
    var bounded = ContainerScanner(
      policy, at: Host.now(), first: wanted, options: ScanOptions())
    bounded.classifier.compactionThreshold = 64 << 10
    let spared = Self.peak { bounded.run(wanted) }
    #expect(bounded.generation > 5)
    #expect(bounded.classifier.stateCount < scanner.classifier.stateCount / 5)
    #expect(spared.scan.entries.map(\.verdicts) == free.scan.entries.map(\.verdicts))
    #expect(spared.scan.entries.contains { $0.verdicts.keep.dataClass == .cache })
    if ac_is_counting() != 0 {
      #expect(spared.peak < free.peak * 2 / 3, "\(spared.peak) \(free.peak)")
    }
  }

  static func policy(
    _ rules: [String], markers: [String] = []
  ) throws -> CompiledPolicy {
    let lists = [("rules", rules), ("markers", markers)].filter { !$0.1.isEmpty }
    let text =
      "policy: x\nschema: 1\nlayout: folder\n"
      + lists.map { name, list in "\(name):\n" + list.map { "  - \($0)\n" }.joined() }.joined()
    let source = PolicySource(name: "x.yaml", bytes: Array(text.utf8), origin: .builtin)
    return try PolicyLibrary([source]).compile(PolicyRequest(policy: "x", layout: .folder))
  }

  /// The result of a scan, and its peak memory in bytes.
  private static func peak(_ scan: () -> ContainerScan) -> (scan: ContainerScan, peak: Int64) {
    ac_begin_peak()
    let found = scan()
    return (found, ac_peak())
  }
}
