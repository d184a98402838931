import DeviceScan
import PolicyEngine
import Purge
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A purge never deletes the wrong files, regardless of other processes and of the content of the
/// device.
@Suite(.spreadScans) struct PurgeSafetyTests {
  private func run(_ plan: PurgePlan) -> PurgeReport {
    PurgeOperation(plan, PurgeOptions(sign: { _, _ in nil })).run()
  }

  /// Cache directories are repeatedly swapped with links to Documents during 200 purges.
  @Test func directoriesReplacedWithLinksAreNotFollowed() throws {
    let fixture = try PurgeFixture()
    let data = fixture.directory.path(fixture.data())
    for name: ByteString in ["1", "2", "deep/3"] {
      try fixture.put(ByteString("Documents").appending(name))
    }
    let before = try TreeRecord.all(in: fixture.directory, fixture.data().appending("Documents"))
    try fixture.directory.write("", at: fixture.data().appending("Library/Caches/w/CACHEDIR.TAG"))
    // There must be a directory to swap before the first purge.
    for path: ByteString in ["a/1", "w/fsCachedData/1"] {
      try fixture.put(ByteString("Library/Caches").appending(path))
    }
    let caches = try Directory.open(path: data.appending("Library/Caches"))
    let inner = try caches.directory("w")
    try caches.createLink("a.link", to: "../../Documents")
    try inner.createLink("f.link", to: "../../../Documents")
    let swapper = try Swapper(caches: data.appending("Library/Caches"), fixture.directory)
    defer { swapper.end() }
    // On a busy machine, all purges might end before the swapper begins.
    try #require(try swapper.count > 0)
    for round in 0..<200 {
      for name: ByteString in ["1", "2", "deep/3"] {
        // If the directory is a link at this moment, writing would follow it, so files are created
        // elsewhere.
        try fixture.put(ByteString("staged/a").appending(name))
        try fixture.put(ByteString("staged/f").appending(name))
      }
      let staged = try Directory.open(path: data.appending("staged"))
      try? staged.rename("a", to: "a", in: caches, replacing: false)
      try? staged.rename("f", to: "fsCachedData", in: inner, replacing: false)
      try Directory.open(path: data).removeTree("staged")
      _ = run(try fixture.plan())
      try? caches.createLink("a.link", to: "../../Documents")
      try? inner.createLink("f.link", to: "../../../Documents")
      if round % 50 == 49 {
        let now = try TreeRecord.all(in: fixture.directory, fixture.data().appending("Documents"))
        #expect(now == before)
      }
    }
    swapper.end()
    #expect(
      try TreeRecord.all(in: fixture.directory, fixture.data().appending("Documents")) == before)
  }

  /// A link with which a user moved a directory of caches to another disk stays, and its target is
  /// not changed. Other links in caches are deleted.
  @Test func linksInPlaceOfNamedDirectoriesStay() throws {
    let fixture = try PurgeFixture()
    for path: ByteString in ["Documents/caches/1", "tmp/2"] { try fixture.put(path) }
    let data = fixture.directory.path(fixture.data())
    let library = try Directory.make(path: data.appending("Library"))
    try library.createLink("Caches", to: "../Documents/caches")
    try Directory.open(path: data.appending("tmp")).createLink("3", to: "../Documents/caches")
    let plan = try fixture.plan()
    #expect(Set(plan.chosenPaths) == ["tmp/2", "tmp/3"])
    #expect(run(plan).failed.isEmpty)
    #expect(try fixture.files() == ["Documents/caches/1", "Library/Caches"])
  }

  @Test func tagsAndMarksInDocumentsAreIgnored() throws {
    let fixture = try PurgeFixture()
    try fixture.directory.write(
      "Signature: 8a477f597d28d172789f06886806bc55\n",
      at: fixture.data().appending("Documents/thesis/CACHEDIR.TAG"))
    for path: ByteString in ["Documents/thesis/chapter", "Documents/marked", "Library/x/y"] {
      try fixture.put(path)
    }
    let documents = try fixture.above(fixture.data().appending("Documents/marked"))
    for key: ByteString in [
      "com.apple.metadata:com_apple_backup_excludeItem", "com.apple.MobileBackup",
    ] {
      try documents.attributes(of: "marked").set(ByteString("user.\(key)"), to: [1])
    }
    let before = try fixture.files()
    let plan = try fixture.plan()
    #expect(plan.units.isEmpty)
    #expect(run(plan).freed == 0)
    #expect(try fixture.files() == before)
  }

  @Test(.enabled(if: try Mount.isPermitted()))
  func mountsBelowACacheAreNotEntered() throws {
    let fixture = try PurgeFixture()
    let data = fixture.directory.path(fixture.data())
    for path: ByteString in [
      "Documents/a", "Library/Caches/bound/x", "Library/Caches/late/a",
      "Library/Caches/w/fsCachedData/in/a",
    ] { try fixture.put(path) }
    let documents = data.appending("Documents")
    let before = try TreeRecord.all(in: fixture.directory, fixture.data().appending("Documents"))
    let early = try Mount(binding: documents, on: data.appending("Library/Caches/bound"))
    let plan = try fixture.plan()
    #expect(Set(plan.chosenPaths) == ["Library/Caches/late/a", "Library/Caches/w/fsCachedData"])
    // Mounted after the plan was made.
    let late = try Mount(binding: documents, on: data.appending("Library/Caches/late"))
    let inside = try Mount(
      binding: documents, on: data.appending("Library/Caches/w/fsCachedData/in"))
    let report = run(plan)
    #expect(report.freed == 0, "\(report)")
    #expect(report.changed.count + report.failed.count == 2, "\(report)")
    #expect(
      try TreeRecord.all(in: fixture.directory, fixture.data().appending("Documents")) == before)
    withExtendedLifetime((early, late, inside)) {}
  }

  /// Generated devices under generated policies without `allow-loss`: every deleted file was a
  /// cache or temporary file.
  @Test func everyPlanHasOnlyCachesAndTemporaryFiles() throws {
    var random = Seeded.fresh()
    var (compiled, deleted) = (0, 0)
    // A policy in which a later rule always overrides an earlier one is refused: about three in ten
    // of the generated ones.
    for _ in 0..<200 where compiled < 10 {
      let fixture = try PurgeFixture()
      for _ in 0..<15 { try fixture.put(Self.path(&random), kib: 1) }
      guard let plan = try? fixture.plan([Self.overlay(&random)]) else { continue }
      compiled += 1
      var precious: [ByteString] = []
      for container in plan.scan.containers {
        for index in container.entries.indices where container.entries[index].status.kind == .file {
          let path = container.container.absolutePath.appending(container.path(index))
          let dataClass = container.entries[index].verdicts.keep.dataClass
          if dataClass == .cache || dataClass == .temporary { continue }
          precious.append(path)
        }
      }
      deleted += run(plan).volumes.reduce(0) { $0 + $1.files }
      for path in precious {
        #expect((try? Descriptor.open(path: path)) != nil, "\(path)")
      }
    }
    #expect(compiled == 10 && deleted > 4, "\(compiled) \(deleted)")
  }

  private static let names = [
    "Documents", "Library", "Caches", "tmp", "a", "b.db", "b.db-wal", "x",
  ]

  private static func path(_ random: inout Seeded) -> ByteString {
    let top = ["Documents/d", "Library/Caches/c", "tmp/t", "Library/s", "Own/o"]
    let first = top.randomElement(using: &random) ?? "tmp/t"
    let count = Int.random(in: 0...2, using: &random)
    let rest = (0..<count).map { "\($0)\(names.randomElement(using: &random) ?? "a")" }
    return ByteString(([first] + rest + ["f\(random.next() % 1000)"]).joined(separator: "/"))
  }

  private static func overlay(_ random: inout Seeded) -> String {
    let patterns = [
      "Documents/**", "Library/**", "Library/Caches/**", "**/0a/**", "**/*.db*", "tmp/**", "Own/**",
      "Library/Caches/c/*/**", "**/f1*",
    ]
    let purges = [
      "never", "anytime", "{order: 10}", "{order: 20, unit: directory}",
      "{order: 30, action: truncate}",
    ]
    let rules = (0..<Int.random(in: 1...4, using: &random)).map { number in
      let pattern = patterns.randomElement(using: &random) ?? "tmp/**"
      let dataClass = DataClass.allCases.randomElement(using: &random) ?? .cache
      // A policy that purges a precious class without `allow-loss` is refused.
      let purge = dataClass.isPrecious ? "never" : purges.randomElement(using: &random) ?? "never"
      return
        "  - {id: r\(number), match: \"\(pattern)\", class: \(dataClass.rawValue), purge: \(purge)}"
    }
    return "overlay: all\nschema: 1\nrules:\n" + rules.joined(separator: "\n") + "\n"
  }
}

