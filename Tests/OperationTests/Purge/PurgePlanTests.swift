import DeviceScan
import PolicyEngine
import Purge
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Which units a purge selects, and in which order.
@Suite(.spreadScans) struct PurgePlanTests {
  @Test func filesThatBelongTogetherAreAUnit() throws {
    let fixture = try PurgeFixture()
    for path: ByteString in [
      "Documents/a.txt", "Library/Application Support/b", "Library/Preferences/c.plist",
      "Invented/d", "Library/Caches/one", "Library/Caches/img.db", "Library/Caches/img.db-wal",
      "Library/Caches/img.db-shm", "Library/Caches/web/fsCachedData/1",
      "Library/Caches/web/fsCachedData/deep/2", "tmp/upload",
    ] { try fixture.put(path) }
    let plan = try fixture.plan()
    let found = Dictionary(uniqueKeysWithValues: plan.units.map { (plan.inner($0), $0) })
    #expect(
      Set(found.keys) == [
        "Library/Caches/one", "Library/Caches/img.db", "Library/Caches/web/fsCachedData",
        "tmp/upload",
      ])
    #expect(found["Library/Caches/img.db"]?.kind == .database)
    #expect(found["Library/Caches/img.db"]?.files == 3)
    #expect(found["Library/Caches/img.db"]?.bytes == 3 * 4096)
    #expect(found["Library/Caches/web/fsCachedData"]?.kind == .directory)
    #expect(found["Library/Caches/web/fsCachedData"]?.files == 2)
    #expect(found["tmp/upload"]?.terms.order == 0)
    #expect(plan.chosenPaths.count == 4)
  }

  /// A purge of one app scans only its containers.
  @Test func aPurgeOfOneAppScansNoOther() throws {
    let fixture = try UpdateFixture()
    let other = fixture.base.directory.path(fixture.data).appending(
      "0D0D0D0D-0000-4000-8000-000000000004")
    let directory = try Directory.make(path: other.appending("Library/Preferences"))
    try directory.create("org.example.two.plist").write([1])
    _ = try Directory.make(path: other.appending("Library/Caches/deep"))
    let (device, policy) = (try fixture.device(), try PurgeFixture.policy())
    func scanned(_ apps: [ByteString]) throws -> Set<ByteString> {
      let plan = try PurgePlan.make(
        device, policy: policy, apps: AppNames(apps), .everything, level: .critical)
      return Set(plan.scan.containers.map(\.container.logicalPrefix))
    }
    let own: Set<ByteString> = [
      "apps/org.example.one/bundle", "apps/org.example.one/data",
      "apps/org.example.one/extensions/org.example.one.share/data",
    ]
    #expect(try scanned(["org.example.one"]) == own)
    #expect(try scanned(["org.example.two"]) == ["apps/org.example.two/data"])
    #expect(try scanned([]) == own.union(["apps/org.example.two/data"]))
  }

  /// If a wrong clock has set a time in the future, a cache is not kept until then.
  @Test func filesOfTheFutureAreDeletedWithoutAMinimumAge() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/late", youngerBy: 4000)
    #expect(try fixture.plan(.everything, level: .critical).chosenPaths.count == 1)
    #expect(try fixture.plan(.everything, level: .low).chosenPaths.isEmpty)
  }

  /// The decision on one entry does not scan other apps either. Its position is its rank among the
  /// candidates of its app.
  @Test func aDecisionOnOneEntryScansOnlyItsApp() throws {
    let fixture = try PurgeFixture()
    for app in 0..<2 {
      for name: ByteString in ["tmp/a", "Library/Caches/b", "Library/Caches/c"] {
        try fixture.put(name, in: app)
      }
    }
    let (device, policy) = (try fixture.scan().device, try PurgeFixture.policy())
    let whole = try PurgePlan.make(device, policy: policy, .byPressure)
    let container = try #require(
      device.containers.first { $0.absolutePath == fixture.directory.path(fixture.data(1)) })
    let plan = try PurgePlan.make(device, policy: policy, judging: container)
    #expect(plan.scan.containers.count < whole.scan.containers.count)
    #expect(
      plan.scan.containers.allSatisfy {
        PurgePlan.party(of: $0.container) == PurgePlan.party(of: container)
      })
    for (number, name) in (["tmp/a", "Library/Caches/b", "Library/Caches/c"] as [ByteString])
      .enumerated()
    {
      let judgement = plan.judge(container, name)
      #expect(judgement.position == number + 1 && judgement.candidates == 3, "\(name)")
      let same = whole.judge(container, name)
      #expect(same.position == judgement.position && same.candidates == 3, "\(name)")
      #expect(same.levels == judgement.levels && same.party == judgement.party, "\(name)")
    }
    let kept = plan.judge(container, "Documents")
    #expect(kept.position == nil && kept.conflict == .missing)
  }

  @Test func theOrderHasFiveKeys() throws {
    let fixture = try PurgeFixture()
    try fixture.put("tmp/z", kib: 4)
    try fixture.put("Library/Caches/shader/com.apple.metal/f", kib: 4)
    try fixture.put("Library/Caches/old small", kib: 4)
    try fixture.put("Library/Caches/old large", kib: 8)
    try fixture.put("Library/Caches/b/x", kib: 64, youngerBy: 35)
    try fixture.put("Library/Caches/b-x", kib: 64, youngerBy: 35)
    try fixture.put("Library/Caches/over", kib: 4, youngerBy: 37, in: 1)
    try fixture.put("Library/Caches/over more", kib: 200, youngerBy: 37, in: 1)
    let quota = """
      overlay: all
      schema: 1
      quotas: [{match: Library/Caches/**, per: app, size: 190KiB}]

      """
    let plan = try fixture.plan([quota])
    #expect(
      plan.units.map(plan.inner) == [
        "tmp/z", "Library/Caches/shader/com.apple.metal", "Library/Caches/over more",
        "Library/Caches/over", "Library/Caches/old large", "Library/Caches/old small",
        "Library/Caches/b-x", "Library/Caches/b/x",
      ])
    #expect(plan.units[2].overQuota == plan.units[3].overQuota)
    #expect((1050...1200).contains(plan.units[2].overQuota), "\(plan.units[2].overQuota)")
    #expect(try fixture.plan([quota]).units == fixture.plan([quota]).units)
  }

  /// Units that are otherwise equal are ordered by the bytes of their paths.
  @Test func equalUnitsAreOrderedByPath() throws {
    var random = Seeded.fresh()
    let fixture = try PurgeFixture()
    var paths: Set<ByteString> = []
    for _ in 0..<300 {
      let parts = (0..<Int.random(in: 1...3, using: &random)).map { _ in
        (0..<Int.random(in: 1...3, using: &random)).map { _ in
          ["a", "-", "0", "longer than that", "\u{e9}"].randomElement(using: &random) ?? "a"
        }.joined()
      }
      let path = ByteString("Library/Caches/" + parts.joined(separator: "/"))
      if (try? fixture.put(path, kib: 1)) != nil { paths.insert(path) }
    }
    let wanted = paths.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    #expect(wanted.count > 100)
    #expect(try fixture.plan().chosenPaths == wanted)
  }

  @Test func eachLevelHasItsOrdersAndMinimumAge() throws {
    let fixture = try PurgeFixture()
    try fixture.put("tmp/a", youngerBy: 20)
    try fixture.put("Library/Caches/old")
    try fixture.put("Library/Caches/of five days", youngerBy: 35)
    try fixture.put("Library/Caches/x/com.apple.metal/f")
    try fixture.put("Library/Caches/WebKit/ServiceWorkers/s")
    #expect(try fixture.plan(level: .low).chosenPaths == ["Library/Caches/x/com.apple.metal"])
    #expect(
      try fixture.plan(level: .medium).chosenPaths == [
        "tmp/a", "Library/Caches/x/com.apple.metal", "Library/Caches/old",
      ])
    #expect(try fixture.plan(level: .critical).chosenPaths.count == 5)
    let gains = try fixture.plan().volumes[0].levels
    #expect(gains.map(\.level) == [.low, .medium, .critical])
    #expect(gains.map(\.units) == [1, 3, 5])
    #expect(gains.map(\.bytes).allSatisfy { $0 > 0 })
  }

  @Test func aGoalChoosesNoMoreThanItNeeds() throws {
    let fixture = try PurgeFixture()
    for number in 0..<5 { try fixture.put(ByteString("Library/Caches/\(number)"), kib: 100) }
    let plan = try fixture.plan(.free(150 << 10), level: nil)
    #expect(plan.chosenPaths == ["Library/Caches/0", "Library/Caches/1"])
    #expect(plan.volumes[0].goal == 150 << 10 && plan.volumes[0].missing == 0)
    let large = try fixture.plan(.free(1 << 20), level: nil)
    #expect(large.chosenPaths.count == 5)
    #expect(large.volumes[0].missing == (1 << 20) - 500 * 1024)
    try fixture.put("Library/Caches/young", kib: 8, youngerBy: 39)
    let more = try fixture.plan(.free(1 << 20), level: nil)
    #expect(more.volumes[0].next?.level == .critical)
    #expect(more.volumes[0].next?.bytes == 508 << 10)
    // 10 of 1,000 MiB are free: 1 percent needs nothing.
    #expect(try fixture.plan(.untilFree(percent: 1), level: nil).chosenPaths.isEmpty)
    #expect(try fixture.plan(.untilFree(percent: 2), level: nil).chosenPaths.count == 5)
  }

  @Test func pressureDependsOnTheFreeSpaceOfTheVolume() throws {
    let fixture = try PurgeFixture()
    try fixture.put("tmp/a")
    let scan = try fixture.scan()
    for (free, level): (UInt64, Pressure.Level?) in [
      (500, nil), (99, .low), (49, .medium), (19, .critical), (100, nil),
    ] {
      let plan = PurgePlan.make(scan, fixture.request(.byPressure, free: free, scan))
      #expect(plan.volumes[0].pressure == level)
      #expect(plan.chosenPaths.isEmpty == (level == nil), "\(free)")
      #expect(plan.volumes[0].levels.map(\.units) == [1, 1, 1])
    }
    let critical = PurgePlan.make(scan, fixture.request(.byPressure, free: 19, scan))
    #expect(critical.volumes[0].goal == (50 - 19) << 20)
  }

  @Test func aHardLinkedFileCountsWithItsLastName() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/a", kib: 40)
    try fixture.put("Library/Caches/f/fsCachedData/1", kib: 40)
    try fixture.put("Documents/kept", kib: 40)
    let caches = try Directory.open(
      path: fixture.directory.path(fixture.data()).appending("Library/Caches"))
    let documents = try Directory.open(
      path: fixture.directory.path(fixture.data()).appending("Documents"))
    try caches.createHardLink("b", to: "a", in: caches)
    try caches.createHardLink("outside", to: "kept", in: documents)
    let unit = try caches.directory("f").directory("fsCachedData")
    try unit.createHardLink("2", to: "1", in: unit)
    let plan = try fixture.plan()
    let bytes = Dictionary(uniqueKeysWithValues: plan.units.map { (plan.inner($0), $0.bytes) })
    #expect(bytes["Library/Caches/a"] == 0 && bytes["Library/Caches/b"] == 0)
    #expect(bytes["Library/Caches/outside"] == 0)
    #expect(bytes["Library/Caches/f/fsCachedData"] == 40 << 10)
    #expect(plan.volumes[0].gain == 80 << 10)
  }

  @Test func aProtectedFileKeepsItsWholeUnit() throws {
    let fixture = try PurgeFixture()
    for path: ByteString in [
      "Library/Caches/w/fsCachedData/1", "Library/Caches/w/fsCachedData/precious/2",
      "Library/Caches/keep.db", "Library/Caches/keep.db-wal", "Library/Caches/free",
    ] { try fixture.put(path) }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: mine, match: "**/precious/**", class: user-data}
        - {id: log, match: "**/keep.db-wal", purge: never}

      """
    #expect(try fixture.plan([overlay]).chosenPaths == ["Library/Caches/free"])
    #expect(try fixture.plan().chosenPaths.count == 3)
  }

  /// If a part of such a directory were deleted, the program that uses it would report damage.
  @Test func repositoriesAndDatabasesOfManyFilesAreUnits() throws {
    let fixture = try PurgeFixture()
    for path: ByteString in [
      "clone/.git/objects/ab/1", "clone/src/main.c", "clone/mine/notes", "tree/.git", "tree/a",
      "old/.hg/store/1", "old/b", "bare/HEAD", "bare/objects/pack/1", "bare/refs/heads/main",
      "level/CURRENT", "level/MANIFEST-000004", "level/000005.ldb", "plain/HEAD", "plain/refs/1",
      "plain/CURRENT", "plain/MANIFEST", "plain/config", "ostree/config", "ostree/objects/ab/1",
      "ostree/refs/heads/main", "venv/pyvenv.cfg", "venv/lib/a.py", "uv/1/pip/a.py",
      "uv/1/pip-25.0.dist-info/RECORD", "web/chromium-1/INSTALLATION_COMPLETE",
      "web/chromium-1/chrome",
    ] { try fixture.put(ByteString("Library/Caches").appending(path)) }
    func directories(_ overlays: [String] = []) throws -> Set<ByteString> {
      let plan = try fixture.plan(overlays)
      let units = plan.units.filter { $0.kind == .directory }
      #expect(units.allSatisfy { $0.terms.unit == .directory })
      #expect(plan.units.count == units.count + 5, "the files of 'plain'")
      return Set(units.map(plan.inner))
    }
    let all: Set<ByteString> = [
      "Library/Caches/clone", "Library/Caches/tree", "Library/Caches/old", "Library/Caches/bare",
      "Library/Caches/level", "Library/Caches/ostree", "Library/Caches/venv", "Library/Caches/uv/1",
      "Library/Caches/web/chromium-1",
    ]
    #expect(try directories() == all)
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: mine, match: "Library/Caches/clone/mine/**", class: user-data}

      """
    #expect(try directories([overlay]) == all.subtracting(["Library/Caches/clone"]))
  }

  /// Emptying their files one by one would leave damaged databases and repositories.
  @Test func repositoriesAndDatabasesOfManyFilesAreNotEmptied() throws {
    let fixture = try PurgeFixture()
    for path: ByteString in [
      "clone/.git/objects/ab/1", "clone/src/main.c", "level/CURRENT", "level/MANIFEST-000004",
      "plain/a", "unit/b", "unit/deep/.git/c", "other/d", "mixed/.git/e", "mixed/late/f",
      "whole/.git/g", "whole/late/h",
    ] { try fixture.put(ByteString("Library/Caches").appending(path)) }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: empty, match: "Library/Caches/{clone,level,plain}/**", class: cache, purge: {order: 20, action: truncate}}
        - {id: units, match: "Library/Caches/{unit,other}/**", class: cache, purge: {order: 20, action: truncate, unit: directory}}
        - {id: mixed, match: "Library/Caches/mixed/**", class: cache, purge: {order: 20, action: truncate}}
        - {id: late, match: "Library/Caches/mixed/late/**", class: cache, purge: {order: 30}}
        - {id: within, match: "Library/Caches/whole/late/**", class: cache, purge: {order: 30, action: truncate}}

      """
    let plan = try fixture.plan([overlay])
    // A rule for the directory unit itself determines the treatment of all its files.
    #expect(
      Set(plan.units.map(plan.inner)) == [
        "Library/Caches/plain/a", "Library/Caches/other", "Library/Caches/whole",
      ],
      "\(plan.units.map(plan.inner))")
  }

  @Test func classesOtherThanCachesNeedAllowLoss() throws {
    let fixture = try PurgeFixture()
    let paths: [ByteString] = [
      "Library/Application Support/a", "Library/Preferences/b.plist", "Library/Caches/c",
    ]
    for path in paths { try fixture.put(path) }
    func overlay(_ words: String) -> String {
      """
      overlay: all
      schema: 1
      rules:
        - {id: s, match: "Library/{Application Support,Preferences}/**", class: support, purge: {order: 20}\(words)}

      """
    }
    #expect(try fixture.plan([overlay("")]).chosenPaths == ["Library/Caches/c"])
    let plan = try fixture.plan([overlay(", allow-loss: a test says so")])
    #expect(Set(plan.chosenPaths) == Set(paths))
    let support = try #require(plan.units.first { $0.dataClass == DataClass.support })
    #expect(plan.decision(on: support).rule == "s")
  }

  @Test func repositoriesAndCacheTagsAreKept() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/a/CACHEDIR.TAG")
    try fixture.put("Library/Caches/a/b")
    let id = String(repeating: "0123456789abcdef", count: 4)
    try fixture.directory.write(
      #"{"format":"sandboxctl-repository","id":"\#(id)"}"#,
      at: fixture.data().appending("Library/Caches/repo/repository.json"))
    try fixture.put("Library/Caches/repo/packs/1")
    try fixture.put(".sandboxctl/journal/1")
    #expect(try fixture.plan().chosenPaths == ["Library/Caches/a/b"])
  }

  @Test func aRunningAppIsSkipped() throws {
    let fixture = try PurgeFixture()
    try fixture.put("Library/Caches/a")
    try fixture.put("Library/Caches/b", in: 1)
    let scan = try fixture.scan()
    var request = fixture.request(.everything, level: .critical, scan)
    let container = try #require(scan.containers.first?.container)
    request.running[PurgePlan.party(of: container)] = "it runs"
    let plan = PurgePlan.make(scan, request)
    #expect(plan.units.count == 2)
    #expect(plan.chosenPaths == ["Library/Caches/b"])
  }
}
