import AppUpdate
import ArchiveStore
import DeviceScan
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Properties of updates on any device, tested with generated devices whose seed is printed.
@Suite(.spreadScans) struct UpdatePropertyTests {
  /// A policy that discards more than any built-in one.
  static let greedy = """
    overlay: all
    schema: 1
    rules:
      - {id: d, match: "Documents/**", class: user-data, update: discard, allow-loss: a test says so}
      - {id: c, match: "Library/Caches/**", class: cache, update: discard}
      - {id: s, match: "Library/Application Support/gone/**", class: support, update: discard}
      - {id: k, match: "Library/Caches/kept/**", class: user-data}

    """

  static var rounds: Int {
    Sampling.isWhole ? 200 : 6
  }

  /// A plan discards no precious data except data that the platform itself may discard on request;
  /// planning twice gives the same plan; and the plan's totals match the result.
  @Test func plansAreSafeAndAccurate() throws {
    var random = Seeded.fresh("UpdatePropertyTests")
    for _ in 0..<Self.rounds {
      let fixture = try UpdateFixture()
      try fixture.fill(&random)
      let overlays = Bool.random(using: &random) ? [Self.greedy] : []
      let isStrict = Bool.random(using: &random)
      let scan = try fixture.scan(overlays)
      var request = AppChangeRequest(
        .update, of: UpdateFixture.identifier, package: MemoryPackage().app, seed: [7])
      (request.isStrict, request.isForced) = (isStrict, true)
      request.savesFirst = false
      let plan = AppChangePlan.make(scan, request)
      let again = AppChangePlan.make(try fixture.scan(overlays), request)
      #expect(plan.containers.map(\.paths) == again.containers.map(\.paths))
      #expect(plan.containers.map(\.to) == again.containers.map(\.to))
      // A removed extension loses all of its data; this checks the app's own data.
      let data = try #require(plan.containers.first { $0.action == .move })
      for path in data.paths where path.outcome == .dropped && path.dataClass.isPrecious {
        #expect(isStrict && path.dataClass == .unknown, "\(path)")
      }
      if !overlays.isEmpty { #expect(!data.paths.allSatisfy { $0.outcome != .dropped }) }
      try expectTrue(plan, data, fixture)
    }
  }

  private func expectTrue(
    _ plan: AppChangePlan, _ data: PlannedContainer, _ fixture: UpdateFixture
  ) throws {
    let before = try fixture.base.records(fixture.data.appending(UpdateFixture.old))
    let report = try fixture.carryOut(plan, MemoryPackage())
    #expect(report.isComplete, "\(report.lateChanges)")
    let new = try #require(data.to?.lastComponent)
    let after = try fixture.base.records(fixture.data.appending(new))
    let kept = after.filter { $0.key != UpdateFixture.metadata && $0.value.kind == .file }
    let trash = try fixture.base.records(
      ByteString("phone/.sandboxctl/trash").appending(ByteString(report.trash ?? ""))
        .appending("apps/org.example.one/data"))
    let gone = trash.filter { $0.key != UpdateFixture.metadata && $0.value.kind == .file }
    func sum(_ outcomes: [DataOutcome]) -> EntryTotals {
      data.paths.filter { outcomes.contains($0.outcome) }.reduce(into: EntryTotals()) {
        $0.add($1.totals)
      }
    }
    #expect(sum([.carried, .atRisk]).files == kept.count)
    #expect(sum([.carried, .atRisk]).bytes == kept.values.reduce(0) { $0 + $1.size })
    #expect(sum([.dropped]).files == gone.count)
    #expect(sum([.dropped]).bytes == gone.values.reduce(0) { $0 + $1.size })
    for (path, record) in before where record.kind == .file && path != UpdateFixture.metadata {
      let found = kept[path] ?? gone[path]
      #expect(found?.content == record.content, "\(path)")
      #expect(path.components.first != "Documents" || kept[path] != nil, "\(path)")
    }
  }
}

extension UpdateFixture {
  private static let paths: [ByteString] = [
    "Documents", "Documents/Inbox", "Library/Caches", "Library/Caches/kept", "tmp", "StoreKit",
    "Odd",
    "Library/Application Support", "Library/Application Support/gone", "Library/Preferences",
    "Library/Saved Application State", "SystemData", "Library/WebKit",
  ]

  /// Fills the app's data container with generated files, databases and links.
  func fill(_ random: inout Seeded) throws {
    let home = data.appending(Self.old)
    for _ in 0..<Int.random(in: 5...40, using: &random) {
      var location = home.appending(
        Self.paths[Int.random(in: 0..<Self.paths.count, using: &random)])
      while Int.random(in: 0..<3, using: &random) == 0 {
        location = location.appending(ByteString("d\(Int.random(in: 0..<4, using: &random))"))
      }
      let name = location.appending(ByteString("f\(Int.random(in: 0..<1000, using: &random))"))
      let bytes = random.bytes(Int.random(in: 0...300, using: &random))
      if Int.random(in: 0..<6, using: &random) == 0 {
        try base.directory.write(Array("SQLite format 3\0".utf8) + bytes, at: name)
        try base.directory.write(bytes, at: ByteString(Array(name.bytes) + Array("-wal".utf8)))
      } else {
        try base.directory.write(bytes, at: name)
      }
      if Int.random(in: 0..<5, using: &random) == 0 {
        let above = try Directory.open(path: base.directory.path(location))
        let link = ByteString("l\(Int.random(in: 0..<100, using: &random))")
        if try above.statusIfPresent(link) == nil {
          let targets = [base.directory.path(home).appending("Library"), "relative", "/nowhere"]
          try above.createLink(link, to: targets[Int.random(in: 0..<targets.count, using: &random)])
        }
      }
    }
  }
}