/// Another process that swaps cache directories with links to Documents until it is ended, or until
/// this process ends.
private struct Swapper {
  private let program: Program.Running
  private let directory: TemporaryDirectory

  private static let script = """
    import ctypes, os, sys
    call, parent, swaps = ctypes.CDLL(None).renameat2, os.getppid(), 0
    caches, note = sys.argv[1].encode(), sys.argv[2]
    pairs = [(caches + b"/a", caches + b"/a.link"),
             (caches + b"/w/fsCachedData", caches + b"/w/f.link")]
    while os.getppid() == parent:
        for one, other in pairs:
            if call(-100, one, -100, other, 2) == 0:
                swaps += 1
                call(-100, one, -100, other, 2)
        with open(note, "w") as file:
            print(swaps, file=file)
    """

  init(caches: ByteString, _ directory: TemporaryDirectory) throws {
    self.directory = directory
    try directory.write("", at: "swaps")
    program = try Program.start(
      "python3", ["-c", Self.script, "\(caches)", "\(directory.path("swaps"))"],
      standardInput: directory.path("swaps"))
  }

  /// The number of swaps; waits for the first one.
  var count: Int {
    get throws {
      for _ in 0..<6000 {
        let text = String(decoding: try directory.read("swaps"), as: UTF8.self)
        if let count = Int(text.dropLast()), count > 0 { return count }
        Host.pause(seconds: 0.1)
      }
      return 0
    }
  }

  func end() { program.end() }
}
